"""Every analysis of weights and coherence on a run of every method; of a kind with others when slow tests run."""

from __future__ import annotations

import numpy as np
import pytest
from kinds import FEW, one_of_each

from drift.analyses.landscapes.weight_simplex import best_weights
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.labels import heterogeneity
from drift.analyses.rounds.norms_and_weights import regularisation_ratio_mean
from drift.analyses.rounds.weight_factors import weight_factors
from drift.simulation.simulate import simulate
from tests import tiny
from tests.drift.methods.test_methods import NAMES, experiment

CALLS = {
    coherence: {"groups": "balance", "smooth": 1},
    heterogeneity: {},
    regularisation_ratio_mean: {"window": [0, 1]},
    weight_factors: {},
    best_weights: {"step": 0.5},
}


@pytest.mark.parametrize("name", one_of_each(NAMES, FEW))
def test_every_analysis_of_weights_reads_every_method(name, tmp_path):
    run = simulate(experiment(name, "keep.clients=all"), runs=tmp_path)
    for analysis, options in CALLS.items():
        found = analysis(run, **options)
        assert {"analysis", "source"} <= set(found.attrs), analysis.__name__
        for variable in [*found.data_vars, *found.coords]:
            assert {"long_name", "units"} <= set(found[variable].attrs), (analysis.__name__, variable)
    shares = heterogeneity(run)
    np.testing.assert_allclose(shares.cohort_share.sum("class"), 1)
    assert bool(((shares.overlap > 0) & (shares.overlap <= 1 + 1e-12)).all())


def test_best_weights_of_models_with_batch_statistics(tmp_path):
    run = tiny.trained(
        tmp_path,
        'task={dataset="digits", train_samples=40, test_samples=40}',
        "task.model=tiny:normalised",
        "rounds=1",
        "keep.clients=all",
    )
    assert run.task.layout.buffer_size > 0
    assert bool(np.isfinite(best_weights(run, step=0.5).best_loss).all())
