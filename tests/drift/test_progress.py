"""Analyses tell how far they are: in points of a surface, or in rounds; and are the same whoever hears it."""

import pytest
import tiny

from drift import aggregation_weights, coherence, decomposition, eigen_rounds, error_averaged, round_plane
from drift.analyses.landscapes.averages import similarity_rounds
from drift.runs.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize(
    "analysis", [coherence, aggregation_weights, decomposition, eigen_rounds, error_averaged, similarity_rounds]
)
def test_an_analysis_over_rounds_counts_them(run, analysis):
    heard = []
    found = analysis(run.with_progress(lambda *steps: heard.append(steps)))
    assert heard == [(done, 3) for done in range(4)]
    assert found.identical(analysis(run))


def test_a_plane_counts_its_points_until_it_is_kept(run):
    heard = []
    listening = run.with_progress(lambda *steps: heard.append(steps))
    listening.cached(round_plane, points=4)
    assert (heard[0], heard[-1]) == ((0, 20), (20, 20))
    assert heard == sorted(heard)
    heard.clear()
    assert listening.cached(round_plane, points=4).identical(run.cached(round_plane, points=4))
    assert heard == []


def test_who_hears_is_no_part_of_a_run(run):
    listening = run.with_progress(print)
    assert (listening, hash(listening), repr(listening)) == (run, hash(run), repr(run))
    assert run.context.progress is None
    assert isinstance(listening, Run)
