"""Any loop's rounds become a run, in the store's format, with the same numbers, whenever it is killed."""

import importlib
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from recordings import moved, net, recorded
from torch import nn

import drift
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.export_table import table
from drift.record.flat_arrays import FlatArrays
from drift.record.flat_arrays import gram as plain_gram
from drift.record.recorder import Recorder
from drift.runs.registry import registered
from drift.simulation.verify import verify
from drift.store import files
from drift.store.keep import Keep
from drift.store.round_record import gram
from landscape.model.layout import Layout
from landscape.model.samples import Samples
from landscape.model.task import Task

ROOT = Path(__file__).resolve().parents[3]
W = np.arange(3.0)


def test_what_was_given_is_what_is_read(tmp_path):
    recorded(tmp_path / "run")
    run, layout = drift.open(tmp_path / "run"), Layout.of(net())
    assert run.rounds() == [0, 1, 2] and verify(run.folder) == []
    record = run.round(1)
    assert record.ids.tolist() == [0, 3] and record.sizes.tolist() == [2, 17]
    assert record.weights.tolist() == pytest.approx([2 / 19, 17 / 19])
    theirs = [moved(net(), 10), moved(net(), 13)]
    assert torch.equal(record.clients, torch.stack([layout.theta(state) for state in theirs]))
    assert torch.equal(record.client_buffers, torch.stack([layout.buffer_vector(state) for state in theirs]))
    assert torch.equal(record.end, layout.theta(moved(net(), 101)))
    assert torch.equal(record.start, run.round(0).end)
    assert run.metrics().loss.values.tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    assert run.experiment.clients.number == 4


def test_a_run_recorded_again_has_the_same_numbers_as_the_run(tmp_path):
    source = tiny.trained(tmp_path)
    recorder, layout = Recorder(tmp_path / "again", source.task.model), source.task.layout
    for index in source.rounds():
        record = source.round(index)
        rows = zip(record.ids.tolist(), record.clients, record.sizes.tolist(), strict=True)
        clients = {client: (layout.named(theta), size) for client, theta, size in rows}
        recorder.round(start=layout.named(record.start), clients=clients, end=layout.named(record.end))
    found = drift.open(tmp_path / "again")
    for index in source.rounds():
        torch.testing.assert_close(found.round(index).gram, source.round(index).gram, rtol=1e-5, atol=1e-7)
    for analysis in (drift.coherence, drift.drift_variances, drift.locality, drift.update_norms):
        mine, theirs = analysis(found), analysis(source)
        for name in theirs.data_vars:
            np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_gram_is_that_of_the_store():
    vectors = [torch.randn(70_001) for _ in range(3)]
    deltas = torch.randn(4, 70_001)
    mine = plain_gram(*(vector.numpy() for vector in vectors), deltas.numpy())
    np.testing.assert_allclose(mine, gram(*vectors, deltas).numpy(), rtol=1e-12, atol=1e-9)


def test_the_order_of_clients_does_not_matter_and_names_are_numbered(tmp_path):
    states = {name: (moved(net(), seed), 3 + seed) for seed, name in enumerate(["b", "c", "a"])}
    begin = net().state_dict()
    for folder, order in (("one", "bca"), ("two", "acb")):
        recorder = Recorder(tmp_path / folder)
        recorder.round(start=begin, clients={name: states[name] for name in order}, end=begin)
        recorder.round(clients={2**60 + 5: (begin, 1), "c": (begin, 1)}, end=begin)
    one, two = (files.round_path(tmp_path / name, 0).read_bytes() for name in ("one", "two"))
    assert one == two
    run = drift.open(tmp_path / "one")
    assert run.about["names"] == ["a", "b", "c", str(2**60 + 5)]
    assert run.round(0).sizes.tolist() == [5, 3, 4] and run.round(1).ids.tolist() == [2, 3]


