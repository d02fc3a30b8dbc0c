"""Equation 13 for any method: finite, bounded, and what the kept clients give, alone and wrapped by IMA."""

import numpy as np
import pytest
import torch
from kinds import FEW, one_of_each

from drift import coherence, drift_variances
from drift.analyses.rounds.labels import label_scatter
from drift.analyses.rounds.variance import layer_drift
from drift.config import method as methods
from drift.simulation.simulate import simulate
from tests.drift.methods.test_methods import SHORT, experiment

ALONE = methods.names()
WRAPPED = [name for name in ALONE if name != "ima"]


def _check(run):
    """The series of a run against its kept clients."""
    found = {name: drift_variances(run, momentum=name) for name in ("recorded", "previous", "zero")}
    d, before = found["zero"].attrs["d"], None
    for index in run.rounds():
        record, row = run.round(index), {name: ds.sel(round=index) for name, ds in found.items()}
        weights = run.experiment.cohort_weights(record.sizes)
        mean = weights @ record.deltas.double()
        m = int((weights > 0).sum())
        spread = float((record.deltas.double() - mean)[weights > 0].square().sum())
        for ds in row.values():
            assert int(ds.cohort) == m
            assert float(ds.client_variance) == pytest.approx(spread / (m**2 * d), rel=1e-4)
            assert 0 < float(ds.gain) <= 1
        assert float(row["zero"].change_variance) == pytest.approx(float(mean.square().sum()) / (m * d), rel=1e-4)
        if index > 0:
            moved = float((before - mean).square().sum()) / (m * d)
            assert float(row["previous"].change_variance) == pytest.approx(moved, rel=1e-3)
        before = mean
    layers = layer_drift(run)
    sums = (layers.client_variance * layers["size"]).sum("layer") / d
    np.testing.assert_allclose(sums, found["zero"].client_variance, rtol=1e-4)
    np.testing.assert_allclose(
        (layers.change_variance * layers["size"]).sum("layer") / d, found["previous"].change_variance, rtol=1e-3
    )
    assert coherence(run).coherence.notnull().all()
    assert label_scatter(run).within_divergence.notnull().all()


@pytest.mark.parametrize("name", one_of_each(ALONE))
def test_drift_variances_of_every_method(name, tmp_path):
    run = simulate(experiment(name), runs=tmp_path)
    _check(run)
    assert bool(torch.isfinite(run.round(-1).end).all())


@pytest.mark.parametrize("name", one_of_each(WRAPPED, FEW))
def test_drift_variances_of_every_method_under_ima(name, tmp_path):
    needs = [change for change in SHORT.get(name, []) if not change.startswith("method.")]
    options = ["method.window=2", "method.start=0.5", f'method.base={{name="{name}"}}']
    _check(simulate(experiment("ima", *options, *needs), runs=tmp_path))
