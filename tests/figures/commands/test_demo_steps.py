"""The demo's plan and its jobs, and the drawing of several figures at once."""

import pytest
import tiny

from drift.plugins import tables
from figures import gallery
from figures.commands import _demo_steps
from figures.commands._draw_files import draw_all, draw_one


def test_every_method_is_trained_on_the_same_terms():
    plan = _demo_steps.planned()
    methods = [plan[name] for name in _demo_steps.METHODS]
    assert [one.method.name() for one in methods] == list(_demo_steps.METHODS)
    assert len({(str(one.task), str(one.clients), one.rounds, one.seed, str(one.proxy)) for one in methods}) == 1
    assert {one.keep.clients for one in methods} == {"all"}
    assert all(one.clients.per_round < one.clients.number for one in methods)


def test_settings_of_the_partition_differ_in_nothing_else():
    runs = [_demo_steps.planned()[name] for name in _demo_steps.SETTINGS]
    assert {tables.name(one.clients.partition) for one in runs} == {"drift"}
    assert [one.clients.partition.setting for one in runs] == list(_demo_steps.SETTINGS)
    rest = [one.model_copy(update={"clients": one.clients.model_copy(update={"partition": None})}) for one in runs]
    assert all(one == rest[0] for one in rest)


def test_figures_and_their_runs_exist():
    assert set(_demo_steps.FIGURES) <= set(gallery.names())
    assert {run for runs, _ in _demo_steps.FIGURES.values() for run in runs} <= set(_demo_steps.planned())
    assert set(_demo_steps.FIGURES[_demo_steps.FIRST][0]) <= set(_demo_steps.METHODS[:2]), "trained first"


def test_overrides_reach_every_run():
    assert {one.rounds for one in _demo_steps.planned(("rounds=7",)).values()} == {7}


@pytest.mark.slow
@pytest.mark.timeout(600)  # it trains eight runs
def test_the_demo_draws_every_figure_that_it_promises(tmp_path, capsys):
    result = _demo_steps.demo(tmp_path)
    assert result.left_out == {}
    assert result.names == list(_demo_steps.FIGURES)
    assert all((result.figures / f"{name}-300-rounds.png").is_file() for name in _demo_steps.LONGER)
    assert result.report.is_file() and [row["method"] for row in result.table] == list(_demo_steps.METHODS)
    assert "the first picture is" in capsys.readouterr().err


_SUFFIXES = [".pdf", ".png", ".svg", ".nc", ".csv", ".tex", ".txt", ".txt"]
"""The last two: caption, and text for readers who cannot see the picture."""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_figure_that_the_runs_do_not_allow_is_left_out_with_its_reason(tmp_path, workers):
    run = tiny.trained(tmp_path / "runs")
    steps = []
    jobs = {"accuracy-rounds": ([run], {}), "weights-learned": ([run], {})}
    found = draw_all(jobs, tmp_path / "out", workers=workers, progress=lambda done, note: steps.append(done))
    assert [path.suffix for path in found["accuracy-rounds"]] == _SUFFIXES
    assert "learned its weights" in found["weights-learned"]
    assert steps[-1] == 2


def test_an_unknown_figure_option_is_refused(tmp_path):
    run = tiny.trained(tmp_path / "runs")
    with pytest.raises(ValueError, match="Did you mean 'smooth'"):
        draw_one("coherence-rounds", [run], tmp_path / "out", smoth=3)
