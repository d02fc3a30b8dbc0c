"""Writes what the guard compares with, after a change of the bits that is meant, which CHANGELOG.md names.

    PYTHONPATH=.:tests python tests/guards/make.py

bits.json     final models of short runs of all methods: numbers for any processor, a digest for the one named
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import drift
from drift.config import method as methods
from drift.config.load import read, validated
from drift.store.files import read_state

METHODS = {
    "ima": ["method.window=2", "method.start=0.4"],
    "fedlaw": ["method.server_epochs=3"],
    "feddf": ["method.server_epochs=3"],
    "fedbe": ["method.server_epochs=3"],
    "fedbabu": ["task.model=mlp"],
    "fedbn": [
        "task.dataset=digits",
        "task.dataset_options={}",
        "task.train_samples=60",
        "task.test_samples=30",
        "task.model=resnet8",
        "clients.concentration=10.0",
    ],
    "lss": ["local.optimizer=adam"],
    "fedlora": ["task.model=adapted:build"],
    "scaffold": ["local.momentum=0.0"],
    "swad": ["clients.valid_ratio=0.2", "method.patience_end=2"],
    "fedfomo": ["clients.valid_ratio=0.2"],
    "soups": ["clients.valid_ratio=0.2", "method.candidates=2"],
    "diwa": ["clients.valid_ratio=0.2", "method.candidates=2"],
}
"""Settings that a method needs to run on the small experiment."""


def small(*overrides: str) -> Any:
    """An experiment that trains in a fraction of a second."""
    content = {
        "rounds": 4,
        "seed": 5,
        "proxy": {"per_class": 2},
        "task": {"dataset": "blobs", "model": "linear", "dataset_options": {"samples": 60}},
        "clients": {"number": 4, "per_round": 3, "partition": {"name": "dirichlet", "concentration": 1.0}},
        "local": {"lr": 0.05, "epochs": 1, "batch": 8},
    }
    return read(validated(content), *overrides)


def processor() -> str:
    """What the bits of a float32 computation depend on: processor capability and torch version."""
    return f"{torch.backends.cpu.get_cpu_capability()} torch {torch.__version__}"


def model(folder: Path) -> dict[str, Any]:
    """The final model of a run: norm, sum and four fixed projections in float64, and a digest of its bits."""
    theta = read_state(folder)[0]["theta"]
    directions = np.random.default_rng(0).standard_normal((4, len(theta))) / np.sqrt(len(theta))
    values = theta.double().numpy()
    return {
        "numbers": [float(np.linalg.norm(values)), float(values.sum()), *map(float, directions @ values)],
        "digest": hashlib.sha256(theta.numpy().tobytes()).hexdigest(),
    }


def bits() -> dict[str, Any]:
    """Final models of all methods."""
    with TemporaryDirectory() as folder:
        models = {}
        for name in methods.names():
            run = drift.simulate(small(f"method={name}", *METHODS.get(name, [])), runs=folder)
            models[name] = model(run.folder)
    return {"processor": processor(), "models": models}


if __name__ == "__main__":
    torch.set_num_threads(1)
    target = Path(__file__).with_name("bits.json")
    target.write_text(json.dumps(bits(), indent=1, sort_keys=True) + "\n")
