"""Plans of sweeps: measured once, stored, recorded, and without influence on what a point's value depends on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
import xarray as xr
from torch import nn

from landscape import models
from landscape.geometry.planes import plane
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.surfaces import surface as surfaces
from landscape.surfaces.surface import surface
from landscape.sweep import measured_plan, stored_plans
from landscape.sweep.evaluate import evaluate, sweep_work
from landscape.sweep.measured_plan import sweep_plan, usual_plan
from landscape.sweep.sweep_plan import DEFAULT, SweepPlan
from tests.oracles import thetas

PLANS = [
    {"block": 5},
    {"matrices": "torch"},
    {"every_dense": True},
    {"shared": True},
    {"shared": False},
    {"contiguous": True},
    {"folded": True},
    {"folded": True, "shared": True, "block": 4},
    {"folded": True, "shared": False, "every_dense": True},
]


@pytest.fixture
def plans(tmp_path, monkeypatch):
    """The folder of stored plans; sweeps of any length are measured."""
    monkeypatch.setenv("FEDSCAPE_CACHE", str(tmp_path))
    monkeypatch.delenv("FEDSCAPE_PLANS")
    monkeypatch.setattr(measured_plan, "LEAST", 0)
    monkeypatch.setattr(measured_plan, "SHARE", float("inf"))
    return tmp_path / "plans"


def _task(name: str = "cnn_fmnist", count: int = 11) -> Task:
    shape = (1, 16, 17) if name == "cnn_fmnist" else (3, 9, 10)
    inputs = torch.randn(count, *shape, generator=torch.Generator().manual_seed(3))
    return Task(models.build_model(name, shape, 10, seed=1), {"test": Samples(inputs, torch.arange(count) % 10)})


def _sweep(task: Task, points: tuple[int, int] = (3, 4)):
    return plane(*thetas(task, 3, spread=0.02), points=points)


def _plan_of(task: Task, sweep) -> SweepPlan:
    return sweep_plan(sweep_work(task, sweep.basis), torch.from_numpy(sweep.coefficients))


@pytest.mark.parametrize("fields", PLANS, ids=str)
def test_the_text_of_a_plan_is_read_back(fields):
    plan = SweepPlan(**fields)
    assert json.loads(plan.text) == {name: value for name, value in fields.items() if value != getattr(DEFAULT, name)}
    assert SweepPlan.parse(plan.text) == plan
    assert SweepPlan.parse(DEFAULT.text) == DEFAULT


@pytest.mark.parametrize(
    "text", ["fast", '{"block": 0}', '{"block": "8"}', '{"speed": 1}', '{"matrices": 1}', "[]", None]
)
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(ValueError, match="no plan of a sweep"):
        SweepPlan.parse(text)


@pytest.mark.parametrize("fields", PLANS, ids=str)
@pytest.mark.parametrize("name", ["cnn_fmnist", "resnet8"])
def test_a_value_depends_on_its_own_point_only_whatever_the_plan(name, fields):
    task, plan = _task(name), SweepPlan(**fields)
    sweep = _sweep(task)
    rows = torch.from_numpy(sweep.coefficients)
    options = {"buffers": task.buffers.expand(len(sweep.basis), -1)}
    values = evaluate(task, sweep.basis, rows, plan=plan, **options)["loss"]
    for index in (0, 5, 11):
        assert torch.equal(evaluate(task, sweep.basis, rows[[index]], plan=plan, **options)["loss"][0], values[index])
    turned = evaluate(task, sweep.basis, rows.flip(0), plan=plan, workers=2, **options)["loss"]
    assert torch.equal(turned.flip(0), values)
    torch.testing.assert_close(values, evaluate(task, sweep.basis, rows, **options)["loss"], rtol=2e-6, atol=0)


def test_the_measured_plan_is_stored_and_used_by_later_sweeps(plans, monkeypatch):
    task = _task()
    sweep = _sweep(task)
    plan = _plan_of(task, sweep)
    (path,) = plans.iterdir()
    assert SweepPlan.parse(json.loads(path.read_text())["plan"]) == plan
    path.write_text(path.read_text().replace(json.dumps(plan.text), json.dumps('{"block": 7}')))
    monkeypatch.setattr(measured_plan, "measured_plan", lambda *_: pytest.fail("measured again"))
    assert _plan_of(task, sweep) == SweepPlan(block=7)
    assert surface(task, sweep).attrs["plan"] == '{"block": 7}'


def test_the_fastest_plan_wins_and_a_small_gain_changes_nothing(plans, monkeypatch):
    task = _task(count=70)
    for gain, expected in ((0.5, SweepPlan(block=64)), (0.99, DEFAULT)):
        seconds = {SweepPlan(block=64).text: gain}
        monkeypatch.setattr(measured_plan, "_seconds", lambda part, plan, *_, s=seconds: s.get(plan.text, 1.0))
        result = measured_plan.measured_plan(sweep_work(task, _sweep(task).basis), torch.ones(9, 3))
        assert result is not None
        assert result[0] == expected


def test_a_damaged_file_of_a_plan_is_ignored(plans):
    task = _task()
    sweep = _sweep(task)
    _plan_of(task, sweep)
    (path,) = plans.iterdir()
    identity = stored_plans.work_identity(sweep_work(task, sweep.basis))
    for damage in ("", "{", "[1]", '{"plan": 3}', '{"plan": "default", "identity": {}}'):
        path.write_text(damage)
        assert stored_plans.read_plan(identity) is None, damage
    _plan_of(task, sweep)  # measured again
    assert "identity" in json.loads(path.read_text())


def test_a_plan_of_another_machine_or_model_is_not_used(plans, monkeypatch):
    task = _task()
    work = sweep_work(task, _sweep(task).basis)
    own = stored_plans.work_identity(work)
    stored_plans.write_plan(own, SweepPlan(block=7), {})
    assert stored_plans.read_plan(own) == SweepPlan(block=7)
    other = sweep_work(_task("resnet8"), _sweep(_task("resnet8")).basis)
    assert stored_plans.read_plan(stored_plans.work_identity(other)) is None
    assert stored_plans.read_plan(stored_plans.work_identity(replace(work, basis=work.basis[:2]))) is None
    monkeypatch.setattr(stored_plans, "processor", lambda: {"name": "another"})
    elsewhere = stored_plans.work_identity(work)
    stored_plans._path(elsewhere).write_text(stored_plans._path(own).read_text())  # copied by hand
    assert stored_plans.read_plan(elsewhere) is None


def test_a_folder_that_cannot_be_written_does_no_harm(plans, monkeypatch):
    plans.parent.joinpath("file").write_text("")
    monkeypatch.setenv("FEDSCAPE_CACHE", str(plans.parent / "file"))
    task = _task()
    assert isinstance(_plan_of(task, _sweep(task)), SweepPlan)


FOLDED = SweepPlan(folded=True, shared=False)


class Sequences(nn.Module):
    """A dense layer for each row of the images, and one behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.last = nn.Linear(10, 5), nn.Linear(5, 10)

    def forward(self, inputs):
        return self.last(torch.relu(self.rows(inputs.flatten(1, 2))).mean(1))