def test_modules_state_dicts_and_lists_of_arrays_lie_alike(tmp_path):
    model = net()
    state = model.state_dict()
    arrays = [value.numpy() for value in state.values()]
    layout = Layout.of(model)
    for flat in (FlatArrays.of(model), FlatArrays.of(state)):
        for given in (model, state, arrays):
            theta, buffers = flat.vectors(given)
            assert torch.equal(torch.from_numpy(theta), layout.theta(model))
            assert torch.equal(torch.from_numpy(buffers), layout.buffer_vector(model))


def test_a_module_says_what_is_frozen_and_names_do_where_there_is_none():
    model = net()
    model[0].requires_grad_(False)
    flat = FlatArrays.of(model)
    assert [name for name, _ in flat.parameters] == ["1.weight", "1.bias", "3.weight", "3.bias"]
    named = FlatArrays.of(model.state_dict(), parameters=["3.bias"], buffers=["1.running_var"])
    assert named.parameters == (("3.bias", (2,)),) and named.buffers == (("1.running_var", (3,)),)
    with pytest.raises(ValueError, match="no tensor 'nothing'"):
        FlatArrays.of(model.state_dict(), parameters=["nothing"])


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_tied_tensors_of_a_state_dict_count_once(kind, tmp_path):
    model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 5, bias=False), nn.Linear(5, 7, bias=False))
    model[2].weight = model[0].weight
    state = model.state_dict() if kind == "torch" else {n: v.numpy() for n, v in model.state_dict().items()}
    found, own = FlatArrays.of(state), FlatArrays.of(model)
    assert found.parameters == own.parameters and found.size == 60
    assert np.array_equal(found.vectors(state)[0], own.vectors(model)[0])
    apart = {name: value.clone() for name, value in model.state_dict().items()}
    assert FlatArrays.of(apart).size == 95  # equal values alone are no tie


def test_bfloat16_is_kept_exactly(tmp_path):
    state = {"weight": torch.randn(5).bfloat16()}
    Recorder(tmp_path / "run").round(start=state, clients={0: (state, 1)}, end=state)
    assert torch.equal(drift.open(tmp_path / "run").round(0).clients[0], state["weight"].float())


def test_policies_keep_what_the_run_says_it_kept(tmp_path):
    recorder = Recorder(tmp_path / "run", net(), clients="every 2, last 1", globals="first 2", rounds=4)
    state = net().state_dict()
    for _ in range(4):
        recorder.round(start=state, clients={0: (state, 1)}, end=state)
    run, keep = drift.open(tmp_path / "run"), Keep(clients="every 2, last 1", globals="first 2")
    for index in range(4):
        assert (run.round(index).clients is not None) == keep.keeps_clients(index, 4)
        assert (run.round(index).end is not None) == keep.keeps_globals(index, 4)
    assert verify(run.folder) == []
    with pytest.raises(ValueError, match="counts from the last round"):
        Recorder(tmp_path / "other", clients="last 2")


def test_clients_that_are_not_finite_are_left_out_and_named(tmp_path):
    broken = moved(net(), 1) | {"0.bias": torch.full((3,), torch.nan)}
    recorder, begin = Recorder(tmp_path / "run"), net().state_dict()
    recorder.round(start=begin, clients={4: (broken, 3), 1: (moved(net(), 2), 7)}, end=begin)
    recorder.round(clients={4: (broken, 3)}, end=begin)
    run = drift.open(tmp_path / "run")
    assert run.round(0).ids.tolist() == [1] and run.round(0).extras["excluded"].tolist() == [4]
    assert run.round(1).clients.shape == (0, run.round(1).end.numel())
    assert verify(run.folder) == []
    assert coherence(run).sizes["round"] == 2
    with pytest.raises(ValueError, match="global model is not finite"):
        recorder.round(clients={}, end=broken)
    assert recorder.next == 2


