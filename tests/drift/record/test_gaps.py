"""Rounds that are not there: those that another program did not record, and those that a trained run has lost."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

import drift
from drift.record.recorder import Recorder
from drift.store import files


@pytest.mark.parametrize(("indices", "known"), [([0, 1, 4, 5], [True, True, False, True]), ([3, 4], [False, True])])
def test_the_update_before_a_gap_is_not_compared_with_the_one_after_it(tmp_path, indices, known):
    draw, recorder = torch.Generator().manual_seed(0), Recorder(tmp_path / "run")
    start, means = torch.randn(40, generator=draw), []
    for index in indices:
        clients = [start + torch.randn(40, generator=draw) for _ in range(2)]
        end = (clients[0] + clients[1]) / 2
        models = {client: ({"w": model}, 5) for client, model in enumerate(clients)}
        recorder.round(start={"w": start}, clients=models, end={"w": end}, index=index)
        means.append((end - start).double())
        start = end
    run = drift.open(tmp_path / "run")
    before = [torch.zeros(40).double(), *means[:-1]]
    period = [float((a - b).square().sum()) / 80 for a, b in zip(before, means, strict=True)]
    found, norms = drift.drift_variances(run), drift.update_norms(run).previous_norm
    np.testing.assert_allclose(found.change_variance, np.where(known, period, np.nan), rtol=1e-4)
    np.testing.assert_allclose(norms, np.where(known, [float(part.norm()) for part in before], np.nan), rtol=1e-4)
    assert np.isfinite(found.client_variance).all()
    assert np.isfinite(found.gain).values.tolist() == known
    assert np.isfinite(drift.drift_variances(run, momentum="zero").change_variance).all()


@pytest.mark.parametrize("lost", [1, 3])
def test_a_trained_run_that_lost_a_round_is_no_shorter_run(tmp_path, lost):
    run = tiny.trained(tmp_path, "rounds=4")
    files.round_path(run.folder, lost).unlink()
    run = drift.open(run.folder)
    for read in (lambda run: run.round(-1), drift.coherence, drift.recorded_metrics, lambda run: run.kept("clients")):
        with pytest.raises(LookupError, match=f"00000{lost}.safetensors is missing"):
            read(run)
    assert run.round(0).index == 0