def _module(name: str) -> nn.Module:
    if name == "sequences":
        return Sequences()
    if name == "norm first":
        return nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 7 * 8, 10))
    return models.build_model(name, (3, 9, 10), 10, seed=1)


@pytest.mark.parametrize(
    ("name", "usual"),
    [("mlp", DEFAULT), ("resnet8", FOLDED), ("norm first", DEFAULT), ("sequences", SweepPlan(every_dense=True))],
)
@pytest.mark.parametrize("why", ["short", "off", "dear"])
def test_sweeps_that_are_not_measured_have_the_usual_plan_of_the_model(plans, monkeypatch, why, name, usual):
    monkeypatch.setattr(measured_plan, "LEAST", 133 if why == "short" else 0)
    monkeypatch.setattr(measured_plan, "SHARE", 0.02 if why == "dear" else float("inf"))
    if why == "off":
        monkeypatch.setenv("FEDSCAPE_PLANS", "off")
    task = Task(_module(name), {"test": _task("resnet8").split("test")})
    sweep = _sweep(task)
    found = surface(task, sweep)
    assert found.attrs["plan"] == (DEFAULT if why == "off" else usual).text
    assert not plans.exists()
    exact = evaluate(task, sweep.basis, torch.from_numpy(sweep.coefficients), statistics=found.attrs.get("statistics"))
    exact = exact["loss"]
    torch.testing.assert_close(torch.from_numpy(found.loss.values.ravel()), exact, rtol=2e-6, atol=0)


