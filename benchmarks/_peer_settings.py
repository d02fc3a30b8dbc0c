"""Settings of the benchmark of training as its peers take them, in environments that have torch and numpy alone.

They are those of `benchmarks/_cohorts.py`, which needs more packages than a peer's environment has; a test compares.
"""

from __future__ import annotations

import torch

from landscape import models

LR, MOMENTUM = 0.01, 0.9


def settings(name: str) -> dict:
    """Numbers of the setting called `name`."""
    cnn = {"options": {}, "clients": 10, "epochs": 1, "batch": 50}
    mlp = {"model": "mlp", "options": {"hidden": [64]}, "shape": (1, 8, 8), "clients": 100, "samples": 18, "epochs": 5}
    return {
        "cnn_fmnist": {**cnn, "model": "cnn_fmnist", "shape": (1, 28, 28), "samples": 600},
        "cnn_cifar10": {**cnn, "model": "cnn_cifar10", "shape": (3, 32, 32), "samples": 500},
        "mlp_digits": {**mlp, "batch": 5},
        "mlp_digits_batch10": {**mlp, "batch": 10},
    }[name]


def model(case: dict) -> torch.nn.Module:
    """The network of a setting."""
    return models.build_model(case["model"], case["shape"], 10, seed=0, **case["options"])
