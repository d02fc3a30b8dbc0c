"""The benchmark of training gives its peers the settings that it measures itself."""

from __future__ import annotations

import pytest

from benchmarks._cohorts import LR, MOMENTUM, SETTINGS
from benchmarks._peer_settings import LR as PEER_LR
from benchmarks._peer_settings import MOMENTUM as PEER_MOMENTUM
from benchmarks._peer_settings import settings


@pytest.mark.parametrize("name", ["cnn_fmnist", "cnn_cifar10", "mlp_digits", "mlp_digits_batch10"])
def test_peers_train_the_same_cohorts(name):
    assert settings(name) == vars(SETTINGS[name])
    assert (PEER_LR, PEER_MOMENTUM) == (LR, MOMENTUM)
