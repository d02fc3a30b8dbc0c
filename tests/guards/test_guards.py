"""Training keeps its bits: compared with what `make.py` wrote."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from guards import make

import drift
from drift.config import method as methods

BITS = json.loads(Path(__file__).with_name("bits.json").read_text())


def test_every_method_is_guarded():
    assert set(BITS["models"]) == set(methods.names())


@pytest.mark.parametrize("name", sorted(BITS["models"]))
def test_training_keeps_its_bits(name, tmp_path):
    run = drift.simulate(make.small(f"method={name}", *make.METHODS.get(name, [])), runs=tmp_path)
    model, before = make.model(run.folder), BITS["models"][name]
    np.testing.assert_allclose(model["numbers"], before["numbers"], rtol=1e-4, atol=1e-5)
    if make.processor() == BITS["processor"]:  # other processors add in another order
        assert model["digest"] == before["digest"]
