"""What the faults are tried on: a run of seconds with every kind of file, and a tiny one of every method."""

from __future__ import annotations

import os
from pathlib import Path

import tiny

import drift
from drift.config.experiment import Experiment
from drift.config.load import read, validated

DIGITS = tiny.DIGITS | {
    "rounds": 12,
    "task": tiny.DIGITS["task"] | {"model_options": {"hidden": [16]}},
    "local": tiny.DIGITS["local"] | {"epochs": 2, "batch": 4},
}
OPTIONS = {
    "ima": ["method.window=2", "method.start=0.4"],
    "fedlaw": ["method.server_epochs=2"],
    "feddf": ["method.server_epochs=2"],
    "fedbe": ["method.server_epochs=2"],
    "fedbabu": ["task.model=mlp"],
    "fedlora": ["task.model=adapted:build"],
    "scaffold": ["local.momentum=0.0"],
    "swad": ["clients.valid_ratio=0.2", "method.patience_end=2"],
    "fedfomo": ["clients.valid_ratio=0.2"],
    "soups": ["clients.valid_ratio=0.2", "method.candidates=2"],
    "diwa": ["clients.valid_ratio=0.2", "method.candidates=2"],
}
"""Options without which a method does not run in the tiny experiment."""


def of_method(name: str, *overrides: str) -> Experiment:
    """The tiny experiment under a method."""
    if name == "fedbn":  # needs layers with batch statistics
        small = {**DIGITS, "rounds": 3, "task": {"dataset": "digits", "model": "resnet8", "train_samples": 60}}
        small |= {"clients": {**DIGITS["clients"], "concentration": 5.0}, "local": {"lr": 0.05, "epochs": 1}}
        return read(validated(small), "method.name=fedbn", "task.test_samples=60", *overrides)
    return tiny.experiment(f"method.name={name}", *OPTIONS.get(name, []), *overrides)


def environment() -> dict[str, str]:
    """Of a process of its own: one thread, and this project for imports."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(drift.__file__).resolve().parents[1])}
