"""What each method came to, in a few numbers averaged over its seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.coherence import coherence
from drift.compare import last_ten
from drift.minima import round_minimum
from drift.run import Run
from drift.series import evenly_spaced
from drift.sharpest import eigen_rounds
from drift.variance import drift_variances
from figures import palette


def summary(runs: Sequence[Run], *, round: int = -1) -> xr.Dataset:
    """Accuracy, landscape and drift of every method, as means over its seeds.

    Accuracy and loss are means of the last ten rounds of a run (methods.md 7). The centre offset is the distance
    from the mean of three clients to the minimum of the loss on their plane, fitted below the grid, in the last round
    that kept its clients (3.1.2): a mean over the seeds whose minimum is inside their plane. The eigenvalue is the
    largest one of the Hessian of the training loss at the last global model kept; coherence and both drift variances
    are means over rounds.

    Args:
        runs: Any runs; those that differ in their seed only are one row, named as in `groups`.
        round: Of the plane; negative counts from the last round that kept its clients.

    Returns:
        Dataset over algorithm with accuracy_mean and accuracy_std (fractions; sample standard deviation over
        seeds, NaN for one), loss, centre_offset, centre_offset_error (its standard error, of the fits and the test
        samples), centre_offset_seeds (seeds whose minimum is inside their plane, NaN where no run kept a plane),
        eigenvalue, coherence, period_variance, client_variance, and seeds, the number of runs. NaN where a run kept
        too little.

    Raises:
        LookupError: If no run was given, or one has no complete round.
    """
    grouped = groups(runs)
    rows = [_row(group, round) for group in grouped.values()]
    found = {name: ("algorithm", [row[name] for row in rows]) for name in _ABOUT}
    ds = xr.Dataset(found, coords={"algorithm": list(grouped)}, attrs={"analysis": "summary", "source": "methods.md 7"})
    for name, (long_name, units) in _ABOUT.items():
        ds[name].attrs.update(long_name=long_name, units=units)
    return ds


def groups(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Runs that differ in their seed only, by name.

    The name is the method's label, and where two settings share it, how they differ; runs of the same settings and
    seed, such as two that were imported, are told apart by their own names. No run is dropped; one given twice counts
    once. Methods stand in the order of legends, runs in the order of seeds.

    Raises:
        LookupError: If no run was given, or one has no complete round.
    """
    found: dict[str, list[Run]] = {}
    for run in {run.folder.resolve(): run for run in runs}.values():
        if not run.rounds():
            raise LookupError(f"run {run.name} has no complete round; train it first, or leave it out.")
        found.setdefault(json.dumps(settings(run, seed=False), sort_keys=True), []).append(run)
    if not found:
        raise LookupError("no run was given; train one: fedscape train digits-shards2.")
    whole = [sorted(part, key=lambda run: run.experiment.seed) for group in found.values() for part in _unlike(group)]
    ordered = palette.order(group[0].label for group in whole)
    whole.sort(key=lambda group: ordered.index(group[0].label))
    return dict(zip(_names(whole), whole, strict=True))


def settings(run: Run, *, seed: bool = True) -> dict[str, Any]:
    """Resolved settings of a run by dotted name, such as local.lr."""
    flat = _flat(run.experiment.resolved())
    return flat if seed else {name: value for name, value in flat.items() if name != "seed"}


def differing(tables: Sequence[dict[str, Any]]) -> list[str]:
    """Names whose values are not the same in all tables, in the order in which they first come."""
    names = dict.fromkeys(name for table in tables for name in table)
    return [name for name in names if any(table.get(name) != tables[0].get(name) for table in tables)]


def eigenvalues(run: Run) -> xr.Dataset:
    """The five largest Hessian eigenvalues of the training loss in five rounds that kept their global model."""
    rounds = evenly_spaced(run.kept("globals"), 5)
    return run.cached(eigen_rounds, rounds=rounds, k=5, split="train", tolerance=1e-2)


