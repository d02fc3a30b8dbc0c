"""How often the first advice of `fedscape diagnose` makes a run better: the tables of docs/diagnosis.md.

    nice python -m benchmarks.diagnosis --page docs/diagnosis.md [--seeds ..] [--settings ..] [--faults ..]

One criterion: the first advice, trained from round 0, lowers the final loss; and how far that loss stays behind the
best of all advices (regret). Trained with cohorts and batches that the diagnosis has not seen (DRAW); the final loss is
the mean over the last three models. Stopped and started again, it goes on where it was. Seeds 1 to 9 were looked at
while rules and settings were made, those of HELD_OUT were not.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from drift.analyses.counterfactual.changes import UNCHANGED, changes
from drift.analyses.counterfactual.followed_changes import LAST, LONGER, longer_by
from drift.analyses.counterfactual.replayed_rounds import bounded_losses, play_again
from drift.analyses.rounds.run_state import run_state
from drift.config.experiment import Experiment
from drift.config.load import read, validated
from drift.diagnosis.diagnose import run_tests
from drift.runs.run import Run
from drift.simulation.simulate import Diverged, simulate
from landscape.sweep.processor import processor_line

HELD_OUT = (41, 42)

DRAW = 99
"""Of cohorts and batches in the trainings that judge an advice; the diagnosis itself uses 0 to 2."""

ROUNDS = 12

_CLIENTS = {"number": 10, "per_round": 5, "partition": {"name": "dirichlet", "concentration": 1.0}}
_LOCAL = {"momentum": 0.0, "epochs": 2, "batch": 10}

SETTINGS: dict[str, dict[str, Any]] = {
    "digits": {
        "rounds": ROUNDS,
        "engine": "batched",
        "task": {"dataset": "digits", "model": "mlp", "model_options": {"hidden": [32]}, "train_samples": 400},
        "clients": _CLIENTS,
        "local": {**_LOCAL, "lr": 0.5},
    },
    "blobs": {
        "rounds": ROUNDS,
        "engine": "batched",
        "task": {
            "dataset": "blobs",
            "model": "mlp",
            "model_options": {"hidden": [32]},
            "dataset_options": {"classes": 10, "features": 20, "samples": 500, "spread": 3.0},
        },
        "clients": _CLIENTS,
        "local": {**_LOCAL, "lr": 0.1},
    },
}
"""Runs without a fault: half of the clients per round, labels somewhat uneven, a rate that suits the data."""

FAULTS: dict[str, tuple[str, ...]] = {
    "none": (),
    "none, even labels, 8 epochs": ("clients.partition=iid", "local.epochs=8"),
    "1 client per round": ("clients.per_round=1",),
    "local rate x 10": ("local.lr=3",),
    "local rate / 30": ("local.lr=0.01",),
    "rate decays by half per round": ("local.lr_decay=0.5",),
    "weight decay 0.1": ("local.weight_decay=0.1",),
    "momentum 0.98": ("local.momentum=0.98",),
    "6 rounds": ("rounds=6",),
    "30 local epochs": ("local.epochs=30",),
    "1 local step": ("local.steps=1",),
    "one label per client": ("clients.partition=shards", "clients.shards=1"),
    "two labels per client": ("clients.partition=shards", "clients.shards=2"),
    "Dirichlet(0.05)": ("clients.concentration=0.05",),
    "client 3 has two labels swapped": ("clients.corrupted=[3]",),
    "gamma 0.9": ("method=shrink", "method.gamma=0.9"),
    "server rate 0.1": ("method.server_lr=0.1",),
    "server rate 2.5": ("method.server_lr=2.5",),
    "FedAdam, server rate 0.3": ("method=fedadam", "method.server_lr=0.3"),
    "FedAvgM, beta 0.98": ("method=fedavgm", "method.beta=0.98"),
    "FedProx, mu 10": ("method=fedprox", "method.mu=10"),
    "IMA from round 1, window 10": ("method=ima", "method.start=1", "method.window=10"),
}
"""What is set in a run without a fault."""

NAMED: dict[str, str] = {
    "1 client per round": "participation",
    "local rate x 10": "rate",
    "local rate / 30": "rate-small",
    "rate decays by half per round": "decay-fast",
    "weight decay 0.1": "weight_decay-large",
    "momentum 0.98": "momentum-large",
    "6 rounds": "rounds",
    "30 local epochs": "epochs",
    "1 local step": "epochs-few",
    "client 3 has two labels swapped": "client-3",
    "gamma 0.9": "method.gamma-small",
    "server rate 0.1": "method.server_lr-small",
    "server rate 2.5": "method.server_lr-large",
    "FedAdam, server rate 0.3": "method.server_lr-large",
    "FedAvgM, beta 0.98": "method.beta-large",
    "FedProx, mu 10": "method.mu-large",
    "IMA from round 1, window 10": "method.window-large",
}
"""The advice that names a fault, where the fault is one setting; no advice changes the labels of clients."""


BEGIN, END = "<!-- tables of benchmarks.diagnosis -->", "<!-- end of tables -->"
"""Lines of a page between which the tables stand."""


def experiment(setting: str, fault: str, seed: int) -> Experiment:
    """A run with one fault."""
    return read(validated({**SETTINGS[setting], "seed": seed}), *FAULTS[fault], f"seed={seed}")


def trained(setting: str, fault: str, seed: int, runs: Path) -> Run:
    """That run; one that diverges stays as it is."""
    spec = experiment(setting, fault, seed)
    try:
        return simulate(spec, runs=runs)
    except Diverged:
        return Run(runs / spec.slug)


def judged(run: Run, every: bool = True) -> dict[str, Any]:
    """State and first advice of a run, and the final loss of a training from round 0 with every advice or the first."""
    begun = time.process_time()
    state = run_state(run)
    tests = run_tests(run, state, 1)
    first = next((cause for cause in tests.causes if cause.clear), None)
    diagnosed = time.process_time() - begun
    advice = {cause.name: cause for cause in tests.causes}
    names = [change.name for change in changes(run, broken=state.broken) if change.name != "even"]
    names += [f"without-{name.removeprefix('client-')}" for name in advice if name.startswith("client-")]
    if not every:
        names = [] if first is None else [first.change]
    final = _final(run, [UNCHANGED.name, *names], run.experiment.rounds)
    if state.unfinished:
        longer = run.experiment.rounds + longer_by(run)
        final[LONGER] = _final(run, [UNCHANGED.name], longer)[UNCHANGED.name]
    return {
        "state": state.name,
        "first": None if first is None else first.name,
        "change": None if first is None else first.change,
        "expected": None if first is None else round(first.share, 4),
        "final": {name: round(value, 5) for name, value in final.items()},
        "diagnosis_seconds": round(diagnosed, 1),
        "seconds": round(time.process_time() - begun, 1),
    }


def _final(run: Run, names: list[str], rounds: int) -> dict[str, float]:
    """Final loss of a training from round 0 with each change, with cohorts and batches of its own."""
    models = [play_again(run, name, 0, rounds, DRAW) for name in names]
    last = range(max(0, rounds - LAST), rounds)
    return dict(zip(names, bounded_losses(run, models, [last] * len(names), "test").tolist(), strict=True))


def best_advice(row: dict[str, Any]) -> str:
    """The advice with the lowest final loss; longer training competes only where it is the first advice."""
    names = [name for name in row["final"] if name != LONGER or row["change"] == LONGER]
    return min(names, key=row["final"].__getitem__)


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The criterion over some runs.

    Returns:
        runs, advised; lowered: the share of the advised runs whose first advice lowered the final loss; gain: mean part
        of the loss that it gained; regret, idle: mean part of the loss by which the run with its first advice (or as
        it is, without one), and the run as it is, stay behind the best of all advices.
    """
    advised = [row for row in rows if row["change"] is not None]
    before = np.array([row["final"][UNCHANGED.name] for row in rows])
    after = np.array([row["final"][row["change"] or UNCHANGED.name] for row in rows])
    best = np.array([row["final"][best_advice(row)] for row in rows])
    gains = [1 - row["final"][row["change"]] / row["final"][UNCHANGED.name] for row in advised]
    return {
        "runs": len(rows),
        "advised": len(advised),
        "lowered": float(np.mean([gain > 0 for gain in gains])) if gains else float("nan"),
        "gain": float(np.mean(gains)) if gains else float("nan"),
        "regret": float(np.mean((after - best) / before)),
        "idle": float(np.mean((before - best) / before)),
    }


