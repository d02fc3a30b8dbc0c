"""What is wrong with a run, in the order of what its removal gained in the test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from drift.apart import APART
from drift.bootstrap import Estimate, mean_interval
from drift.interventions import window_length
from drift.run import Run

CLEAR = 0.02
"""Part of the loss that a gain must reach, at the low end of its interval, for a cause to be clear."""

WRONG = 2.0
"""Loss on a client's data over that on others' data of the same classes from which its labels are suspected."""

CHANCE = 0.95
"""Part of the loss of the best constant answer from which a model counts as having learned nothing."""

LEAVE_OUT = 2
"""Clients that are left out, at most, to see whether that gains."""


@dataclass(frozen=True)
class Cause:
    """A cause that was tested.

    Args:
        name: participation, epochs, rate, labels, shrinking or client-K.
        title: It in plain words.
        test: What was changed in the test; empty where nothing was tested.
        gain: Loss gained by that, in nats.
        share: The gain as a part of the recorded loss, in the mean over windows.
        clear: Whether it is a cause by the rules of `ranked`.
        note: What else speaks for or against it.
        figure: Of the gallery, to look at.
    """

    name: str
    title: str
    test: str
    gain: Estimate
    share: float
    clear: bool
    note: str
    figure: str


_NAMES = {
    "everyone": ("participation", "too few clients in a round", "variance-rounds"),
    "epochs": ("epochs", "local training too long", "locality-rounds"),
    "rate": ("rate", "local rate too large", "norms-rounds"),
    "even": ("labels", "labels differ between clients", "labels-partition"),
    "plain": ("shrinking", "global model shrunk too much", "scale-invariance"),
}


def ranked(run: Run, tests: xr.Dataset, clients: xr.Dataset, *, broken: bool) -> list[Cause]:
    """Causes, clear ones first, then by the share of the loss that was gained.

    A cause is clear where the low end of the interval around its share is at least 2 %. Two rules read the record
    beside the tests, because two remedies can gain by one and the same thing:

        Fewer epochs and a smaller rate both shorten the clients' way. Where both gain, it is long training if the
        clients' own losses fall below half of the test loss (they have learned their data by heart), and a large
        rate if not, or if the run broke down. The one that is named takes the larger gain of the two.

        A client is suspected where the global model's loss on its data stands apart (z > 3.5) and is at least twice
        that on others' data of the same classes. It is a cause unless leaving it out loses 2 % of the loss or more:
        then its data are rare rather than wrong. One client of many moves the loss too little for a clear gain to be
        asked for; it comes after clear causes that gain more.

    Args:
        tests: What `interventions` gives.
        clients: What `apart` gives.
        broken: Whether the run lost what it had learned, or learned nothing.
    """
    loss = tests.loss.values
    found = [_cause(run, tests, str(name), clients) for name in tests.change.values]
    found = _one_way(found, _learned_by_heart(run, tests), broken) if np.isfinite(loss).any() else found
    return sorted(found, key=lambda cause: (not cause.clear, -np.nan_to_num(cause.share, nan=-np.inf)))


def suspects(clients: xr.Dataset) -> list[int]:
    """Clients whose labels may be wrong, the most striking first."""
    odd = (clients.excess_z > APART) & (clients.ratio >= WRONG)
    numbers = clients.client.values[odd.values]
    return [int(one) for one in sorted(numbers, key=lambda one: -float(clients.excess_z.sel(client=one)))][:LEAVE_OUT]


def breakdown(run: Run) -> list[int]:
    """First rounds of windows around the round in which a run broke down; empty for a run that did not.

    A run broke down where its last loss is not finite, or not below 95 % of that of the best constant answer (the
    entropy of the test labels), or where clients became non-finite. The windows start at the three rounds from the
    one after the lowest loss on, or at the first three where nothing was ever learned.
    """
    indices, metrics = run.rounds(), run.metrics()
    if "loss" not in metrics or not indices:
        return []
    loss, constant = metrics.loss.dropna("round"), CHANCE * chance(run)
    lost = len(loss) == 0 or not float(loss[-1]) < constant
    if not lost and not nonfinite(run):
        return []
    learned = loss.where(np.isfinite(loss) & (loss < constant), drop=True)
    length = window_length(run)
    first = int(learned["round"][int(learned.argmin("round"))]) + 1 if len(learned) else 0
    held = [index for index in range(first, first + 3) if index + length <= len(indices)]
    return held or [index for index in range(3) if index + length <= len(indices)]


def nonfinite(run: Run) -> list[int]:
    """Clients that became non-finite in any round."""
    found = {int(one) for index in run.rounds() for one in run.round(index).extras.get("excluded", ())}
    return sorted(found)


def chance(run: Run) -> float:
    """Loss of the best constant answer, the entropy of the test labels in nats."""
    counts = np.bincount(run.task.samples["test"].targets.numpy())
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _cause(run: Run, tests: xr.Dataset, change: str, clients: xr.Dataset) -> Cause:
    row = tests.sel(change=change)
    gain, share = mean_interval(row.gain.values), mean_interval((row.gain / tests.loss).values)
    clear, note = share.low >= CLEAR, ""
    if change.startswith("without-"):
        number, figure = int(change.removeprefix("without-")), "labels-partition"
        one = clients.sel(client=number)
        name, title = f"client-{number}", f"client {number}: labels may be wrong"
        clear = bool(share.value > -CLEAR)
        far = f"z = {float(one.excess_z):.1f}"
        note = f"loss on its data {float(one.ratio):.1f} x that on others' of the same classes, {far}"
    else:
        name, title, figure = _NAMES[change]
    if change == "even":
        note = f"divergence of labels {float(clients.divergence.mean()):.2f} of at most 0.69 nats"
    if change == "everyone":
        note = f"{run.experiment.clients.per_round} of {run.experiment.clients.number} clients in a round"
    return Cause(name, title, str(row.text.values), gain, share.value, bool(clear), note, figure)


def _learned_by_heart(run: Run, tests: xr.Dataset) -> bool:
    """Whether the clients' own losses, in the mean over their steps, are below half of the test loss."""
    metrics = run.metrics()
    if "local_loss" not in metrics:
        return False
    own = metrics.local_loss.reindex(round=tests["round"].values).values
    return bool(np.nanmean(own) < np.nanmean(tests.loss.values) / 2)


def _one_way(found: list[Cause], by_heart: bool, broken: bool) -> list[Cause]:
    """The causes, with one of long training and large rate where both are clear."""
    both = {cause.name: cause for cause in found if cause.name in ("epochs", "rate") and cause.clear}
    if len(both) < 2:
        return found
    named, other = ("epochs", "rate") if by_heart and not broken else ("rate", "epochs")
    why = "clients learn their data by heart" if named == "epochs" else "clients do not learn their own data"
    larger = max(both.values(), key=lambda cause: cause.share)
    said = {
        named: {**vars(both[named]), "gain": larger.gain, "share": larger.share, "note": why, "test": larger.test},
        other: {**vars(both[other]), "clear": False, "note": "helps for the same reason"},
    }
    return [Cause(**said[cause.name]) if cause.name in said else cause for cause in found]
