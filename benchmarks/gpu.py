"""A GPU against the CPU and against an expert's loops: values first, then speed. Takes about six minutes.

    python -m benchmarks.gpu [--parts values planes curvature methods training explorer] [--models NAMES]

values      losses at 20 points of a plane against the CPU's, relative to the range of the losses
planes      points per second of this project, of the loop over points with large batches ("expert") and of an expert's
            vmap over points ("vmap"); products in whole float32, no TF32
curvature   eigenvalues, trace, density, layers, tangent kernel and robustness against the CPU's, and seconds
methods     every method for three rounds of a tiny run, serial and batched, against the CPU's models
training    a cohort of 100 clients (`benchmarks.training --device cuda`)
explorer    the explorer's numbers of a run that was trained on the device

Every part runs, also where one before it fails. Results go to benchmarks/results/gpu.json. `--device cpu` tries the
script itself.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap

import drift
import landscape
from benchmarks._planes import Case
from drift.config import method as methods
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.model.whole_products import whole_products
from landscape.sweep import vmap_points

RESULTS = Path(__file__).parent / "results" / "gpu.json"
POINTS = {"mlp": 21, "cnn_fmnist": 21, "cnn_cifar10": 21, "resnet8": 11, "resnet20": 11, "transformer": 11}
MODELS: list[str] = []
"""Models that are asked for; all if empty."""

SAMPLES = 2000
BATCH = 1000
CHUNK = 16
"""Points per pass of the expert's vmap; the best of this, 4 and 64 is reported."""


