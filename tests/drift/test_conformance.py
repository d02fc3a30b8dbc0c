"""Every analysis on a run of every method: a new file of either kind is tested unasked."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import tiny

from drift import method as methods
from figures.commands.analyse import analyses

EXTRA = {
    "ima": ["method.window=2", "method.start=0.4"],
    "fedlaw": ["method.server_epochs=3"],
    "feddf": ["method.server_epochs=3"],
    "fedbe": ["method.server_epochs=3"],
    "fedbabu": ["task.model=mlp"],
    "scaffold": ["local.momentum=0.0"],
    "swad": ["clients.valid_ratio=0.2", "method.patience_end=2"],
    "fedfomo": ["clients.valid_ratio=0.2"],
    "soups": ["clients.valid_ratio=0.2", "method.candidates=2"],
    "diwa": ["clients.valid_ratio=0.2", "method.candidates=2"],
}
SPECIAL = {"pool_barriers": ("lss",), "server_epochs": ("fedlaw",), "domain_accuracy": (), "ranking_rounds": ()}
"""Analyses of what only some methods have, or only some datasets."""

ELSEWHERE = {"fedbn"}
"""Methods that the tiny linear model does not suit: tests/drift/test_methods.py trains them on another."""


@pytest.mark.parametrize("name", [name for name in methods.names() if name not in ELSEWHERE])
def test_every_analysis_works_on_every_method(name, tmp_path):
    run = tiny.trained(tmp_path, f"method={name}", *EXTRA.get(name, []))
    for analysis in analyses().values():
        function = getattr(importlib.import_module(analysis.module), analysis.name)
        if name not in SPECIAL.get(analysis.name, (name,)):
            with pytest.raises(LookupError, match=run.name):
                run.cached(function)
            continue
        found = run.cached(function)
        assert found.attrs["run"] == run.name, analysis.name
        assert {"analysis", "source"} <= set(found.attrs), analysis.name
        numbers = [values for values in found.data_vars.values() if values.dtype.kind == "f"]
        assert any(bool(np.isfinite(values.values).any()) for values in numbers), analysis.name
        for values in found.data_vars.values():
            assert {"long_name", "units"} <= set(values.attrs), (analysis.name, values.name)
