"""Findings about the state of a run, and about the cost of labels that differ between its clients."""

from __future__ import annotations

import numpy as np
import xarray as xr

from drift.analyses.counterfactual.changes import uneven
from drift.analyses.rounds.run_state import FEWEST, RunState, nonfinite
from drift.diagnosis.causes import beyond, gain_of
from drift.diagnosis.finding import Finding, finding
from drift.runs.run import Run


def training(run: Run, state: RunState) -> Finding:
    """State of the run, and the expected gain of the next round."""
    statements = {
        "diverged": f"diverged; the loss was lowest after round {state.best}" if state.best >= 0 else "diverged",
        "lost what it had": f"lost what it had learned; the loss was lowest after round {state.best}",
        "still learning": "not finished, the loss still falls",
        "not learned": "has not learned: no better than a constant answer, and the loss does not fall",
        "plateau": "on a plateau",
    }
    if state.name not in statements:
        raise LookupError(f"fewer than {FEWEST} rounds were evaluated.")
    statement, advice = statements[state.name], ""
    if clients := nonfinite(run):
        statement, advice = f"{statement}; client {listed(clients)} became non-finite", "lower local.lr"
    measure = "expected gain of the next round"
    return finding("training", statement, measure, state.fall, "nats", "accuracy-rounds", suggestion=advice)


def labels(run: Run, clients: xr.Dataset, long: xr.Dataset | None, *, quick: bool) -> Finding:
    """Cost of labels that differ between clients: the gain of the run with evenly partitioned data."""
    figure = "labels-partition"
    if not uneven(run):
        return Finding("labels", "labels differ between clients no more than by chance", figure=figure)
    divergence = float(np.nanmean(clients.divergence))
    amount = f"their mean divergence is {divergence:.2f} of at most 0.69 nats"
    if long is not None and "even" in long.change.values:
        gain, share, placebo = gain_of(long, "even")
        clear = beyond(gain, placebo)
        statement = "that labels differ between clients costs loss" if clear else "no clear cost of labels that differ"
        statement += f" ({100 * share:.0f} % of it)" if clear else ""
        measure = "gain of the same run with even labels"
        return finding("labels", f"{statement}; {amount}", measure, gain, "nats", figure, tested=True)
    tested = not quick and long is not None
    unknown = "what that costs is not known without training" if quick else "what that costs was not followed"
    cost = "within windows it costs less than 2 %" if tested else unknown
    return Finding("labels", f"labels differ between clients, {cost}; {amount}", figure=figure, tested=tested)


def listed(clients: list[int]) -> str:
    """Up to three client numbers, and the number of the others."""
    return ", ".join(map(str, clients[:3])) + (f" and {len(clients) - 3} more" if len(clients) > 3 else "")
