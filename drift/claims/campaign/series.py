"""Numbers of rounds in the file of a run: metrics where they were measured, other series as means over blocks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.per_round import ABOUT, result
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.norms_and_weights import locality, update_norms
from drift.analyses.rounds.variance import drift_variances
from drift.runs.run import Run

BLOCKS = 300
"""Largest number of blocks: a run of 300 rounds or fewer has every round, one of 1,500 the mean of every 5."""

TIMED = 25
"""Rounds in each sum of seconds."""

NORMS = ("end_norm", "step_norm")
VARIANCES = ("change_variance", "client_variance", "change_share", "gain", "cohort")

ANALYSES: dict[str, tuple[str, ...]] = {
    "coherence": ("mean_cosine",),
    "drift_variances": VARIANCES,
    "locality": ("locality",),
    "update_norms": NORMS,
}
"""Analyses of Gram matrices that every file has, with their variables over rounds."""

SOURCES = (coherence, drift_variances, locality, update_norms)
"""The functions of these analyses."""

POINTS = ("critical_point", "critical_low", "critical_high")
"""Numbers of a whole run, from coherence."""


def recorded_series(run: Run) -> dict[str, Any]:
    """Every number of every round of a run, as its file stores it.

    Returns:
        rounds (their number), block (rounds per block), measured (metrics with the rounds at which they were measured),
        blocks (mean of each series over each block), points (critical point of coherence and its interval), seconds
        (sums over 25 rounds).
    """
    metrics, rounds = run.metrics(), run.rounds()
    drift = run.cached(coherence)
    columns = {"local_loss": metrics["local_loss"].values} if "local_loss" in metrics else {}
    for analysis in SOURCES:
        values = run.cached(analysis)
        columns |= {name: values[name].values for name in ANALYSES[analysis.__name__] if name in values}
    block = block_size(len(rounds))
    return {
        "rounds": len(rounds),
        "block": block,
        "measured": measured({str(name): values.values for name, values in metrics.items()}, rounds),
        "blocks": {name: means(values, block) for name, values in columns.items()},
        "points": {name: float(drift[name]) for name in POINTS},
        "seconds": sums(metrics["seconds"].values) if "seconds" in metrics else [],
    }


def block_size(rounds: int) -> int:
    """Rounds per block, so that there are 300 blocks or fewer."""
    return max(1, -(-rounds // BLOCKS))


def measured(columns: Mapping[str, np.ndarray], rounds: Sequence[int]) -> list[dict[str, Any]]:
    """Metrics grouped by the rounds at which they were measured.

    Errors that are 1 minus the accuracy are left out, and so are the local loss and the seconds, which every round has.
    """
    groups: dict[tuple[int, ...], dict[str, Any]] = {}
    for name, values in columns.items():
        if name in ("local_loss", "seconds") or (name == "error" and _is_one_minus(values, columns.get("accuracy"))):
            continue
        finite = np.isfinite(values)
        indices = tuple(np.asarray(rounds)[finite].tolist())
        groups.setdefault(indices, {"round": ranges(indices)})[name] = values[finite].tolist()
    return list(groups.values())


def means(values: np.ndarray, block: int) -> list[float]:
    """Mean of the finite values of each block; NaN where it has none."""
    blocks = [values[first : first + block] for first in range(0, len(values), block)]
    finite = [block[np.isfinite(block)] for block in blocks]
    return [float(block.mean()) if len(block) else float("nan") for block in finite]


def sums(values: np.ndarray) -> list[float]:
    """Sums over 25 successive values."""
    return [round(float(np.nansum(values[first : first + TIMED])), 2) for first in range(0, len(values), TIMED)]


def ranges(indices: Sequence[int]) -> list[list[int]]:
    """Ascending indices as [first, last, step] triples."""
    triples: list[list[int]] = []
    for index in indices:
        if triples and len(triples[-1]) == 1:
            triples[-1] += [index, index - triples[-1][0]]
        elif triples and index - triples[-1][1] == triples[-1][2]:
            triples[-1][1] = index
        else:
            triples.append([index])
    return [triple if len(triple) == 3 else [triple[0], triple[0], 1] for triple in triples]


def indices(triples: Sequence[Sequence[int]]) -> list[int]:
    """The indices of [first, last, step] triples."""
    return [index for first, last, step in triples for index in range(first, last + 1, step)]


def as_metrics(content: Mapping[str, Any], numbers: Callable[[Any], np.ndarray]) -> xr.Dataset:
    """The metrics of a file over the rounds at which any was measured; NaN where one was not."""
    groups = [(indices(group["round"]), group) for group in content["measured"]]
    rounds = sorted({index for group_rounds, _ in groups for index in group_rounds})
    columns: dict[str, tuple[str, np.ndarray]] = {}
    for group_rounds, group in groups:
        at = np.searchsorted(rounds, group_rounds)
        for name, values in group.items():
            if name != "round":
                column = np.full(len(rounds), np.nan)
                column[at] = numbers(values)
                columns[name] = ("round", column)
    if "accuracy" in columns:
        if strange := [value for value in columns["accuracy"][1] if value < 0 or value > 1]:  # NaN is neither
            raise ValueError(f"an accuracy of {strange[0]:g} is not within 0 to 1")
        columns.setdefault("error", ("round", 1 - columns["accuracy"][1]))
    return xr.Dataset(columns, {"round": rounds})


def as_blocks(content: Mapping[str, Any], numbers: Callable[[Any], np.ndarray]) -> xr.Dataset:
    """The other series of a file over `round`, the first round of each block."""
    columns = {name: ("round", numbers(values)) for name, values in content["blocks"].items()}
    return xr.Dataset(columns, {"round": list(range(0, content["rounds"], content["block"]))})


def as_analysis(content: Mapping[str, Any], analysis: str, numbers: Callable[[Any], np.ndarray]) -> xr.Dataset | None:
    """The series of an analysis of Gram matrices as its result; None if the file does not have all of them."""
    names = ANALYSES.get(analysis)
    points = POINTS if analysis == "coherence" else ()
    if names is None or not set(names) <= set(content["blocks"]) or not set(points) <= set(content["points"]):
        return None
    values = {name: ((), float(numbers([content["points"][name]]).astype(float)[0])) for name in points}
    series = as_blocks(content, numbers)[list(names)].assign(values)
    return result(series, ABOUT[analysis], block=content["block"])


def _is_one_minus(values: np.ndarray, accuracy: np.ndarray | None) -> bool:
    return accuracy is not None and bool(np.allclose(values, 1 - accuracy, atol=1e-6, equal_nan=True))
