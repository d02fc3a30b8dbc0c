"""Mistaken calls of the library are refused in one line that names the right one."""

from __future__ import annotations

import pytest
import tiny

import drift
import figures
import landscape
from drift.methods.fedavg import FedAvg


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


class Half(FedAvg):
    """A method of the user."""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda run, out: figures.draw("accuracy-rounds", {"a": run}, out),
            r"dict; did you mean list\(runs\.values\(\)\)",
        ),
        (lambda run, out: figures.draw("accuracy-rounds", run, out), r"were given a Run; did you mean \[run\]\?"),
        (lambda run, out: figures.draw("accuracy-rounds", [run.folder], out), r"Path in it; drift\.open\(FOLDER\)"),
        (lambda run, out: figures.picture("accuracy-rounds", {"a": run}), r"did you mean list\(runs\.values\(\)\)"),
        (lambda run, out: figures.report({"a": run}, out / "r.html"), r"did you mean list\(runs\.values\(\)\)"),
        (lambda run, out: landscape.surface(run.task), r"no model.* Did you mean surface\(task, task\.theta\)\?"),
        (lambda run, out: run.cached("round_plane"), r"not 'round_plane'; did you mean drift\.round_plane\?"),
        (lambda run, out: run.cached("round_plan"), r"no analysis named 'round_plan'\. Did you mean 'round_plane'\?"),
        (lambda run, out: run.cached(drift.round_plane, point=5), r"no argument .*'point'\. Did you mean 'points'\?"),
        (
            lambda run, out: drift.simulate(tiny.experiment(), method=Half, runs=out),
            rf"method is the class Half, not a name; did you mean the text '{__name__}:Half'\?",
        ),
        (
            lambda run, out: drift.simulate(tiny.experiment(), method=_notebook(), runs=out),
            r"did you mean the text 'FILE\.py:Cell' of the file that holds it\?",
        ),
        (
            lambda run, out: drift.simulate(tiny.experiment(), method=FedAvg, runs=out),
            r"method is the class FedAvg, not a name; did you mean the text 'fedavg'\?",
        ),
    ],
)
def test_a_mistaken_call_is_refused_in_one_line_that_names_the_right_one(call, told, run, tmp_path):
    with pytest.raises((ValueError, TypeError), match=told) as refused:
        call(run, tmp_path)
    assert "\n" not in str(refused.value) and not list(tmp_path.iterdir())


def _notebook() -> type:
    """A class that a cell of a notebook defines."""
    return type("Cell", (FedAvg,), {"__module__": "__main__"})
