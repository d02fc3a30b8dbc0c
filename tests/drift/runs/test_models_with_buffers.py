"""Models of a run with batch normalisation: of a round, of the task, by name; what is computed of them."""

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

import drift
import landscape
from drift.analyses.over_seeds import Estimate
from drift.analyses.rounds.batch_statistics import statistics_remark
from drift.analyses.rounds.run_state import RunState
from drift.config.load import validated
from drift.diagnosis import findings
from drift.record.recorder import Recorder
from drift.simulation.simulate import simulate
from figures import cli


def normalised(shape, classes):
    torch.manual_seed(3)
    features = int(np.prod(shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(features, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, classes))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    task = {"dataset": "digits", "model": f"{__name__}:normalised", "train_samples": 200}
    settings = {**tiny.DIGITS, "rounds": 3, "task": task, "keep": {"clients": "all"}}
    return simulate(validated(settings), runs=tmp_path_factory.mktemp("runs"))


def module_of(run, model):
    """The module in eval mode with the parameters and running statistics of a model, float64."""
    layout, module = run.task.layout, normalised((8, 8), 10)
    module.load_state_dict({**layout.named(model), **layout.named_buffers(model.buffers)})
    return module.double().eval()


def loss(run, model, split="test"):
    samples = run.task.samples[split]
    with torch.no_grad():
        return F.cross_entropy(module_of(run, model)(samples.inputs.double()), samples.targets).item()


def test_the_line_of_the_readme_is_the_hessian_of_the_recorded_model(run):
    last = run.round(-1)
    ds = landscape.hessian(run.task, last.end, k=2, tolerance=1e-4)
    module, samples = module_of(run, last.end), run.task.samples["train"]
    state = dict(module.named_buffers())

    def mean(theta: Tensor) -> Tensor:
        parameters = {**state, **run.task.layout.named(theta)}
        return F.cross_entropy(functional_call(module, parameters, (samples.inputs.double(),)), samples.targets)

    dense = torch.autograd.functional.hessian(mean, last.end.theta.double(), vectorize=True)
    values = torch.linalg.eigvalsh(dense)
    expected = values[values.abs().argsort(descending=True)[:2]]
    assert np.allclose(ds.eigenvalue, expected, rtol=1e-3)
    assert ds.attrs["statistics"] == "own"


def test_models_of_a_round_have_the_losses_of_their_modules(run):
    record = run.round(-1)
    models = [record.start, record.end, *record.clients, record.clients[-1].clone().double()]
    assert torch.equal(record.end.buffers, record.end_buffers)
    assert torch.equal(record.clients[1].buffers, record.client_buffers[1])
    values = landscape.evaluate(run.task, [model.float() for model in models], np.eye(len(models)))
    assert np.allclose(values["loss"], [loss(run, model) for model in models], rtol=1e-5)
    assert loss(run, record.end) == pytest.approx(record.metrics["loss"], rel=1e-5)


def test_a_vector_of_a_round_is_refused_and_arithmetic_gives_vectors(run):
    record = run.round(-1)
    mean = (record.start + record.end) / 2
    assert type(mean) is Tensor
    assert type(record.deltas) is Tensor
    for function in (landscape.hessian, landscape.ball_sharpness, landscape.surface):
        with pytest.raises(ValueError, match=r"without the floating buffers of the model \(2.running_mean"):
            function(run.task, mean)
    ds = landscape.hessian(run.task, landscape.Model(mean, record.end.buffers), k=1)
    assert ds.equals(landscape.hessian(run.task, mean, k=1, buffers=record.end_buffers))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("round_plane", {"points": 3}),
        ("global_plane", {"points": 3}),
        ("models_plane", {"models": ("start", "end", "client 0"), "points": 3}),
        ("random_plane", {"points": 3}),
        ("global_line", {"points": 3}),
        ("client_barriers", {"points": 3}),
        ("mode_curve", {"steps": 2, "points": 3}),
        ("eigen_slice", {"points": 3}),
        ("trajectory_plane", {"points": 3}),
        ("weight_simplex", {"step": 0.5}),
        ("scale_curve", {"points": 3}),
        ("error_averaged", {"subsets": 2}),
    ],
)
def test_analyses_state_their_statistics(run, name, options):
    if name == "models_plane":
        options = {**options, "models": ("start", "end", f"client {int(run.round(-1).ids[0])}")}
    ds = getattr(drift, name)(run, **options)
    assert ds.attrs["statistics"] in ("own", "recomputed")


def test_marks_of_a_plane_are_the_losses_of_the_models_and_the_map_says_why_it_differs(run):
    ds = drift.global_plane(run, points=3)
    assert np.allclose(ds.mark_loss[:3], [loss(run, run.round(index).end) for index in range(3)], rtol=1e-5)
    assert (ds.attrs["statistics"], ds.attrs["mark_statistics"]) == ("recomputed", "own")


def test_odd_statistics_of_the_global_model_are_named(run, monkeypatch):
    record = run.round(-1)
    assert statistics_remark(run) == ""
    alone = replace(record, end_buffers=record.client_buffers[1])
    moved = replace(record, end_buffers=record.end_buffers - 100)
    for odd, remark in (
        (alone, f"of layer 2 of the global model of round 2 are those of client {record.ids[1]} alone"),
        (moved, "running_var of layer 2 is neg"),
    ):
        monkeypatch.setattr(type(run), "round", lambda self, index, odd=odd: odd)
        assert remark in statistics_remark(run)
        state = RunState("plateau", Estimate(0.0, 0.0, 0.0, 3), 0, 0, 2.3)
        assert remark in findings.training(run, state).statement


def test_negative_variances_of_a_recorded_run_without_its_task_are_named_also_after_few_rounds(tmp_path, capsys):
    recorder = Recorder(tmp_path / "mine")
    model = {"fc.weight": torch.zeros(3), "norm.running_mean": torch.zeros(2), "norm.running_var": torch.ones(2)}
    client = {name: value + 0.1 for name, value in model.items()}
    moved = {**client, "norm.running_var": torch.tensor([0.5, -0.5])}
    recorder.round(start=model, clients={0: (client, 3), 1: (model, 4)}, end=moved)
    run = drift.open(tmp_path / "mine")
    assert "running_var of layer norm is negative" in statistics_remark(run)
    said = [finding.statement for finding in drift.diagnose(run, quick=True).findings]
    assert any("running_var of layer norm is negative" in statement for statement in said)
    with pytest.raises(SystemExit):
        cli.main(["show", str(run.folder)])
    assert "running_var of layer norm is negative" in " ".join(capsys.readouterr().out.split())


def test_statistics_that_cannot_be_checked_are_named(run, monkeypatch):
    without_data = drift.open(run.folder, data=run.folder)  # own code that is not trusted, or a folder without data
    monkeypatch.setattr(type(run), "task", property(lambda self: (_ for _ in ()).throw(LookupError("no data."))))
    assert statistics_remark(without_data).endswith("of the global model of round 2 were not checked: no data")


def test_remarks_on_statistics_of_a_model_without_them_read_no_models(tmp_path, monkeypatch):
    run = tiny.trained(tmp_path)
    monkeypatch.setattr(type(run), "round", lambda *_: pytest.fail("read models"))
    assert statistics_remark(run) == ""
