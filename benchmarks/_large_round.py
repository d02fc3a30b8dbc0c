"""A round of ResNet18 that does not fit memory: seconds, memory and disk of training it and of what reads it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

READ = {
    "open": "run.round(0)",
    "coherence": "drift.coherence(run)",
    "drift_variances": "drift.drift_variances(run)",
    "layer_drift": "drift.layer_drift(run)",
    "round_plane": "drift.round_plane(run, points=5)",
    "what_if": "drift.what_if(run, steps=0)",
    "figure": "figures.draw('clients-round', [run], PLACE / 'out', losses=False)",
}
"""What is measured of the round, each in a process of its own that opens the run; `what_if` learns no weights, and the
figure has no losses, which need a pass of every client's model."""

ALONE = {"clients alone": "alone()", "writing alone": "write()"}
"""What training the round is compared with: its clients trained one after the other, and a file of its size."""

CODE = """
import os, sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
PLACE, COHORT, MEMORY, KIND, CALL = Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
import drift, figures
from drift import engines
from drift.config.load import validated
from drift.config.method_values import Setting
from drift.store.memory_budget import limited, return_free_memory
from drift.training.data import build_task, client_samples, read_data
from drift.training.server import Server, clients

def experiment(**keep):
    task = {"dataset": "cifar10", "model": "resnet18_gn", "train_samples": 4 * COHORT, "test_samples": 50}
    cohort = {"number": COHORT, "per_round": COHORT, "partition": "iid"}
    settings = {"rounds": 1, "task": task, "clients": cohort, "local": {"steps": 1, "batch": 4}, "keep": keep}
    return validated(settings)

def train(folder, **keep):
    drift.simulate(experiment(**keep), runs=PLACE / folder)

def alone():
    wanted = experiment()
    data = read_data(wanted, None)
    setting = Setting(build_task(wanted, data), wanted)
    server, parts = Server.fresh(setting), client_samples(wanted, data, 0)
    ready = clients(setting, *parts, server, server.theta, torch.arange(COHORT).numpy())
    engines.train("serial", wanted.method, ready, forget)

def forget(place, update):
    return_free_memory()
    return None

def write():
    wanted = experiment()
    model = torch.rand_like(build_task(wanted, read_data(wanted, None)).theta).numpy().data
    with open(PLACE / "alone", "wb", buffering=0) as file:
        for _ in range(COHORT):
            file.write(model)
        os.fsync(file.fileno())

begun, cpu = time.perf_counter(), time.process_time()
with limited(MEMORY):
    if KIND == "reads":
        run = drift.open(next(path for path in (PLACE / "runs").iterdir() if path.is_dir()))
    exec(CALL)
(peak,) = (int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.perf_counter() - begun, time.process_time() - cpu, peak * 1024 / 1e6)
"""


def measure(cohort: int, memory: str, folder: Path) -> dict[str, Any]:
    """Seconds, peak memory and disk in MB of processes that train one round of `cohort` clients and read it.

    Temporary files are in the folder as well, so that the disk of a step is that of the folder at most.
    """
    results: dict[str, Any] = {"cohort": cohort, "memory": memory}
    for name, call in {"train": "train('runs')", **READ, **ALONE}.items():
        if name in ALONE:
            shutil.rmtree(folder / "runs", ignore_errors=True)
        results[name] = _measured(name, call, cohort, memory, folder)
    (folder / "alone").unlink()
    results["keep none"] = _measured("keep none", "train('none', clients='none')", cohort, memory, folder)
    parts = [results[name] for name in ALONE]
    for unit in ("seconds", "cpu"):
        ratio = results["train"][unit] / sum(part[unit] for part in parts)
        results[f"{unit} of training against both alone"] = ratio
        print(f"{unit} of training against its clients and writing alone: {ratio:.2f}", flush=True)
    return results


def _measured(name: str, call: str, cohort: int, memory: str, folder: Path) -> dict[str, float]:
    (folder / "tmp").mkdir(exist_ok=True)
    arguments = [str(folder), str(cohort), memory, "reads" if name in READ else "runs", call]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen([sys.executable, "-c", CODE, *arguments], stdout=subprocess.PIPE, env=environment)
    disk = 0
    while child.poll() is None:
        disk = max(disk, _bytes(folder))
        time.sleep(1)
    if child.returncode:
        raise RuntimeError(f"{name} ended with {child.returncode}")
    assert child.stdout is not None
    wall, cpu, peak = map(float, child.stdout.read().split()[-3:])
    left = _bytes(folder)
    print(
        f"{name:20} {wall:8.1f} s  {cpu:8.1f} CPU s  {peak:6.0f} MB of memory  {disk / 1e6:8.0f} MB of disk at most, "
        f"{left / 1e6:.0f} afterwards; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return {"seconds": wall, "cpu": cpu, "megabytes": peak, "disk": disk / 1e6, "afterwards": left / 1e6}


def _bytes(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).stat().st_blocks * 512
            except FileNotFoundError:  # it was removed just now
                continue
    return total
