"""What computes on a GPU, on a fake device under torch's rules: nothing stays on the CPU, and shapes fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_device import CASES, PLANTED
from torch.utils import backend_registration

ROOT = Path(__file__).resolve().parents[1]
OFFERED = hasattr(backend_registration, "_setup_privateuseone_for_python_backend")

pytestmark = pytest.mark.skipif(not OFFERED, reason="this torch has no second device in Python")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    """The error of each case, "" where it passed; in another process, since a device cannot be taken back."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    command = [sys.executable, str(ROOT / "tests" / "fake_device.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", CASES)
def test_a_computation_stays_on_its_device(case, outcomes):
    assert outcomes[case] == ""


@pytest.mark.parametrize("case", PLANTED)
def test_inputs_that_stay_on_the_cpu_raise(case, outcomes):
    assert "Expected all tensors to be on the same device" in outcomes[f"planted {case}"]