_ABOUT = {
    "seeds": ("seeds", "1"),
    "accuracy_mean": ("mean accuracy of the last ten rounds", "fraction"),
    "accuracy_std": ("standard deviation of the accuracy over seeds", "fraction"),
    "loss": ("mean loss of the last ten rounds", "nats"),
    "centre_offset": ("distance from the clients' mean to the minimum of their plane", "1"),
    "centre_offset_error": ("standard error of the centre offset", "1"),
    "centre_offset_seeds": ("seeds whose minimum is inside the plane", "1"),
    "eigenvalue": ("largest Hessian eigenvalue", "1"),
    "coherence": ("mean local gradient coherence", "1"),
    "period_variance": ("mean period-drift variance", "1"),
    "client_variance": ("mean client-drift variance", "1"),
}


def _row(runs: list[Run], round: int) -> dict[str, float]:
    measures: dict[str, Callable[[Run], float]] = {
        "loss": lambda run: last_ten(run, "loss"),
        "eigenvalue": _eigenvalue,
        "coherence": lambda run: float(run.cached(coherence).coherence.mean("round")),
        "period_variance": lambda run: float(run.cached(drift_variances).period_variance.mean("round")),
        "client_variance": lambda run: float(run.cached(drift_variances).client_variance.mean("round")),
    }
    accuracy = np.array([last_ten(run) for run in runs])
    deviation = float(accuracy.std(ddof=1)) if len(runs) > 1 else float("nan")
    found = {"seeds": len(runs), "accuracy_mean": float(accuracy.mean()), "accuracy_std": deviation}
    found |= _centre_offset(runs, round)
    return found | {name: float(np.mean([measure(run) for run in runs])) for name, measure in measures.items()}


def _centre_offset(runs: list[Run], round: int) -> dict[str, float]:
    """Mean offset of the runs whose minimum is inside their plane, its standard error, and how many these are."""
    fits = [run.cached(round_minimum, round=round) for run in runs if has_planes(run)]
    inside = [fit for fit in fits if str(fit.minimum_state.values) == "inside"]
    offsets, errors = (
        np.array([float(fit[name]) for fit in inside]) for name in ("minimum_offset", "minimum_offset_error")
    )
    return {
        "centre_offset": float(offsets.mean()) if inside else float("nan"),
        "centre_offset_error": float(np.sqrt((errors**2).sum())) / len(inside) if inside else float("nan"),
        "centre_offset_seeds": len(inside) if fits else float("nan"),
    }


def _eigenvalue(run: Run) -> float:
    if not run.kept("globals"):
        return float("nan")
    return float(eigenvalues(run).eigenvalue.isel(round=-1, rank=0))


def has_planes(run: Run) -> bool:
    """Whether a run kept a round with three clients or more."""
    kept = run.kept("clients")
    return bool(kept) and len(run.round(kept[-1]).ids) >= 3


def _unlike(runs: list[Run]) -> list[list[Run]]:
    """The runs of one setting in one group; where two have one seed, each in a group of its own."""
    seeds = {run.experiment.seed for run in runs}
    return [runs] if len(seeds) == len(runs) else [[run] for run in runs]


def _names(whole: list[list[Run]]) -> list[str]:
    labels = [group[0].label for group in whole]
    names = []
    for group, label in zip(whole, labels, strict=True):
        rivals = [other[0] for other, name in zip(whole, labels, strict=True) if name == label]
        apart = differing([settings(run, seed=False) for run in rivals])
        own = settings(group[0])
        names.append(", ".join([label, *(f"{name.rpartition('.')[2]} {own.get(name, '-')}" for name in apart)]))
    for more in (lambda run: f", {run.name}", lambda run: f" in {run.folder.resolve().parent}"):
        names = [name + more(group[0]) * (names.count(name) > 1) for name, group in zip(names, whole, strict=True)]
    return names


def _flat(table: dict[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items():
        inside = isinstance(value, dict) and value
        found |= _flat(value, f"{above}{name}.") if inside else {f"{above}{name}": value}
    return found
