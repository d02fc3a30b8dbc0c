"""Every method in one short setting: what a client computes, what is sent, the accuracy; and docs/methods.md.

    python -m benchmarks.methods                      write docs/methods.md from the measured numbers and the methods
    python -m benchmarks.methods --measure [--methods ima swa] [--seeds 0 1 2]      train and measure first

Methods train through the preset `common-fmnist`; for one seed all have the same initial model, partition, cohorts and
minibatches. Runs lie in out/methods, and what is there is not trained again. Accuracy is that of the last ten rounds,
averaged, then mean and sample standard deviation over seeds. The cost is the multiply-accumulates of one client's local
training (the one with most samples in the last of six rounds, `drift.training_cost`) over those of FedAvg with the same
model and client; training on the server is not in it. A method whose preset has another model or number of rounds is
compared with FedAvg in the same. Numbers go to docs/results/methods.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from benchmarks._methods_page import PRESET, page
from drift import training_cost
from drift.config import method as methods
from drift.config.experiment import Experiment
from drift.config.load import read
from drift.runs.run import Run
from drift.simulation.compare import mean_of_last
from drift.simulation.simulate import simulate
from landscape.sweep.processor import processor_line

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "docs" / "results" / "methods.json"
PAGE = ROOT / "docs" / "methods.md"

COSTED = 6
"""Rounds of the run that costs are counted in, which keeps every client: some methods go on from what clients kept."""


def reference(experiment: Experiment) -> Experiment:
    """FedAvg in the preset, with the model and the number of rounds of an experiment."""
    return read(PRESET, method="fedavg", rounds=experiment.rounds, seed=experiment.seed, task=experiment.task)


def measured(name: str, seeds: list[int], runs: Path) -> dict[str, Any]:
    """Numbers of a method: accuracies by seed, also of FedAvg in the same setting, cost, what is sent and kept."""
    wanted = [read(PRESET, method=name, seed=seed) for seed in seeds]
    trained = [_trained(one, runs) for one in wanted]
    plain = [_trained(reference(one), runs) for one in wanted]
    short = read(wanted[0], f"rounds={COSTED}", "keep.clients=all", "keep.globals=all")
    costed, plainly = _trained(short, runs), _trained(reference(short), runs)
    last = costed.round(-1)
    client = int(last.ids[last.sizes.argmax()])
    update = costed.method.local(costed.client(last.index, client))
    return {
        "rounds": wanted[0].rounds,
        "model": wanted[0].task.model,
        "accuracy": [mean_of_last(run) for run in trained],
        "fedavg_accuracy": [mean_of_last(run) for run in plain],
        "untrained": [_untrained(run) for run in trained],
        "macs": _macs(costed),
        "fedavg_macs": _macs(plainly),
        "received": sorted(name.removeprefix("base.") for name in last.sent),
        "uploaded": sorted(update.report),
        "kept": sorted(update.state),
    }


def _trained(experiment: Experiment, runs: Path) -> Run:
    print(f"{experiment.slug}: {experiment.rounds} rounds", flush=True)
    return simulate(experiment, runs=runs)


def _macs(run: Run) -> float:
    return float(run.cached(training_cost).macs_round)


def _untrained(run: Run) -> float:
    """Test accuracy of the initial model."""
    task = run.task
    outputs = task.outputs(task.theta, "test", buffers=task.buffers)
    return float((outputs.argmax(1) == task.split("test").targets).double().mean())


def main() -> None:
    """Train and measure where asked to, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="train and measure before writing")
    parser.add_argument("--methods", nargs="+", default=methods.names(), help="methods to measure; others stay")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=ROOT / "out" / "methods", help="folder of the runs")
    chosen = parser.parse_args()
    held = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {"methods": {}}
    if chosen.measure:
        processor = processor_line()
        held |= {"seeds": chosen.seeds, "processor": processor, "torch": torch.__version__}
        for name in chosen.methods:
            one = held["methods"][name] = measured(name, chosen.seeds, chosen.runs)
            print(f"{name}: accuracy {np.mean(one['accuracy']):.4f}, cost {one['macs'] / one['fedavg_macs']:.2f}")
            NUMBERS.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page(held))


if __name__ == "__main__":
    main()
