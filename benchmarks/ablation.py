"""Every trick of sweeps alone: what it brings on the benchmark's models.

    python -m benchmarks.ablation [--models cnn_fmnist resnet8] [--rounds 5] [--points 5]

The losses of a plane, as in `benchmarks.landscape`, by the plain sweep (blocks of at least 128 samples, torch's own
layers, the first layer shared), by the plain sweep with one trick more, by the full sweep, and by the expert's loop.
Float32, one thread, process CPU time. In each round all run in a new order with the plain sweep after every third; a
ratio is the time of the plain sweeps before and after over that of a contestant, and the table has the medians over the
rounds and their geometric mean over the models. Above 1 the contestant is faster than the plain sweep. Results go to
benchmarks/results/ablation.json.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

from benchmarks._planes import BATCH, Case, expert, ours
from landscape.sweep import folded_norms, onednn_calls, onednn_layers, two_stage_forward, worker
from landscape.sweep.evaluate import sweep_work
from landscape.sweep.measured_plan import usual_plan
from landscape.sweep.processor import processor_line
from landscape.sweep.sweep_plan import SweepPlan

RESULTS = Path(__file__).resolve().parent / "results" / "ablation.json"

COUNTS = {"cnn_fmnist": 256, "cnn_cifar10": 160, "resnet8": 64, "resnet20": 32, "mlp": 1024, "transformer": 16}
"""Samples by model, so that all take about as long."""

Patches = dict[tuple[object, str], object]


def contestants(case: Case) -> dict[str, Callable[[], np.ndarray]]:
    """By name, what computes the losses; "plain" is first, the others are those that differ on this model."""
    kinds = {type(layer) for layer in case.model.modules()}
    usual = usual_plan(sweep_work(case.task, case.sweep.basis, statistics="task"))
    forwards = onednn_layers._FORWARDS
    by_torch: Patches = {(folded_norms, "convolution"): onednn_calls._plain_convolution}
    plain: Patches = {
        (worker, "LEAST_BLOCK"): BATCH,
        (worker, "packable_forwards"): lambda flat: [],
        (worker, "pooled_first_layer"): lambda flat, shared, *_: shared,
        (worker, "split_stages"): lambda flat, probe: two_stage_forward.Stages(flat, None, []),
        (worker, "OUTPUT_BYTES"): 0,
        (onednn_layers, "_FORWARDS"): {},
        (onednn_layers, "_behind_fresh"): lambda module: [],
    }

    def run(patches: Patches, **fields: object) -> Callable[[], np.ndarray]:
        def computed() -> np.ndarray:
            with _patched(patches):
                return ours(case, plan=SweepPlan(**fields))

        return computed

    def added(*names: str, only: type | None = None, **fields: object) -> Callable[[], np.ndarray]:
        patches = {key: value for key, value in plain.items() if key[1] not in names}
        if only is not None:
            patches[onednn_layers, "_FORWARDS"] = {only: forwards[only]}
        return run(patches, **{"matrices": "torch", **fields})

    packs = "packable_forwards"
    runs: dict[str, tuple[bool, Callable[[], np.ndarray]]] = {
        "plain": (True, added()),
        "blocks of at least 16": (nn.Conv2d in kinds, added("LEAST_BLOCK")),
        "metrics of joined outputs": (True, added("OUTPUT_BYTES")),
        "first layer not shared": (True, added(shared=False)),
        "pool with the first layer": (nn.MaxPool2d in kinds, added("pooled_first_layer", "split_stages")),
        "max-pool by rows": (nn.MaxPool2d in kinds, added(only=nn.MaxPool2d)),
        "ReLU in place": (nn.ReLU in kinds, added("_behind_fresh")),
        "two stages": (case.name.startswith("cnn"), added("split_stages")),
        "dense layers by oneDNN": (
            case.name not in ("resnet8", "resnet20"),
            added(packs, only=nn.Linear, matrices="onednn", every_dense=usual.every_dense),
        ),
        "convolutions by oneDNN": (nn.Conv2d in kinds, added(packs, only=nn.Conv2d, matrices="onednn")),
        "norms folded, by oneDNN": (usual.folded, added(folded=True, shared=False)),
        "norms folded, by torch": (usual.folded, run(plain | by_torch, matrices="torch", folded=True, shared=False)),
        "full": (True, run({}, **asdict(usual))),
        "full, blocks of at least 128": (True, run({(worker, "LEAST_BLOCK"): BATCH}, **asdict(usual))),
        "expert's loop": (True, lambda: expert(case)),
    }
    return {name: function for name, (differs, function) in runs.items() if differs}


def ratios(runs: dict[str, Callable[[], np.ndarray]], rounds: int) -> dict[str, list[float]]:
    """Time of the plain sweeps before and after each other one over its time, once a round."""
    names, found = [name for name in runs if name != "plain"], {}
    expected = runs["plain"]()
    for name in names:
        np.testing.assert_allclose(runs[name](), expected, rtol=1e-5, err_msg=name)
    for _ in range(rounds):
        random.shuffle(names)
        before = _seconds(runs["plain"])
        for start in range(0, len(names), 3):
            spent = {name: _seconds(runs[name]) for name in names[start : start + 3]}
            after = _seconds(runs["plain"])
            for name, seconds in spent.items():
                found.setdefault(name, []).append((before + after) / 2 / seconds)
            before = after
    return found


@contextmanager
def _patched(patches: Patches) -> Iterator[None]:
    with ExitStack() as stack:
        for (module, name), value in patches.items():
            stack.enter_context(patch.object(module, name, value))
        yield


def _seconds(run: Callable[[], np.ndarray]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=COUNTS, default=list(COUNTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--points", type=int, default=5, help="grid size in each direction")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    random.seed(0)
    print(processor_line(), f"torch {torch.__version__}")
    table: dict[str, dict[str, float]] = {}
    for model in chosen.models:
        print(model, flush=True)
        case = Case.of(model, chosen.points, COUNTS[model])
        for name, values in ratios(contestants(case), chosen.rounds).items():
            table.setdefault(name, {})[model] = statistics.median(values)
            low, *_, high = statistics.quantiles(values, n=4)
            print(f"  {name:32}{statistics.median(values):6.2f}   ({low:.2f} to {high:.2f})", flush=True)
    print(f"\n| plain sweep with | {' | '.join(chosen.models)} | geometric mean |")
    print("|---|" + "---|" * (len(chosen.models) + 1))
    for name, row in table.items():
        cells = [f"{row[model]:.2f}" if model in row else "" for model in chosen.models]
        whole = statistics.geometric_mean(row.get(model, 1.0) for model in chosen.models)
        print(f"| {name} | {' | '.join(cells)} | {whole:.2f} |")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"processor": processor_line(), "ratios": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
