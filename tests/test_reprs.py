"""What a person sees in a shell or a notebook cell is short, whatever tensors a value holds."""

from __future__ import annotations

from html import escape

import pytest
import recordings
import tiny
import torch

import drift
import figures
import landscape
from drift.runs.run import Run
from landscape.geometry.curves import Curve
from landscape.model.layout import Layout


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("reprs"))


SHOWN = {
    "run": lambda run: run,
    "round": lambda run: run.round(-1),
    "task": lambda run: run.task,
    "samples": lambda run: run.task.samples["train"],
    "data": lambda run: run.dataset,
    "experiment": lambda run: run.experiment,
    "sweep": lambda run: landscape.line(*run.round(-1).clients[:2], points=5),
    "evaluation": lambda run: landscape.Evaluation(split=run.task.split("test"), groups=torch.arange(90) % 2),
    "curve": lambda run: Curve("bezier", torch.zeros(3, 36)),
    "client": lambda run: run.client(1, run.round(1).ids[0]),
    "layout": lambda run: run.task.layout,
    "model": lambda run: landscape.Model(run.task.theta, torch.zeros(3)),
    "recorder": lambda run: recordings.recorded(run.folder.parent / "recorded", settings={"lr": 0.1}),
    "record": lambda run: _record(run),
}
TABLES = {what: show for what, show in SHOWN.items() if what not in ("data", "client")}


@pytest.mark.parametrize("package", [landscape, drift, figures], ids=lambda package: package.__name__)
def test_every_public_class_is_among_those_whose_tables_are_tested(run, package):
    tested = {type(show(run)) for show in TABLES.values()}
    public = {value for name in package.__all__ if isinstance(value := getattr(package, name), type)}
    assert public <= tested, public - tested


def _record(run):
    record = landscape.Record(run.folder.parent / "steps", every=5)
    if not record.steps:
        record(run.task.model, 0, loss=2.0)
    return record


@pytest.mark.parametrize("what", SHOWN)
def test_a_value_with_tensors_is_shown_in_one_short_line(run, what):
    text = repr(SHOWN[what](run))
    assert len(text) < 200
    assert "\n" not in text
    assert "tensor(" not in text


def test_a_round_shows_its_numbers_in_a_notebook(run):
    record = run.round(-1)
    text = record._repr_html_()
    assert f"{record.metrics['loss']:.6g}" in text
    assert "tensor(" not in text


@pytest.mark.parametrize("what", TABLES)
def test_a_notebook_shows_a_short_table(run, what):
    value = TABLES[what](run)
    text = value._repr_html_()
    assert escape(repr(value).split(":")[0]) in text
    assert text.count("<tr>") >= 2
    assert "tensor(" not in text and len(text) < 2_000


def test_a_run_is_shown_with_its_rounds_and_last_loss(run):
    assert f"{run.committed} of {run.experiment.rounds} rounds" in repr(run)
    assert f"<td>{run.round(-1).metrics['loss']:.6g}</td>" in run._repr_html_()


def test_a_run_of_another_program_is_shown_without_what_nobody_said(tmp_path):
    recordings.recorded(tmp_path / "plain")
    assert repr(Run(tmp_path / "plain")) == f"Run(recorded: 3 of 3 rounds, in {tmp_path / 'plain'})"
    recordings.recorded(tmp_path / "told", method="Mine", data="digits", seed=4)
    assert repr(Run(tmp_path / "told")).startswith("Run(Mine on digits, seed 4: 3 of 3 rounds")


def test_a_layout_of_many_tensors_is_shown_by_the_first_ones():
    layout = Layout(tuple((f"layer{number}", (2, 3)) for number in range(100)))
    assert layout._repr_html_().count("<tr>") < 50 and "100 in all" in layout._repr_html_()


def test_an_experiment_is_shown_by_what_differs_from_the_defaults(run):
    text = run.experiment._repr_html_()
    assert run.experiment.slug in text and f"<td>{run.experiment.rounds}</td>" in text
    assert "evaluate_every" not in text and "<th>method</th><td>name fedavg</td>" in text


@pytest.mark.parametrize("what", ["surface", "hessian", "record_steps"])
def test_a_notebook_shows_results_as_tables(run, what):
    theta = run.round(-1).end
    results = {
        "surface": lambda: landscape.surface(run.task, theta),
        "hessian": lambda: landscape.hessian(run.task, theta, k=1),
        "record_steps": lambda: _record(run).over_steps(landscape.hessian, run.task, k=1),
    }
    result = results[what]()
    assert "<table" in result._repr_html_() or "xr-" in result._repr_html_()
    assert len(repr(result).splitlines()) < 60


def test_a_folder_that_is_no_run_is_shown_with_the_reason(tmp_path):
    line = repr(Run(tmp_path / "<b>absent</b>"))
    assert "absent" in line and "\n" not in line
    assert "<b>" not in Run(tmp_path / "<b>absent</b>")._repr_html_()
