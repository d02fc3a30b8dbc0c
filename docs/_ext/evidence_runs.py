"""Runs of the campaign: how many there are, what their files lack, and which were trained after the plan was fixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from _ext.evidence_tables import table
from drift.analyses.rounds.numbers import OF_RECORD
from drift.claims import claims
from drift.claims.campaign import execute
from drift.claims.campaign.plan import Plan
from drift.claims.campaign.provenance import added, fixed
from drift.claims.campaign.recorded_run import RecordedRun
from drift.claims.claim import Verdict
from drift.claims.cross import quadratic_error, window_gains
from figures.commands import reproduce
from figures.looks.palette import label as written

CROSS = ("cross-fmnist-mlp-shards2", "cross-cifar10-mlp-shards2")
_IMA = ("ima-table1-fmnist-shards2", "ima-table1-fmnist-dir01")

ByItem = Mapping[str, Sequence[RecordedRun]]
"""Recorded runs by the name of their item."""


def recorded(campaign: Plan, runs: ByItem, lost: ByItem, everything: Sequence[RecordedRun], files: Path) -> str:
    """What is trained and what is left, as `fedscape reproduce --list` counts it."""
    have = execute.recorded(campaign.sets(), files)
    lines = []
    for item, row in zip(campaign.items, reproduce.rows(campaign, have), strict=True):
        units = [unit for units in item.units for unit in units]
        own, diverged = runs[item.name], lost[item.name]
        trained = f"{len(own) + len(diverged)}/{len(units)}" + f", {len(diverged)} diverged" * bool(diverged)
        lacking = ", ".join(f"`{name}`" for name in row["lacking"].split(", ") if name)
        of_paper = "findings" if item.paper == "cross" else f"{written(item.paper)}, {item.item}"
        hours = f"{seconds([*own, *diverged]) / 3600:.2f}"
        complete = row["runs"].replace(" of ", "/")
        lines.append((item.name, of_paper, trained, complete, lacking, hours, f"{row['hours']:.1f}"))
    every = [unit for item in campaign.items for units in item.units for unit in units]
    done = sum(unit.row.minutes for unit in every if unit.identity in have) / 60
    total = (
        f"{len(everything)} runs, {seconds(everything) / 3600:.2f} hours of training by the clock, {done:.1f} "
        f"core-hours by the plan. The files of {sum(map(bool, have.values()))} runs lack numbers."
    )
    head = ("item of the plan", "paper", "trained", "complete", "no number for", "hours of training", "core-hours left")
    return f"{total}\n\n{table(head, lines)}"


def seconds(runs: Iterable[RecordedRun]) -> float:
    """Seconds of all rounds of runs; rounds that one run took from another, with equal times, count once."""
    parts = {
        (repr(run.experiment.clients), run.experiment.task.model, run.experiment.seed, place, value)
        for run in runs
        for place, value in enumerate(run.content["seconds"])
    }
    return sum(value for *_, value in parts)


def counts(campaign: Plan, runs: ByItem, verdicts: Sequence[Verdict], answers: Sequence[Verdict]) -> dict[str, str]:
    """Numbers within sentences, by name."""
    states = [fixed(run, item) for item in campaign.items if item.paper != "cross" for run in runs[item.name]]
    seeds = {name: f"{', '.join(map(str, one))} of `{name}`" for name, one in added(runs, campaign).items()}
    return {
        "fixed": f"{sum(states)} of {len(states)}",
        "added": "; ".join(seeds.values()),
        "tests-claims": f"{max(one.family for one in verdicts)}",
        "tests-findings": f"{max(one.family for one in answers)}",
        "below-margin": below_margin(campaign),
        "identical": identical(runs),
        "first-window": first_window(runs),
        "gain-rounds": gain_rounds(runs),
        **_of_findings(runs),
    }


def below_margin(campaign: Plan) -> str:
    """How many of the effects that FedEve's paper prints are smaller than the margin of their claim."""
    margins = {claim.name: claim.margin or 0.0 for claim in claims()}
    effects = [pair for item in campaign.items if item.paper == "fedeve" for pair in item.printed.items()]
    return f"{sum(abs(effect) < margins[name] for name, effect in effects)} of the {len(effects)}"