def test_plans_are_compared_with_the_usual_one(plans, monkeypatch):
    task, seconds = _task("resnet8"), {DEFAULT.text: 0.5}
    monkeypatch.setattr(measured_plan, "_seconds", lambda part, plan, *_: seconds.get(plan.text, 1.0))
    work, rows = sweep_work(task, _sweep(task).basis), torch.ones(9, 3)
    assert usual_plan(work) == FOLDED
    assert measured_plan.measured_plan(work, rows)[0] == DEFAULT  # where folding is slower
    seconds.clear()
    assert measured_plan.measured_plan(work, rows)[0] == FOLDED


def test_a_resumed_sweep_keeps_its_plan(monkeypatch):
    task = _task()
    sweep, first = _sweep(task), SweepPlan(matrices="torch", shared=False)
    monkeypatch.setattr(surfaces, "sweep_plan", lambda *_: first)
    whole = surface(task, sweep)
    partial = whole.copy(deep=True)
    partial["loss"].values[1:] = torch.nan
    partial["error"].values[1:] = torch.nan
    monkeypatch.setattr(surfaces, "sweep_plan", lambda *_: SweepPlan(block=3))
    resumed = surface(task, sweep, known=partial)
    xr.testing.assert_identical(resumed, whole)
    assert resumed.attrs["plan"] == first.text


def test_a_part_of_an_earlier_version_goes_on_with_the_default(monkeypatch):
    task = _task()
    sweep = _sweep(task)
    whole = surface(task, sweep)
    partial = whole.copy(deep=True)
    partial["loss"].values[1:] = torch.nan
    del partial.attrs["plan"]
    monkeypatch.setattr(surfaces, "sweep_plan", lambda *_: SweepPlan(block=3))
    xr.testing.assert_identical(surface(task, sweep, known=partial), whole)


def test_folded_norms_have_the_statistics_of_their_point():
    task = _task("resnet8")
    basis = thetas(task, 3, spread=0.02)
    buffers = torch.stack([task.buffers + 0.1 * step for step in range(3)])
    rows = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]])
    for options in ({"buffers": buffers}, {"statistics": "recomputed", "calibration": task.split("test")}, {}):
        plain = evaluate(task, basis, rows, **options)["loss"]
        folded = evaluate(task, basis, rows, plan=SweepPlan(folded=True), **options)["loss"]
        torch.testing.assert_close(folded, plain, rtol=1e-5, atol=0)
    assert plain[0] != plain[1]


class Skip(nn.Module):
    """Uses the output of a convolution in front of its normalisation as well."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4 * 7 * 8, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        rough = self.first(inputs)
        return self.last((self.norm(rough) + rough).flatten(1))


def test_norms_are_not_folded_where_the_convolution_is_used_otherwise():
    torch.manual_seed(0)
    model = Skip()
    model.norm.running_mean += 1
    task = Task(model, {"test": Samples(torch.randn(6, 3, 9, 10), torch.arange(6) % 3)})
    basis = task.theta[None]
    plain = evaluate(task, basis, [[1.0]], plan=SweepPlan(shared=False))["loss"]
    folded = evaluate(task, basis, [[1.0]], plan=SweepPlan(folded=True, shared=False))["loss"]
    assert torch.equal(folded, plain)
