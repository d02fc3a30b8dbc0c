"""The demo's plan, and the drawing of several figures at once."""

import pytest
import tiny

from drift.plugins import tables
from figures import gallery
from figures.commands import _demo_steps
from figures.commands._draw_files import draw_all, draw_one


def test_every_method_is_trained_with_every_seed_on_the_same_terms():
    experiments = _demo_steps.planned()["methods"]
    assert [(one.method.name(), one.seed) for one in experiments] == [
        (m, s) for m in _demo_steps.METHODS for s in _demo_steps.SEEDS
    ]
    assert len({(str(one.task), str(one.clients), one.rounds, str(one.proxy)) for one in experiments}) == 1
    assert {one.keep.clients for one in experiments} == {"all"}
    assert all(one.clients.per_round < one.clients.number for one in experiments)


def test_runs_beyond_the_methods_are_all_different():
    slugs = [one.slug for group in _demo_steps.planned().values() for one in group]
    assert len(set(slugs)) == len(slugs)
    assert {one.method.variant for one in _demo_steps.planned()["gws"]} == {"gws"}
    assert [one.clients.partition.concentration for one in _demo_steps.planned()["concentrations"]] == [0.1, 1, 10]


def test_figures_and_groups_of_the_plan_exist():
    assert set(_demo_steps.GROUPS) <= set(gallery.names())
    assert {group for groups in _demo_steps.GROUPS.values() for group in groups} <= {"methods", *_demo_steps.EXTRAS}


def test_figures_beyond_the_demo_exist_and_get_no_runs():
    assert set(gallery.names()) > _demo_steps.BEYOND | set(_demo_steps.MUTE)
    assert not _demo_steps.BEYOND & set(_demo_steps.MUTE)
    assert not (_demo_steps.BEYOND | set(_demo_steps.MUTE)) & set(_demo_steps.GROUPS)
    assert _demo_steps.figure_names() == sorted(set(gallery.names()) - _demo_steps.BEYOND - set(_demo_steps.MUTE))


def test_figures_get_the_runs_that_their_papers_compare():
    """IMA Figs. 2 to 4: with and without decay; FedLAW Figs. 5, 6: hybrid partition; FedEve Figs. 3a, 4."""
    plan = _demo_steps.planned()

    def given(name):
        return [one for group in _demo_steps.GROUPS[name] for one in plan[group]]

    for name in ("bias-rounds", "locality-rounds", "error-averaged"):
        rates = {one.local.lr_decay for one in given(name)}
        assert 1.0 in rates
        assert len(rates) == 2
        assert _demo_steps.OPTIONS[name]["by"] == "local.lr_decay"
    for name in ("coherence-groups", "coherence-rounds"):
        assert {tables.name(one.clients.partition) for one in given(name)} == {"hybrid_dirichlet"}
        assert {one.method.label for one in given(name)} == {"fedavg", "fedlaw-gws"}
    assert len({one.clients.partition.concentration for one in given("labels-scatter")}) >= 3
    cells = {(one.clients.partition.concentration, one.local.epochs) for one in given("gain-alpha")}
    assert len(cells) == len({cell[0] for cell in cells}) * len({cell[1] for cell in cells}) >= 6


@pytest.mark.slow
@pytest.mark.timeout(1200)  # it trains 27 runs
def test_the_demo_draws_every_figure_that_it_promises(tmp_path):
    made = _demo_steps.demo(tmp_path)
    assert made.left_out == {}
    assert sorted(made.names) == _demo_steps.figure_names()
    assert made.report.is_file() and len(made.table) == len(_demo_steps.METHODS)


def test_overrides_reach_every_run():
    assert {one.rounds for group in _demo_steps.planned(("rounds=7",)).values() for one in group} == {7}


_SUFFIXES = [".pdf", ".png", ".svg", ".zarr", ".csv", ".tex", ".txt", ".txt"]
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
