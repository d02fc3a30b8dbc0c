"""Peak memory of a process that trains and reads rounds larger than its budget, against one with two clients."""

import json
import os
import subprocess
import sys

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("the peak memory of a process is read from /proc", allow_module_level=True)

pytestmark = pytest.mark.slow  # test_memory_budget.py asserts that what is large stays in files

COHORT, WIDTH = 40, 16_000
"""Clients, and width of the hidden layer."""

MODELS = COHORT * (75 * WIDTH + 10) * 4
"""Bytes of the client models of a round."""

RECORDED = f"""
assert record.clients.shape == (len(record.ids), {75 * WIDTH + 10})
record.fma, record.mean_update(record.weights), record.clients[1]
drift.coherence(run), drift.drift_variances(run), drift.layer_drift(run)
"""

STATES = """
from drift.store.column_blocks import release
before = run.round(0).carried
for row, client in enumerate(before["ids"].tolist()):
    state = run.client(1, client).state
    for name, value in state.items():
        assert torch.equal(value, before[name][row])
        release(before[name])
assert torch.equal(run.method.local(run.client(1, 0)).theta, record.clients[0])
"""

TRAINED_AGAIN = """
assert record.clients is None
drift.coherence(run), drift.drift_variances(run)
assert drift.counterfactual(run, rounds=[1]).trainings == len(record.ids)
for name in ("feddf", "fedbe"):
    drift.simulate(experiment, f"method={name}", "method.server_epochs=1", "proxy.per_class=1", runs=runs)
"""

CODE = f"""
import json, sys
import torch
torch.set_num_threads(1)
import drift
from drift.config.load import validated

runs, number = sys.argv[1], int(sys.argv[2])
options = {{"features": 64, "classes": 10, "samples": 4 * {COHORT}}}
task = {{"dataset": "blobs", "dataset_options": options, "model": "mlp", "model_options": {{"hidden": [{WIDTH}]}}}}
clients = {{"number": number, "per_round": number, "partition": "iid"}}
local = {{"steps": 1, "batch": 4, "momentum": 0.0}}
settings = {{"rounds": 2, "task": task | {{"test_samples": 20}}, "clients": clients, "local": local}}
experiment = validated(settings | {{"keep": {{"clients": sys.argv[3]}}, "method": json.loads(sys.argv[5])}})
run = drift.open(drift.simulate(experiment, runs=runs).folder)
record = run.round(1)
exec(sys.argv[4])
(peak,) = (int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(1024 * peak)
"""


def peak(runs, number, keep, what, method):
    """Largest memory in bytes of a process with `number` clients, whose models are to take 10 MB.

    Freed memory goes back to the system at once; else the peaks of one program differ by 60 MB.
    """
    at_once = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    variables = os.environ | at_once | {"FEDSCAPE_MEMORY": "10MB", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CODE, str(runs), str(number), keep, what, json.dumps(method)]
    child = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    return int(child.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("keep", "what", "method"),
    [
        ("all", RECORDED, "fedavg"),
        ("none", TRAINED_AGAIN, "fedavg"),
        ("all", RECORDED + STATES, "scaffold"),
        ("all", RECORDED + STATES, {"name": "fedfomo", "validation": "train"}),
    ],
    ids=["kept", "trained again", "scaffold", "fedfomo"],
)
def test_memory_does_not_grow_with_the_cohort(tmp_path, keep, what, method):
    least, many = (peak(tmp_path / str(number), number, keep, what, method) for number in (2, COHORT))
    assert many - least < 0.2 * MODELS, f"{(many - least) / 1e6:.0f} MB more for models of {MODELS / 1e6:.0f} MB"
