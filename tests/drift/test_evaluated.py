"""Every sweep over a run is shared by its crew, and its progress is shown."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drift import evaluated
from drift.run import Run
from figures.commands.analyse import analyses
from landscape import affine
from landscape.sharing import alone, pieces
from landscape.sweeping import Points, Values, Work, Worker
from tests.tiny import trained

MANY = 8
"""Points from which on an evaluation is a sweep; a few single models are evaluated at once."""


@dataclass
class Spy:
    """A crew that does the work itself and counts it."""

    sweeps: list[int] = field(default_factory=list)

    def finished(self, work: Work, points: Points, most: int) -> Iterator[tuple[slice, Values]]:
        self.sweeps.append(len(points))
        return alone(Worker(work), points, pieces(len(points), most, 2))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return trained(tmp_path_factory.mktemp("runs"), "task.model=mlp", "keep.clients=all", "keep.globals=all")


SWEPT = ("class_plane", "scale_curve", "client_barriers", "mode_curve", "best_weights", "overlay_plane", "round_plane")
SWEPT += ("aligned_barrier", "ball_sharpness")


@pytest.mark.parametrize("path", sorted(Path(evaluated.__file__).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_sweeps_go_through_one_door(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    for call in calls:
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if name in ("surface", "adaptive_surface"):
            assert path.name == "evaluated.py", f"{path.name} calls {name}; call drift.evaluated.evaluate_on"
        if name in ("pairwise_barriers", "along"):
            shared = [ast.unparse(word.value) for word in call.keywords if word.arg is None]
            assert any(text.startswith("sharing(run") for text in shared), (
                f"{path.name} calls {name} without **sharing(run)"
            )


def watch(monkeypatch) -> list[int]:
    """Numbers of points of the sweeps that reach the evaluator without a crew."""
    direct: list[int] = []
    inner = affine._found

    def watched(work, points, memory, workers, soon):
        if isinstance(workers, int) and len(points) >= MANY:
            direct.append(len(points))
        return inner(work, points, memory, workers, soon)

    monkeypatch.setattr(affine, "_found", watched)
    return direct


@pytest.mark.parametrize("name", SWEPT)
def test_every_sweep_gets_the_crew_and_the_progress_of_the_run(name, run, monkeypatch):
    analysis, spy, told, direct = analyses()[name], Spy(), [], watch(monkeypatch)
    function = getattr(importlib.import_module(analysis.module), analysis.name)
    function(run.with_crew(spy).with_progress(lambda done, total: told.append((done, total))))
    assert direct == [], "sweeps that the crew does not get"
    assert sum(spy.sweeps) >= MANY
    assert told, "no progress"
    assert told[-1][0] == told[-1][1]
    done = [share / total for share, total in told]
    assert done == sorted(done)
