"""Analyses of rounds that are read by blocks against those of rounds in memory: the same numbers, bit for bit."""

import pytest
import tiny
import xarray as xr

import drift
from drift.store import memory_budget
from landscape.model import mapped_files


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = ["task.model=mlp", "task.model_options.hidden=[40]", "clients.number=6", "clients.per_round=4"]
    return tiny.trained(tmp_path_factory.mktemp("runs"), *settings)


ANALYSES = [
    (drift.coherence, {}),
    (drift.drift_variances, {}),
    (drift.layer_drift, {}),
    (drift.update_norms, {}),
    (drift.round_plane, {"points": 3}),
    (drift.projected_plane, {"points": 3}),
    (drift.trajectory_plane, {"points": 3}),
    (drift.client_barriers, {"points": 3}),
    (drift.error_averaged, {"subsets": 2}),
    (drift.similarity_rounds, {}),
    (drift.three_accuracies, {}),
    (drift.decomposition, {"rounds": [2]}),
    (drift.client_losses, {}),
    (drift.what_if, {"steps": 2}),
    (drift.best_weights, {}),
    (drift.counterfactual, {"rounds": [1]}),
]


@pytest.mark.parametrize(("analysis", "options"), ANALYSES, ids=lambda value: getattr(value, "__name__", ""))
def test_budgets_change_no_number(run, analysis, options):
    with memory_budget.limited("100GB"):
        expected = analysis(run, **options)
    with memory_budget.limited("1KB"):
        assert mapped_files.is_mapped(run.round(2).clients)
        result = analysis(run, **options)
    xr.testing.assert_identical(result.drop_attrs(), expected.drop_attrs())