def _of_findings(runs: ByItem) -> dict[str, str]:
    """Ranges over runs in docs/findings.md, by name."""
    of_fedavg = {name: [run for run in runs[name] if run.label == "fedavg"] for name in (*CROSS, _IMA[0])}
    cosines = []
    for run in (run for own in of_fedavg.values() for run in own):
        series = run.cached(OF_RECORD["mean_cosine"])["mean_cosine"]
        cosines.append(series.values[series["round"].values >= run.experiment.rounds / 4])
    means, below = [one.mean() for one in cosines], [100 * (one < 0).mean() for one in cosines]
    gains = []
    for run in (run for name in CROSS for run in runs[name] if run.label == "fedeve+ima"):
        series = run.cached(OF_RECORD["gain"])["gain"]
        gains.append(float(series.where(series["round"] >= run.method.first_round(run.experiment.rounds)).max()))
    costs = [_costs(run) for own in of_fedavg.values() for run in own if _costs(run)]
    return {
        "cosine-late": f"{min(means):.3f} to {max(means):.3f}",
        "cosine-below": f"{min(below):.0f} to {max(below):.0f} %",
        "gain-with-ima": at_most(max(gains), 2),
        "client-cost": at_least(min(one["client"].min() for one in costs), 2),
        "random-cost": at_most(max(np.abs(one["random"]).max() for one in costs), 3),
        "growth": _growth(runs),
        "change-errors": _change_errors(runs[_IMA[0]]),
        "gain-dir001": _gain_range(runs["fedeve-table1-mnist-dir001"]),
        "gain-dir01": _gain_range(runs["fedeve-table1-mnist-dir01"]),
        "gain-fmnist": _gain_range(runs[CROSS[0]]),
        "gain-cifar10": _gain_range(runs[CROSS[1]]),
    }


def at_most(value: float, digits: int) -> str:
    """A value rounded up, so that "at most" stays true."""
    return f"{np.ceil(value * 10**digits) / 10**digits:.{digits}f}"


def at_least(value: float, digits: int) -> str:
    """A value rounded down, so that "or more" stays true."""
    return f"{np.floor(value * 10**digits) / 10**digits:.{digits}f}"


def _change_errors(runs: Sequence[RecordedRun]) -> str:
    """Second-order over measured cost of the update change by seed; the table has the mean of these minus 1."""
    ratios = {run.experiment.seed: 1 + quadratic_error(run, kind="change") for run in runs if run.label == "fedavg"}
    return ", ".join(f"{ratios[seed]:.2f} (seed {seed})" for seed in sorted(ratios))


def _gain_range(runs: Sequence[RecordedRun]) -> str:
    """Least and largest mean gain of FedEve over the seeds."""
    means = [mean for _, mean in _gains(runs).values()]
    return f"{min(means):.2f} to {max(means):.2f}"


def _costs(run: RecordedRun) -> dict[str, np.ndarray]:
    """Cost of displacements by their kind, of the stored rounds; empty where there are none."""
    for name, result in run.content["results"].items():
        if name.startswith("drift_curvature") and '"random"' in name:
            parts = result["variables"]
            return dict(zip(parts["kind"]["values"], np.array(parts["cost"]["values"], float).T, strict=True))
    return {}


def _growth(runs: ByItem) -> str:
    """Least and largest growth per round of the step of FedEve with IMA where it diverges, of means of five rounds."""
    (run,) = (run for run in runs["fedeve-table1-mnist-dir001"] if run.label == "fedeve+ima")
    series = run.cached(OF_RECORD["step_norm"])["step_norm"]
    steps = series.values[(series["round"].values >= 1270) & (series["round"].values <= 1290)]
    growth = (steps[1:] / steps[:-1]) ** (1 / 5)
    return f"{growth.min():.3f} to {growth.max():.3f}"


def identical(runs: ByItem) -> str:
    """In how many seeds the runs of IMA have FedAvg's losses until averaging begins, by item."""
    texts = []
    for name in (*CROSS, *_IMA):
        bases = {run.experiment.seed: run for run in runs[name] if run.label == "fedavg"}
        equal = []
        for run in (run for run in runs[name] if run.label == "ima"):
            first = run.method.first_round(run.experiment.rounds)
            pair = [one.metrics()["loss"].values[:first] for one in (run, bases[run.experiment.seed])]
            equal.append(np.array_equal(*pair, equal_nan=True))
        texts.append(f"{sum(equal)} of {len(equal)} in `{name}`")
    return ", ".join(texts)


def first_window(runs: ByItem) -> str:
    """In how many seeds a window of five raises the loss in the first of its rounds, by item."""
    texts = []
    for name in (*CROSS, _IMA[0]):
        gains = [window_gains(run)[1][0] for run in runs[name] if run.label == "fedavg"]  # type: ignore[arg-type]
        texts.append(f"{sum(gain < 0 for gain in gains)} of {len(gains)} seeds of `{name}`")
    return ", ".join(texts)


def gain_rounds(runs: ByItem) -> str:
    """FedEve's mean gain at Dirichlet 0.01 minus that at 1, over 300 rounds and over all, in the runs of Table 1."""
    ends = [_gains(runs[f"fedeve-table1-mnist-{name}"]) for name in ("dir001", "dir1")]
    seeds = sorted(set(ends[0]) & set(ends[1]))
    short, whole = (float(np.mean([ends[0][seed][at] - ends[1][seed][at] for seed in seeds])) for at in (0, 1))
    return f"{short:.3f} over 300 rounds and {whole:.3f} over 1,500, {len(seeds)} seeds"


def _gains(runs: Sequence[RecordedRun]) -> dict[int, tuple[float, float]]:
    """Mean gain over 300 rounds and over all, by seed."""
    series = {run.experiment.seed: run.cached(OF_RECORD["gain"])["gain"] for run in runs if run.label == "fedeve"}
    return {seed: (float(one.where(one["round"] < 300).mean()), float(one.mean())) for seed, one in series.items()}
