"""The small files of a campaign: what they hold, how large they are, and that earlier ones are read."""

from __future__ import annotations

import numpy as np
import pytest
import tiny

from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.variance import drift_variances
from drift.claims.campaign import records, series


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "rounds=7", "evaluate_every=3")


def test_a_file_has_metrics_where_they_were_measured_and_every_round_of_a_short_run(run, tmp_path):
    recorded = records.read(records.write(tmp_path, run, {}))
    metrics = recorded.metrics()
    assert metrics["round"].values.tolist() == [0, 3, 6]
    for name in ("accuracy", "error", "loss"):
        np.testing.assert_allclose(metrics[name], run.metrics()[name].sel(round=[0, 3, 6]), rtol=1e-5)
    for analysis in (coherence, drift_variances):
        ours, theirs = recorded.cached(analysis), run.cached(analysis)
        assert ours["round"].values.tolist() == run.rounds()
        for name in ours:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, err_msg=str(name))


def test_rounds_of_a_long_run_become_means_of_blocks(run, tmp_path, monkeypatch):
    monkeypatch.setattr(series, "BLOCKS", 3)
    recorded = records.read(records.write(tmp_path, run, {}))
    values = run.cached(drift_variances)["gain"].values
    gains = recorded.series()["gain"]
    assert gains["round"].values.tolist() == [0, 3, 6]
    assert recorded.series().attrs["block"] == 3
    np.testing.assert_allclose(gains, [np.nanmean(values[:3]), np.nanmean(values[3:6]), values[6]], rtol=1e-5)
    assert recorded.metrics()["round"].values.tolist() == [0, 3, 6]


def test_the_file_of_1500_rounds_has_less_than_40_kilobytes():
    values = np.random.default_rng(0).normal(size=1500)
    evaluated = np.where(np.arange(1500) % 5 == 0, values, np.nan)
    block = series.block_size(1500)
    assert block == 5
    content = {
        "measured": series.measured({"accuracy": evaluated.round(4), "loss": evaluated}, range(1500)),
        "blocks": {name: series.means(values, block) for names in series.ANALYSES.values() for name in names},
    }
    assert len(records._text(content)) < 40_000


@pytest.mark.parametrize("indices", [(), (4,), (0, 1), (0, 5, 10, 14), (0, 1, 2, 9, 11, 13, 40)])
def test_rounds_as_ranges(indices):
    assert series.indices(series.ranges(indices)) == list(indices)


def test_equal_steps_are_one_range():
    assert series.ranges((0, 2, 4, 6, 10, 11)) == [[0, 6, 2], [10, 11, 1]]
