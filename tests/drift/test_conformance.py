"""Every analysis on a run of every method: a new file of either kind is tested unasked."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import tiny

from drift.config import method as methods
from figures.commands.analyse import analyses

EXTRA = {
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
    "scaffold": ["local.momentum=0.0"],
    "swad": ["clients.valid_ratio=0.2", "method.patience_end=2"],
    "fedfomo": ["clients.valid_ratio=0.2"],
    "soups": ["clients.valid_ratio=0.2", "method.candidates=2"],
    "diwa": ["clients.valid_ratio=0.2", "method.candidates=2"],
}
SPECIAL = {
    "pool_barriers": ("lss",),
    "server_epochs": ("fedlaw",),
    "personal_accuracy": ("swad", "fedfomo", "soups", "diwa"),
    "domain_accuracy": (),
    "ranking_rounds": (),
}
"""Analyses of what only some methods have, or only some datasets."""

REFUSED = {("fedbn", "aligned_barrier"): "without normalisation"}
"""What an analysis says of a method's model, where it cannot take it."""


@pytest.mark.parametrize("name", methods.names())
def test_every_analysis_works_on_every_method(name, tmp_path):
    run = tiny.trained(tmp_path, f"method={name}", *EXTRA.get(name, []))
    for analysis in analyses().values():
        function = getattr(importlib.import_module(analysis.module), analysis.name)
        if name not in SPECIAL.get(analysis.name, (name,)):
            with pytest.raises(LookupError, match=run.name):
                run.cached(function)
            continue
        if (name, analysis.name) in REFUSED:
            with pytest.raises(ValueError, match=REFUSED[name, analysis.name]):
                run.cached(function)
            continue
        found = run.cached(function)
        assert found.attrs["run"] == run.name, analysis.name
        assert {"analysis", "source"} <= set(found.attrs), analysis.name
        numbers = [values for values in found.data_vars.values() if values.dtype.kind == "f"]
        finite = any(bool(np.isfinite(values.values).any()) for values in numbers)
        none = "minimum_state" in found and found["minimum_state"].item() != "inside"
        assert finite or none, analysis.name  # a plane may hold no minimum, and says so
        for values in found.data_vars.values():
            assert {"long_name", "units"} <= set(values.attrs), (analysis.name, values.name)
