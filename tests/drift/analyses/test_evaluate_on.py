"""Every sweep over a run is shared by its crew, and its progress is shown: for all analyses of `fedscape analyse`."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from pathlib import Path
from typing import Any

import kinds
import pytest
import torch
import xarray as xr

from drift.analyses import evaluate_on
from drift.config.load import validated
from drift.runs.registry import Registered as Analysis
from drift.runs.registry import registered
from drift.runs.run import Run
from drift.simulation.simulate import simulate
from landscape.datasets import blobs
from landscape.datasets._dataset import Groups
from landscape.sweep import evaluate
from landscape.sweep.threads import at_points, pieces
from landscape.sweep.worker import Points, Values, Work, Worker
from tests import movielens
from tests.tiny import trained

WORKERS = 2

SWEEPING = ("plane", "line", "curve", "barrier", "barriers", "slice", "simplex", "minimum")
"""How the names of sweeps end."""

Told = list[tuple[int, int]]


@dataclass
class Seen:
    """A crew that does the work itself and counts it, and what an analysis did beside it.

    Args:
        shared: Points of each sweep that the crew got.
        unshared: Points of each sweep that it did not get; single models are no sweep.
        told: Progress.
        result: What the analysis returned.
    """

    shared: list[int] = field(default_factory=list)
    unshared: list[int] = field(default_factory=list)
    told: Told = field(default_factory=list)
    result: xr.Dataset | None = None

    def evaluate_points(self, work: Work, points: Points, most: int) -> Iterator[tuple[slice, Values]]:
        self.shared.append(len(points))
        worker = Worker(work)
        return ((part, at_points(worker, points[part])) for part in pieces(len(points), most, WORKERS))

    def require(self, *, counted: bool) -> None:
        """Every sweep is shared, and whoever sweeps or counts rounds says how far it is."""
        assert self.unshared == [], "sweeps that the crew does not get"
        assert self.told or not (self.shared or counted), "no progress"
        for part in parts(self.told):
            steps, totals = [done for done, _ in part], {total for _, total in part}
            assert steps == sorted(steps), "progress goes back"
            assert len(totals) == 1, "the number of steps changes on the way"
            assert steps[0] == 0, "no word at the start"
            assert steps[-1] in totals, "no word at the end"


def parts(told: Told) -> list[Told]:
    """Progress cut where a part is whole and the next one begins (`figures.texts.console.stages`)."""
    found: list[Told] = []
    for step in told:
        whole = not found or found[-1][-1][0] == found[-1][-1][1]
        if whole and (not found or step != found[-1][-1]):
            found.append([])
        found[-1].append(step)
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Iterator[list[Callable[[], Run]]]:
    """Makers of tiny runs, each made once when it is asked for; the first suits nearly all analyses."""
    folder, data = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("data")

    load = blobs.load

    @wraps(load)
    def grouped(*args: Any, **options: Any) -> Any:
        dataset = load(*args, **options)
        train, test = torch.arange(len(dataset.train)) % 2, torch.arange(len(dataset.test)) % 2
        return replace(dataset, groups={"domain": Groups(("print", "script"), train, test)})

    def rated() -> Run:
        movielens.write(data / "movielens1m")
        options = {"dataset_options": {"any_size": True, "history": 4}, "model_options": {"sizes": movielens.SIZES}}
        content = {
            "rounds": 1,
            "task": {"dataset": "movielens1m", "model": "din", **options},
            "clients": {"number": 3, "per_round": 2, "partition": "users"},
            "local": {"epochs": 1},
            "keep": {"globals": "all"},
        }
        return simulate(validated(content), runs=folder, data=data)

    whole = (
        "task.model=mlp",
        "task.model_options.hidden=[8]",
        "keep.clients=all",
        "keep.globals=all",
        "clients.valid_ratio=0.2",
    )
    makers = [
        lambda: trained(folder, *whole),
        lambda: trained(folder, "method=lss", "method.candidates=2", "rounds=1"),
        lambda: trained(folder, "method=fedlaw", "method.server_epochs=2", "rounds=1"),
        rated,
        lambda: trained(folder, "method=fedlora", "task.model=adapted:build", "keep.clients=all", "rounds=2"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blobs, "load", grouped)
        yield [cache(make) for make in makers]


@pytest.fixture
def watch(monkeypatch) -> Callable[..., Seen]:
    """Calls an analysis with a crew and a progress, and sees what reaches the one evaluator."""
    inner = evaluate._chunk_values

    def watch_one(function: Callable[..., xr.Dataset], run: Run, **options: Any) -> Seen:
        seen = Seen()

        def found(work: Work, points: Points, memory: int, workers: Any, soon: bool) -> Any:
            if workers is not seen and len(points) > 1:
                seen.unshared.append(len(points))
            return inner(work, points, memory, workers, soon)

        monkeypatch.setattr(evaluate, "_chunk_values", found)
        seen.result = function(
            run.with_crew(seen).with_progress(lambda done, total: seen.told.append((done, total))), **options
        )
        return seen

    return watch_one


def seen_of(analysis: Analysis, runs: list[Callable[[], Run]], watch: Callable[..., Seen]) -> Seen:
    """What an analysis does on the first run that has what it needs."""
    function = getattr(importlib.import_module(analysis.module), analysis.name)
    usual = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    options = {name: value for name, value in kinds.quick(analysis, folds=2).items() if usual[name] != 0}
    reasons = []
    for make in runs:
        run = make()
        try:
            return watch(function, run, **options)
        except LookupError as reason:  # such as: a run of this method has no pools
            reasons.append(str(reason))
    pytest.fail(f"no tiny run here has what {analysis.name} needs; add one to `runs`: {reasons}")


@pytest.mark.parametrize("analysis", registered().values(), ids=registered())
def test_an_analysis_shares_its_sweeps_and_tells_its_progress(analysis, runs, watch):
    seen = seen_of(analysis, runs, watch)
    seen.require(counted="rounds" in analysis.options)
    if analysis.name.endswith(SWEEPING):
        assert seen.shared, "a plane or line that evaluates nothing"
    dims = dict.fromkeys(str(dim) for values in seen.result.data_vars.values() for dim in values.dims)
    assert analysis.dims == tuple(dims), "dimensions that it states by @analysis"


def _points(run: Run, **options: Any) -> xr.Dataset:
    basis = run.round(-1).kept("clients")
    evaluate.evaluate(run.task, basis, torch.eye(len(basis)), **options)
    return xr.Dataset()


def _again(run: Run) -> xr.Dataset:
    run.context.progress(0, 2)
    run.context.progress(1, 2)
    return _points(run, evaluation=evaluate_on.evaluation_of(run))


@pytest.mark.parametrize(
    ("faulty", "complaint"),
    [
        (lambda run: _points(run), "does not get"),
        (lambda run: _points(run, progress=run.context.progress, workers=WORKERS), "does not get"),
        (lambda run: _points(run, workers=run.context.pool), "no progress"),
        (_again, "goes back"),
        (lambda run: run.context.progress(0, 3) or run.context.progress(2, 3), "at the end"),
    ],
)
def test_an_analysis_that_shares_or_tells_nothing_would_be_seen(faulty, complaint, runs, watch):
    with pytest.raises(AssertionError, match=complaint):
        watch(faulty, runs[0]()).require(counted=True)
    watch(lambda run: _points(run, evaluation=evaluate_on.evaluation_of(run)), runs[0]()).require(counted=True)


@pytest.mark.parametrize("path", sorted(Path(evaluate_on.__file__).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_sweeps_go_through_one_door(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    for call in calls:
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if name in ("surface", "interpolated_surface"):
            assert path.name == "evaluate_on.py", (
                f"{path.name} calls {name}; call drift.analyses.evaluate_on.evaluate_on"
            )
        if name in ("pairwise_barriers", "along"):
            words = {word.arg: ast.unparse(word.value) for word in call.keywords}
            assert {"evaluation", None} & words.keys(), f"{path.name} calls {name} without evaluation_of(run)"