def test_a_task_that_is_given_makes_planes_and_classes(tmp_path):
    recorded(tmp_path / "run")
    with pytest.raises(LookupError, match="recorded without its data"):
        _ = drift.open(tmp_path / "run").task
    inputs = torch.randn(21, 4, generator=torch.Generator().manual_seed(0))
    samples = {"train": Samples(inputs, torch.arange(21) % 2), "test": Samples(inputs[:5], torch.arange(5) % 2)}
    task = Task(net(), samples)
    run = drift.open(tmp_path / "run", task=task)
    found = run.cached(drift.global_line, points=3)
    assert np.isfinite(found.loss).all()
    changed = drift.open(
        tmp_path / "run", task=Task(net(), samples | {"test": Samples(inputs[:5] + 1, samples["test"].targets)})
    )
    assert not np.allclose(changed.cached(drift.global_line, points=3).loss, found.loss)
    assert run.dataset.classes == ("0", "1")
    with pytest.raises(LookupError, match="which client has which samples"):
        run.client_samples(0)
    parts = [[0, 1], [2], [3], range(4, 21)]
    assert len(drift.open(tmp_path / "run", task=task, parts=parts).client_samples(3)) == 17
    masks = [np.arange(len(samples["train"])) % 4 == client for client in range(4)]
    with pytest.raises(ValueError, match=r"parts of client 0 has numbers of type bool.*np.flatnonzero\(mask\)"):
        drift.open(tmp_path / "run", task=task, parts=masks)
    with pytest.raises(ValueError, match="parts of client 1 has numbers of type float64"):
        drift.open(tmp_path / "run", task=task, parts=[[0, 1], [2.5], [3, 4], [5, 6]])
    with pytest.raises(ValueError, match="not that of run"):
        _ = drift.open(tmp_path / "run", task=Task(nn.Linear(4, 2), samples)).task


MAKE = """
import torch
from torch import nn
from landscape.model.samples import Samples
from landscape.model.task import Task

def make_task():
    samples = Samples(torch.eye(19)[:, :4], torch.arange(19) % 2)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
    return Task(model, {"train": samples, "test": samples}), [[0, 1], [], [], range(2, 19)]

def nothing():
    return 3
"""


def test_a_task_is_found_in_a_file(tmp_path):
    recorded(tmp_path / "run", rounds=1)
    path = tmp_path / "my_code.py"
    path.write_text(MAKE)
    run = drift.open(tmp_path / "run", task=f"{path}:make_task")
    assert len(run.task.split("test")) == 19 and [len(part) for part in run.parts] == [2, 0, 0, 17]
    for text, error, message in [
        (f"{path}:nothing", ValueError, "task given is a int"),
        (f"{path}:absent", ValueError, "no function 'absent'"),
        ("absent.py:make", LookupError, "no file absent.py"),
        ("make_task", ValueError, "as FILE.py:NAME"),
    ]:
        with pytest.raises(error, match=message):
            drift.open(tmp_path / "run", task=text)


