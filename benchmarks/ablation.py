"""Every choice of sweeps alone: what it brings on the benchmark's models.

    python -m benchmarks.ablation [--models cnn_fmnist resnet8] [--rounds 5] [--points 5]

The losses of a plane, as in `benchmarks.landscape`, by a sweep, by one with another choice, and by the expert's loop.
Float32, one thread, process CPU time. In each round all run in a new order with the sweep itself after every third; a
ratio is the time of a contestant over that of the sweeps before and after, and the table has the medians over the
rounds and their geometric mean over the models. Above 1 the sweep is faster. The last lines are shares of the sweep's
time: inside convolutions, matrix products and attention, and inside batch normalisation. Results go to
benchmarks/results/ablation.json.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from benchmarks._planes import Case, expert, ours
from benchmarks.training import time_share
from landscape.sweep import first_layer, worker
from landscape.sweep.precision import has_bfloat16
from landscape.sweep.processor import processor, processor_line

RESULTS = Path(__file__).resolve().parent / "results" / "ablation.json"

COUNTS = {"cnn_fmnist": 256, "cnn_cifar10": 160, "resnet8": 256, "resnet20": 64, "mlp": 1024, "transformer": 16}
"""Samples by model, so that all take about as long."""

FAST = 'precision="fast"'

PRODUCTS = (
    "aten::mkldnn_convolution",
    "aten::addmm",
    "aten::mm",
    "aten::bmm",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
)
"""Torch's names of convolutions, matrix products and attention."""


def contestants(case: Case) -> dict[str, Callable[[], np.ndarray]]:
    """By name, what computes the losses; the sweep itself is first, the others are those that differ on this model."""

    def changed(module: object, name: str, value: int) -> Callable[[], np.ndarray]:
        def computed() -> np.ndarray:
            with patch.object(module, name, value):
                return ours(case)

        return computed

    convolves = nn.Conv2d in map(type, case.model.modules())
    runs: dict[str, tuple[bool, Callable[[], np.ndarray]]] = {
        "sweep": (True, lambda: ours(case)),
        "first layer never shared": (True, changed(first_layer, "READ_COST", 10**9)),
        "first layer always shared": (True, changed(first_layer, "READ_COST", 0)),
        "blocks of 2.5 MiB": (convolves, changed(worker, "BLOCK_BYTES", 5 * 2**19)),
        "blocks of 32 MiB": (convolves, changed(worker, "BLOCK_BYTES", 2**25)),
        FAST: (has_bfloat16(), lambda: ours(case, precision="fast")),
        "expert's loop": (True, lambda: expert(case)),
    }
    return {name: function for name, (differs, function) in runs.items() if differs}


def ratios(runs: dict[str, Callable[[], np.ndarray]], rounds: int) -> dict[str, list[float]]:
    """Time of each other run over that of the sweeps before and after it, once a round."""
    first, *names = runs
    expected = runs[first]()
    for name in names:
        np.testing.assert_allclose(runs[name](), expected, rtol=1e-2 if name == FAST else 1e-5, err_msg=name)
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        random.shuffle(names)
        before = _seconds(runs[first])
        for start in range(0, len(names), 3):
            spent = {name: _seconds(runs[name]) for name in names[start : start + 3]}
            after = _seconds(runs[first])
            for name, seconds in spent.items():
                found.setdefault(name, []).append(2 * seconds / (before + after))
            before = after
    return {name: found[name] for name in runs if name in found}


def table(models: list[str], found: dict[str, dict[str, float]]) -> str:
    """Ratios by contestant and model as Markdown; models that a contestant does not change count as 1."""
    lines = [f"| | {' | '.join(models)} | geometric mean |", "|---|" + "---|" * (len(models) + 1)]
    for name, row in found.items():
        cells = [f"{row[model]:.2f}" if model in row else "" for model in models]
        whole = statistics.geometric_mean(row.get(model, 1.0) for model in models)
        lines.append(f"| {name} | {' | '.join(cells)} | {whole:.2f} |")
    return "\n".join(lines)


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
    found: dict[str, dict[str, float]] = {}
    shares: dict[str, dict[str, float]] = {}
    for model in chosen.models:
        print(model, flush=True)
        case = Case.of(model, chosen.points, COUNTS[model])
        for name, values in ratios(contestants(case), chosen.rounds).items():
            found.setdefault(name, {})[model] = statistics.median(values)
            print(f"  {name:32}{statistics.median(values):6.2f}   ({min(values):.2f} to {max(values):.2f})", flush=True)
        shares[model] = {
            "products": time_share(lambda: ours(case), PRODUCTS),  # noqa: B023
            "batch normalisation": time_share(lambda: ours(case), ("aten::native_batch_norm",)),  # noqa: B023
        }
        print(f"  {', '.join(f'{name} {share:.0%}' for name, share in shares[model].items())}", flush=True)
    print(f"\n{table(chosen.models, found)}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"processor": processor(), "ratios": found, "shares": shares}, indent=1) + "\n")


if __name__ == "__main__":
    main()