def main() -> None:
    """Run the parts, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts: dict[str, Callable[[str, bool], Any]] = {
        "values": values, "planes": planes, "curvature": curvature, "methods": all_methods, "training": training,
        "explorer": explorer,
    }  # fmt: skip
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", nargs="+", help="of values, planes and curvature; by default all")
    parser.add_argument("--tiny", action="store_true", help="few points and samples: does it run?")
    chosen = parser.parse_args()
    MODELS.extend(chosen.models or [])
    on_gpu = chosen.device == "cuda"
    found: dict[str, Any] = {"processor": card(torch.cuda.get_device_name() if on_gpu else "cpu")}
    RESULTS.parent.mkdir(exist_ok=True)
    for part in chosen.parts:
        begun = time.perf_counter()
        print(f"\n== {part}", flush=True)
        try:
            found[part] = parts[part](chosen.device, chosen.tiny)
        except Exception as reason:  # noqa: BLE001 - the other parts are still of interest
            found[part] = {"failed": repr(reason)}
            traceback.print_exc()
        print(f"== {part}: {time.perf_counter() - begun:.0f} s", flush=True)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def card(name: str) -> dict[str, str]:
    """A device as `benchmarks.write_tables` names machines."""
    return {"name": name, "number": "", "flags": "float32 products, TF32 off", "torch": torch.__version__}


def values(device: str, tiny: bool) -> list[dict]:
    """Largest difference between device and CPU at 20 points, relative to the range of the losses."""
    rows = []
    for name in _asked((*POINTS, "lenet5", "resnet18_gn", "din")):
        here, there = (Case.of(name, 5, 32 if tiny else 200, where) for where in ("cpu", device))
        coefficients = here.sweep.coefficients[:20]
        expected = _at(here, coefficients)
        row: dict[str, Any] = {"model": name}
        for way, batched in (("batched", True), ("single", False)):
            actual = _with(batched, partial(_at, there, coefficients))
            for metric, true in expected.items():
                row[f"{way} {metric}"] = float((actual[metric] - true).abs().max() / true.abs().max().clamp(min=1e-12))
        rows.append(row)
        print(
            "  ", {key: entry if isinstance(entry, str) else f"{entry:.1e}" for key, entry in row.items()}, flush=True
        )
    return rows


def planes(device: str, tiny: bool) -> list[dict]:
    """Points per second of every contestant."""
    rows = []
    for name in _asked(POINTS):
        case = Case.of(name, 3 if tiny else POINTS[name], 64 if tiny else SAMPLES, device)
        contestants: dict[str, Callable[[], np.ndarray]] = {
            "ours": lambda: _with(True, lambda: _ours(case)),  # noqa: B023
            "ours, one by one": lambda: _with(False, lambda: _ours(case)),  # noqa: B023
            "expert": lambda: expert(case),  # noqa: B023
        }
        if name != "transformer":  # vmap has no rule for fused attention and calls it point by point
            for chunk in (CHUNK // 4, CHUNK, 4 * CHUNK):
                contestants[f"vmap {chunk}"] = lambda chunk=chunk: by_vmap(case, chunk)  # noqa: B023
        row: dict[str, Any] = {"model": name, "points": case.points**2, "samples": len(case.samples), "per_second": {}}
        losses = {}
        with whole_products():
            for contestant, work in contestants.items():
                try:
                    losses[contestant], spent = _timed(work, device)
                except torch.cuda.OutOfMemoryError:
                    continue
                row["per_second"][contestant] = case.points**2 / spent
        true = losses["expert"]
        row["apart"] = {
            contestant: float(np.abs(found - true).max() / np.ptp(true)) for contestant, found in losses.items()
        }
        rows.append(row)
        rates = ", ".join(f"{contestant} {rate:.1f}" for contestant, rate in row["per_second"].items())
        print(f"   {name}: points per second: {rates}; largest difference {max(row['apart'].values()):.1e}", flush=True)
    return rows


def curvature(device: str, tiny: bool) -> list[dict]:
    """Numbers about one model, on the device and on the CPU."""
    rows = []
    for name, task in _tasks(64 if tiny else 256).items():
        if name not in _asked(("mlp", "cnn_fmnist", "resnet8", "transformer", "lstm")):
            continue
        theta = task.theta
        numbers: dict[str, Callable[[Tensor], Any]] = {
            "hessian": lambda at: landscape.hessian(task, at, k=5).eigenvalue.values,  # noqa: B023
            "trace": lambda at: landscape.trace(task, at).trace.item(),  # noqa: B023
            "density": lambda at: landscape.density(task, at).density.values,  # noqa: B023
            "layers": lambda at: landscape.layer_eigenvalues(task, at).eigenvalue.values,  # noqa: B023
            "ntk": lambda at: landscape.ntk(task, at, task.split("test")[:20]).cpu().numpy(),  # noqa: B023
            "ball_sharpness": lambda at: _numbers(landscape.ball_sharpness(task, at)),  # noqa: B023
            "noise_robustness": lambda at: _numbers(landscape.noise_robustness(task, at)),  # noqa: B023
        }
        for what, number in list(numbers.items())[: 1 if name == "transformer" else None]:  # minutes on a CPU
            row: dict[str, Any] = {"model": name, "number": what}
            try:
                begun = time.perf_counter()
                true = np.asarray(number(theta))
                row["cpu_seconds"] = time.perf_counter() - begun
                number(theta.to(device))
                begun = time.perf_counter()
                actual = np.asarray(number(theta.to(device)))
                _wait(device)
                row["seconds"] = time.perf_counter() - begun
                row["apart"] = float(np.nanmax(np.abs(actual - true)) / np.nanmax(np.abs(true)))
            except Exception as reason:  # noqa: BLE001 - one failure of many is the result
                row["failed"] = f"{type(reason).__name__}: {reason}"[:300]
            rows.append(row)
            print(
                "  ",
                {key: entry if isinstance(entry, str) else f"{entry:.2g}" for key, entry in row.items()},
                flush=True,
            )
    return rows


def all_methods(device: str, tiny: bool) -> list[dict]:
    """Final models of every method against the CPU's, relative to what training moved."""
    rows = []
    for name in methods.names() if not tiny else ["fedavg", "fedlaw"]:
        row: dict[str, Any] = {"method": name}
        for engine in ("serial", "batched"):
            runs = {}
            for where in ("cpu", device):
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        run = drift.simulate(
                            "digits-shards2",
                            "rounds=3",
                            f"device={where}",
                            f"engine={engine}",
                            method=name,
                            runs=folder,
                        )
                        runs[where] = run.round(0).start.clone(), run.round(-1).end.clone(), run.about["engine"]
                    except Exception as reason:  # noqa: BLE001 - one failure of many is the result
                        row[f"{engine} {where}"] = f"{type(reason).__name__}: {reason}"[:300]
            if len(runs) == len({"cpu", device}):
                (start, true, _), (_, actual, used) = runs["cpu"], runs[device]
                row[engine if used == engine else f"{engine} ({used})"] = float(
                    (actual - true).norm() / (true - start).norm()
                )
        rows.append(row)
        print(
            "  ", {key: entry if isinstance(entry, str) else f"{entry:.1e}" for key, entry in row.items()}, flush=True
        )
    return rows


def training(device: str, tiny: bool) -> dict:
    """Seconds of a cohort's round by every contestant."""
    from benchmarks import training as cohort

    chosen = argparse.Namespace(device=device, rounds=1 if tiny else 3, flower=None, pfl=None)
    return cohort.table("mlp_digits" if tiny else "cnn_fmnist_100", chosen, {})


def explorer(device: str, tiny: bool) -> dict:
    """The plane of a run trained on the device, as the explorer shows it, and the loss of a point of it."""
    with tempfile.TemporaryDirectory() as folder:
        run = drift.simulate("digits-shards2", "rounds=2", f"device={device}", runs=folder)
        plane = run.cached(drift.round_plane, round=-1)
        there = landscape.surface(run.task, landscape.plane(*(run.round(-1).clients[:3].to(device)), points=5))
        here = landscape.surface(run.task, landscape.plane(*run.round(-1).clients[:3], points=5))
        apart = float(np.abs(there.loss.values - here.loss.values).max() / np.ptp(here.loss.values))
        print(f"   device {run.about['device']}: plane {dict(plane.sizes)}, {apart:.1e} apart", flush=True)
        return {"device": run.about["device"], "reason": run.about["device_reason"], "apart": apart}