def test_nothing_heavy_is_imported():
    code = (
        "import sys; from drift.record.recorder import Recorder\n"
        "print(sorted({'torch', 'pydantic', 'xarray', 'scipy', 'h5py', 'matplotlib'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


OF_ONE_ROUND = [name for name, one in registered().items() if "round" in one.options and name != "pool_barriers"]


@pytest.fixture(scope="module")
def with_task(tmp_path_factory):
    """A recorded run that kept the clients of one round, opened with a task."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    recorded(folder, clients="at 1")
    samples = Samples(torch.randn(18, 4), torch.arange(18) % 2)
    return drift.open(folder, task=Task(net(), {"train": samples, "test": samples}), parts=[[0, 1], [], [], range(17)])


@pytest.mark.parametrize("name", OF_ONE_ROUND)  # pool_barriers refuses any run but those of LSS first
def test_a_round_that_the_run_does_not_have_is_said_to_be_none_of_it(with_task, name):
    ask = getattr(importlib.import_module(registered()[name].module), name)
    for index in (99, -99):
        with pytest.raises(LookupError, match=f"run run has no round {index}; it has 0 to 2"):
            ask(with_task, round=index)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no sizes": ({"clients": {0: {"w": W}}}, r"clients\[0\] is a dict; give a pair, as in {client: \(model, number of"),
    "one name twice": ({"clients": {0: ({"w": W}, 5), "0": ({"w": W}, 5)}}, "two clients have the name '0'"),
    "list of models": ({"clients": [{"w": W}]}, r"clients is a list; give {client: \(model, number of samples\)}"),
    "list of pairs": ({"clients": [({"w": W}, 5)]}, "clients is a list; give {client"),
    "three of a client": ({"clients": {0: ({"w": W}, 5, 1)}}, r"clients\[0\] is a tuple; give a pair"),
    "size NaN": ({"clients": {0: ({"w": W}, math.nan)}}, "client 0 has nan samples; give a whole number"),
    "size infinite": ({"clients": {0: ({"w": W}, math.inf)}}, "client 0 has inf samples"),
    "size text": ({"clients": {"a": ({"w": W}, "5")}}, "client 'a' has '5' samples; give a whole number"),
    "size half": ({"clients": {0: ({"w": W}, np.float64(0.5))}}, "client 0 has 0.5 samples"),
    "metric None": (
        {"metrics": {"acc": None}},
        "metrics has 'acc': None; give numbers by name, as in {'accuracy'",
    ),
    "metric text": ({"metrics": {"note": "x"}}, "metrics has 'note': 'x'; give numbers by name"),
    "metric list": ({"metrics": {"acc": [0.1, 0.2]}}, r"metrics has 'acc': \[0.1, 0.2\]; give numbers by name"),
    "accuracy in percent": ({"metrics": {"accuracy": 85.3}}, "accuracy is 85.3; give a fraction between 0 and 1"),
    "error below 0": ({"metrics": {"error": np.float32(-0.5)}}, "error is -0.5; give a fraction"),
    "metric without a name": ({"metrics": {"": 0.1}}, "metrics has '': 0.1"),
    "metrics a number": ({"metrics": 0.5}, "metrics is a float; give numbers by name"),
    "no end": ({"end": None}, "end is a NoneType; give a state dict, a module or a list of arrays"),
    "start a path": ({"start": "a.pt"}, "start is a str; give a state dict"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_first_mistake_names_the_argument_and_records_nothing(what, tmp_path):
    wrong, message = MISTAKES[what]
    right = {"start": {"w": W}, "clients": {0: ({"w": W}, 5)}, "end": {"w": W}, "metrics": {"acc": 0.5}}
    recorder = Recorder(tmp_path / "run")
    with pytest.raises(ValueError, match=message) as refused:
        recorder.round(**(right | wrong))
    assert "\n" not in str(refused.value) and recorder.next == 0
    sizes = {0: ({"w": W}, np.int64(5)), 1: ({"w": W}, torch.tensor(7)), 2: ({"w": W}, 3.0)}
    recorder.round(**(right | {"clients": sizes, "metrics": {"acc": torch.tensor(0.5), "val/acc": np.float32(0.25)}}))
    assert drift.open(recorder.folder).round(0).sizes.tolist() == [5, 7, 3]


def test_a_recorded_number_hides_none_of_drift_in_a_table(tmp_path):
    recorder, model = drift.Recorder(tmp_path / "run"), net().state_dict()
    clients = {client: (moved(net(), client), 5) for client in range(2)}
    recorder.round(start=model, clients=clients, end=model, metrics={"coherence": 9.0, "loss": 1.0})
    run = drift.open(tmp_path / "run")
    row = table(run).iloc[0]
    assert row["coherence"] == 9 and row["drift.coherence"] == float(drift.coherence(run).coherence[0]) < 1