def constants(rows: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """An advice given to every run that has it: the share of all runs that it lowers, and its mean regret, a fraction.

    Advices that half of the runs have or more; a run without it stays as it is.
    """
    counts = Counter(name for row in rows for name in row["final"] if name not in (UNCHANGED.name, LONGER))
    result = {}
    for name in sorted(name for name, count in counts.items() if 2 * count >= len(rows)):
        before, after, best = (
            np.array([row["final"][given(row)] for row in rows])
            for given in (_unchanged, partial(_given, name), best_advice)
        )
        result[name] = float(np.mean(after < before)), float(np.mean((after - best) / before))
    return result


def _unchanged(row: dict[str, Any]) -> str:
    return UNCHANGED.name


def _given(name: str, row: dict[str, Any]) -> str:
    return name if name in row["final"] else UNCHANGED.name


def beside(rows: list[dict[str, Any]]) -> list[str]:
    """How often the planted fault is the first advice, and what one advice for all runs would do."""
    planted = [row for row in rows if row["fault"] in NAMED]
    named = [row for row in planted if row["first"] == NAMED[row["fault"]]]
    never = [fault for fault in NAMED if not any(row["fault"] == fault for row in named)]
    of = summary(rows)
    lines = [
        "",
        f"The first advice names the planted fault in {len(named)} of {len(planted)} runs whose fault is one setting. "
        f"It never names: {', '.join(never)}.",
        "",
        "|change given to every run|lowered the loss|regret|",
        "|---" * 3 + "|",
        f"|its first advice by `diagnose`, or none|{100 * of['lowered'] * of['advised'] / of['runs']:.0f} %|"
        f"{100 * of['regret']:.0f} %|",
    ]
    by_regret = sorted(constants(rows).items(), key=lambda entry: entry[1][1])
    lines += [f"|`{name}`|{100 * lowered:.0f} %|{100 * regret:.0f} %|" for name, (lowered, regret) in by_regret]
    return lines


def _advised(rows: list[dict[str, Any]]) -> list[str]:
    """Of the runs of one fault: how often each first advice, the mean loss before and after it, the mean regret."""
    counts = Counter(row["first"] or "none" for row in rows).most_common()
    before, after = (
        np.mean([row["final"][name] for row, name in zip(rows, names, strict=True)])
        for names in ([UNCHANGED.name] * len(rows), [row["change"] or UNCHANGED.name for row in rows])
    )
    told = ", ".join(f"{name} {count}" for name, count in counts)
    return [told, f"{before:.3g}", f"{after:.3g}", f"{100 * summary(rows)['regret']:.0f} %"]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """A line of Markdown per fault, the criterion per setting and over all, and what constant advice would do."""
    heads = ("planted fault", "first advice, and in how many runs", "loss without it", "with it", "regret")
    lines = [f"|{'|'.join(heads)}|", "|---" * len(heads) + "|"]
    for fault in dict.fromkeys(row["fault"] for row in rows):
        lines.append(f"|{'|'.join([fault, *_advised([row for row in rows if row['fault'] == fault])])}|")
    lines += [
        "",
        "|data|runs|with an advice|it lowered the loss|gain|regret|regret of unchanged runs|",
        "|---" * 7 + "|",
    ]
    for setting in (*SETTINGS, "all"):
        some = [row for row in rows if setting in (row["setting"], "all")]
        if some:
            of = summary(some)
            shares = [f"{100 * of[name]:.0f} %" for name in ("lowered", "gain", "regret", "idle")]
            lines.append(f"|{'|'.join([setting, str(of['runs']), str(of['advised']), *shares])}|")
    return [*lines, *beside(rows)] if rows else lines


def main() -> None:
    """Train, diagnose and judge what the file of results lacks, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(HELD_OUT))
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=list(FAULTS))
    parser.add_argument("--runs", type=Path, default=Path("out/diagnosis"))
    parser.add_argument("--json", type=Path, default=Path("docs/results/diagnosis.json"))
    parser.add_argument("--page", type=Path, help="page whose tables are replaced by those of all results there are")
    asked = parser.parse_args()
    rows = json.loads(asked.json.read_text())["rows"] if asked.json.exists() else []
    wanted = [*product(asked.seeds, asked.faults, asked.settings)]
    for seed, fault, setting in wanted:
        if any((row["setting"], row["fault"], row["seed"]) == (setting, fault, seed) for row in rows):
            continue
        run = trained(setting, fault, seed, asked.runs)
        rows.append({"setting": setting, "fault": fault, "seed": seed, **judged(run)})
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        content = {"command": "python -m benchmarks.diagnosis", "processor": processor_line(), "rows": rows}
        asked.json.write_text(
            json.dumps(content, indent=None, separators=(",", ":")).replace('{"setting"', '\n{"setting"')
        )
        print(f"{setting}, {fault}, seed {seed}: {rows[-1]['state']}, {rows[-1]['first']}", flush=True)
    print("\n".join(table(rows)))
    if asked.page is not None:
        before, _, rest = asked.page.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        asked.page.write_text("\n".join([before + BEGIN, *table(rows), END + after]))


if __name__ == "__main__":
    main()