def _asked(names: Iterable[str]) -> list[str]:
    return [name for name in names if not MODELS or name in MODELS]


class Recurrent(nn.Module):
    """An LSTM over sequences, for the second derivative that cuDNN does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x)[0][:, -1])


def _tasks(count: int) -> dict[str, Task]:
    tasks = {name: Case.of(name, 3, count).task for name in ("mlp", "cnn_fmnist", "resnet8", "transformer")}
    torch.manual_seed(0)
    samples = Samples(torch.randn(count, 9, 8), torch.randint(10, (count,)))
    tasks["lstm"] = Task(Recurrent(), {"test": samples})
    return {
        name: Task(task.model, {"train": task.split("test"), "test": task.split("test")})
        for name, task in tasks.items()
    }


def _at(case: Case, coefficients: np.ndarray) -> dict[str, Tensor]:
    return landscape.evaluate(case.task, case.sweep.basis, coefficients, statistics="task")


def _ours(case: Case) -> np.ndarray:
    return _at(case, case.sweep.coefficients)["loss"].reshape(case.sweep.shape).numpy()


def _with(batched: bool, work: Callable[[], Any]) -> Any:
    """Work with points in batches, or one by one."""
    before, vmap_points.DEVICES = vmap_points.DEVICES, ("cuda",) if batched else ()
    try:
        return work()
    finally:
        vmap_points.DEVICES = before


@torch.no_grad()
def expert(case: Case) -> np.ndarray:
    """The loop over points on a GPU: large batches, channels_last, one copy of the weights, one read of the losses."""
    model = copy.deepcopy(case.model).to(memory_format=torch.channels_last).eval()
    shapes = [parameter.shape for parameter in model.parameters()]
    coefficients = torch.as_tensor(case.sweep.coefficients, dtype=torch.float32, device=case.three.device)
    images = case.samples.inputs.ndim == 4
    inputs = case.samples.inputs.contiguous(memory_format=torch.channels_last) if images else case.samples.inputs
    blocks = list(Samples(inputs, case.samples.targets).blocks(BATCH))
    losses = torch.zeros(len(coefficients), device=case.three.device)
    for place, row in enumerate(coefficients):
        theta = row @ case.sweep.basis
        parts = theta.split([shape.numel() for shape in shapes])
        for parameter, part, shape in zip(model.parameters(), parts, shapes, strict=True):
            parameter.copy_(part.view(shape))
        for block in blocks:
            losses[place] += F.cross_entropy(model(block.inputs), block.targets, reduction="sum")
    return (losses / len(case.samples)).cpu().numpy().reshape(case.sweep.shape)


@torch.no_grad()
def by_vmap(case: Case, chunk: int) -> np.ndarray:
    """An expert's loop on a GPU: torch.func.vmap over the weights of `chunk` points."""
    model = copy.deepcopy(case.model).eval()
    names = [(name, parameter.shape) for name, parameter in model.named_parameters()]
    buffers = dict(model.named_buffers())
    coefficients = torch.as_tensor(case.sweep.coefficients, dtype=torch.float32, device=case.three.device)
    forward = vmap(lambda weights, x: functional_call(model, (weights, buffers), (x,)), in_dims=(0, None))
    losses = torch.zeros(len(coefficients), device=case.three.device)
    blocks = list(case.samples.blocks(BATCH))
    for begin in range(0, len(coefficients), chunk):
        thetas = coefficients[begin : begin + chunk] @ case.sweep.basis
        parts = thetas.split([shape.numel() for _, shape in names], 1)
        weights = {name: part.unflatten(1, shape) for (name, shape), part in zip(names, parts, strict=True)}
        for block in blocks:
            outputs = forward(weights, block.inputs)
            targets = block.targets.expand(len(outputs), -1)
            values = F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none")
            losses[begin : begin + chunk] += values.view(len(outputs), -1).sum(1)
    return (losses / len(case.samples)).cpu().numpy().reshape(case.sweep.shape)


def _timed(work: Callable[[], np.ndarray], device: str) -> tuple[np.ndarray, float]:
    """Median of three, after one that warms up."""
    spent = []
    for _ in range(4):
        _wait(device)
        begun = time.perf_counter()
        found = work()
        _wait(device)
        spent.append(time.perf_counter() - begun)
        if spent[-1] > 15:
            break
    return found, statistics.median(spent[1:] or spent)


def _say(row: dict[str, Any]) -> None:
    print("  ", {key: entry if isinstance(entry, str) else f"{entry:.2g}" for key, entry in row.items()}, flush=True)


def _numbers(ds: Any) -> np.ndarray:
    """All numbers of a result, one after the other."""
    return np.concatenate([np.ravel(ds[name].values) for name in sorted(ds.data_vars) if ds[name].dtype.kind == "f"])


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
