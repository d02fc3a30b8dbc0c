"""DP-FedAvg against a loop in numpy, and the noise that it adds."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

from drift.config.random_keys import generator
from tests.drift.by_hand import CLIENTS, close, played, trained

CLIP, NOISE = 0.85, 0.3


def test_updates_are_clipped_averaged_by_a_fixed_number_and_noised():
    found = played({"name": "dpfedavg", "clip": CLIP, "noise": NOISE}).ends
    w, factors = found[0], []
    for index, end in enumerate(found[1:]):
        step = np.zeros(13)
        for part in CLIENTS:
            delta = trained(w, part) - w
            factors.append(min(1.0, CLIP / np.linalg.norm(delta)))
            step += delta * factors[-1] / 2
        source = generator(0, "privacy", index)
        w = w + step + NOISE * CLIP / 2 * torch.randn(13, generator=source, dtype=torch.float64).numpy()
        close(end, w)
    assert min(factors) < 1 == max(factors)


def test_without_noise_and_with_a_wide_clip_it_is_the_plain_mean():
    found = played({"name": "dpfedavg", "clip": 1e6, "noise": 0.0}).ends
    w = found[0]
    for end in found[1:]:
        w = np.mean([trained(w, part) for part in CLIENTS], axis=0)
        close(end, w)


def test_no_update_is_longer_than_the_clip_and_the_record_states_the_noise(tmp_path):
    options = ["method=dpfedavg", "method.clip=0.05", "method.noise=0.5", "keep.clients=all", "keep.globals=all"]
    run = tiny.trained(tmp_path, *options)
    for index in run.rounds():
        record = run.round(index)
        assert float(record.deltas.norm(dim=1).max()) <= 0.05 * (1 + 1e-5)
        assert record.extras["clip_factor"].shape == record.ids.shape
        assert float(record.extras["sigma"]) == pytest.approx(0.5 * 0.05 / 3)
        mean = record.deltas.mean(0)
        torch.testing.assert_close(record.end - record.start - mean, record.extras["noise"], rtol=0, atol=1e-6)
    assert not torch.equal(run.round(0).extras["noise"], run.round(1).extras["noise"])
    tiny.assert_same_bits(run, tiny.trained(tmp_path / "again", *options))


def test_stopped_clients_do_not_shrink_the_denominator(tmp_path):
    run = tiny.trained(
        tmp_path, "method=dpfedavg", "method.noise=0", "clients.stops=0.6", "keep.clients=all", "keep.globals=all"
    )
    sizes = set()
    for index in run.rounds():
        record = run.round(index)
        sizes.add(len(record.ids))
        torch.testing.assert_close(record.end - record.start, record.deltas.sum(0) / 3, rtol=0, atol=1e-6)
    assert min(sizes) < 3
