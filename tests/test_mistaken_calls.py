"""Mistaken calls of the library are refused in one line that names the right one."""

from __future__ import annotations

import math

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
            lambda run, out: drift.eigen_rounds(run, rounds=2),
            r"rounds is 2; eigen_rounds takes a list of whole numbers",
        ),
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


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda task: landscape.hessian(task, task.theta, k=2.5), r"k is 2\.5; top_eigenvalues takes a whole number"),
        (
            lambda task: landscape.hessian(task, task.theta, tolerance=float("nan")),
            "tolerance is nan; top_eigenvalues takes",
        ),
        (lambda task: landscape.hessian(task, task.theta, max_products=0), "takes a max_products above 0"),
        (lambda task: landscape.trace(task, task.theta, products="9"), "products is '9'; trace takes a whole number"),
        (lambda task: landscape.density(task, task.theta, probes=1.5), r"probes is 1\.5; density takes a whole number"),
        (lambda task: landscape.minibatch_sharpness(task, task.theta, batch=1.5), r"batch is 1\.5"),
        (lambda task: landscape.line(task.theta, task.theta + 1, points=2.5), r"points is 2\.5; line takes"),
        (lambda task: landscape.evaluate(task, task.theta[None], [[1.0]], block=-1), "takes a block above 0"),
        (lambda task: landscape.evaluate(task, task.theta[None], [[1.0]], workers=1.5), "needs a whole number"),
        (lambda task: landscape.evaluate(task, task.theta[None], [[1.0]], groups=[0]), "one whole number"),
        (
            lambda task: landscape.evaluate(task, task.theta[None], None),
            "coefficients are None; give numbers",
        ),
        (lambda task: landscape.evaluate(task, task.theta[None], "x"), r"coefficients are 'x'; give numbers \(P, 1\)"),
        (lambda task: landscape.evaluate(task, task.theta[None], [[1], [1, 2]]), r"give numbers \(P, 1\)"),
        (lambda task: landscape.plane(*_three(task), margin=math.inf), "margin is inf; plane takes a finite number"),
        (lambda task: landscape.plane(*_three(task), margin=math.nan), "margin is nan; plane takes a finite number"),
        (lambda task: landscape.line(*_three(task)[:2], low=-1e308, high=1e308), "is empty or not finite"),
        (lambda task: landscape.line(*_three(task)[:2], high=math.inf), "high is inf; line takes a finite number"),
        (lambda task: landscape.slice_along(*_three(task)[:2], radius=math.inf), "radius is inf; slice_along takes"),
        (lambda task: landscape.random_plane(task, task.theta, radius=math.nan), "radius is nan; random_plane takes"),
        (lambda task: landscape.principal_plane(_three(task), margin=-math.inf), "margin is -inf; principal_plane"),
        (lambda task: landscape.scaling(task.theta, low=math.nan), "low is nan; scaling takes a finite number"),
        (lambda task: landscape.simplex(_three(task), extend=math.inf), "extend is inf; simplex takes a finite number"),
    ],
)
def test_sizes_of_another_kind_are_refused_in_one_line(call, told, run):
    with pytest.raises(ValueError, match=told) as refused:
        call(run.task)
    assert "\n" not in str(refused.value)


def _three(task):
    return [task.theta, task.theta + 1, task.theta * 2]


@pytest.mark.parametrize("use", [landscape.loss, landscape.hessian, landscape.surface, landscape.barrier])
def test_an_empty_path_is_refused_in_one_line(use, run):
    with pytest.raises(LookupError, match=r"^the path of a checkpoint is empty; give that of a file or folder"):
        use(run.task, *[""] * (1 + (use is landscape.barrier)))


@pytest.mark.parametrize("folder", [None, 3, ""])
def test_a_run_is_opened_by_a_path(folder):
    with pytest.raises(ValueError, match=rf"^the folder of a run is {folder!r}; give its path, such as 'runs/NAME'"):
        drift.open(folder)


@pytest.mark.parametrize("index", ["1", 1.0, None, True])
def test_a_round_is_a_whole_number(index, run):
    with pytest.raises(ValueError, match=rf"^round {index!r} of run .*: give a whole number, such as 0 or -1"):
        run.round(index)
