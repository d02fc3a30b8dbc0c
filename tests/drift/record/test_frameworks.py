"""NVFlare and pfl-research, installed, recorded by the programs of the how-to as written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import drift
from drift.simulation.verify import verify

ROOT = Path(__file__).resolve().parents[3]
HOWTO = (ROOT / "docs" / "howto-other-frameworks.md").read_text()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("framework", "program", "folder"),
    [("nvflare", "job.py", "workspace/server/runs/nvflare"), ("pfl", "pfl_run.py", "runs/pfl")],
)
def test_a_framework_is_recorded_as_the_howto_says(framework, program, folder, tmp_path, monkeypatch):
    pytest.importorskip(framework)
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", HOWTO, re.DOTALL):
        (tmp_path / name).write_text(text)
    settings = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, program]
    told = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-3000:]
    monkeypatch.chdir(tmp_path)
    assert verify(folder) == []
    run = drift.open(folder, task="task.py:make_task")
    assert run.rounds() == [0, 1, 2]
    for index in run.rounds():
        record, samples = run.round(index), [len(part) for part in run.parts]
        assert record.sizes.tolist() == [samples[client] for client in record.ids.tolist()]
        per_step = 16 if framework == "nvflare" else 1  # NVFlare weighs clients by their steps
        steps = np.array([-(-samples[client] // per_step) for client in record.ids.tolist()])
        np.testing.assert_allclose(record.weights, steps / steps.sum(), rtol=1e-6)
        mean = record.weights.to(record.clients) @ record.clients
        torch.testing.assert_close(record.end, mean, rtol=0, atol=1e-5)
        assert index == 0 or torch.equal(record.start, run.round(index - 1).end)
    assert np.isfinite(run.cached(drift.global_line, points=3).loss).all()
