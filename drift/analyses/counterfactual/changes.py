"""Changes of one setting or of the data, for replays of rounds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from drift.analyses.counterfactual.numeric_settings import knobs, present_value, value_to_try, with_settings
from drift.analyses.rounds.labels import js_divergence
from drift.config.experiment import Experiment
from drift.config.random_keys import rng
from drift.partitions import histogram, load
from drift.runs.run import Run
from drift.training.data import Data

UNEVEN = 1.5
"""Ratio from which labels differ: their divergence over that of the same data, partitioned at random."""

_WITHOUT = "without-"

_LENGTHENING = ("local.lr-larger", "local.epochs-larger", "local.steps-larger", "local.momentum-larger")
"""Changes that lengthen local training; not tried in a run that diverged or lost what it had."""


@dataclass(frozen=True)
class Change:
    """One change.

    Args:
        name: everyone, even, plain, without-K, or the key of a setting with "-smaller" or "-larger".
        text: Description.
        cost: Its local training as a multiple of that of the recorded rounds.
        settings: Values by key, as --set takes them; empty if no setting makes the change.
    """

    name: str
    text: str
    cost: float
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> str:
        """The settings as options of `fedscape train`."""
        return " ".join(f"--set {key}={_written(value)}" for key, value in self.settings.items())


UNCHANGED = Change("unchanged", "nothing changed", 1.0)


def changes(run: Run, *, without: Sequence[int] = (), broken: bool = False) -> list[Change]:
    """The possible changes of a run, by its record and settings:

        everyone      all K clients in every round; where the cohort is smaller
        KEY-smaller   every numeric setting of local training (rate, its decay, epochs or steps, momentum, weight decay)
        KEY-larger    and of the method, by `drift.analyses.counterfactual.numeric_settings`; in a broken run none that
        lengthens the clients' way, and
                      also local.lr-smallest, a sixteenth of the rate
        even          all clients' samples dealt out anew at random, as many to each as before; where labels differ
                      between clients by more than chance
        plain         FedAvg on the server and the clients; where the recorded weights do not sum to 1 (shrinking)
        without-K     client K has no samples

    Args:
        without: Clients K to leave out, one at a time.
        broken: Whether the run diverged or lost what it had.
    """
    return list(_changes(run, tuple(without), broken, run.committed))


@lru_cache(maxsize=8)
def _changes(run: Run, without: tuple[int, ...], broken: bool, committed: int) -> tuple[Change, ...]:
    spec = run.experiment
    number, cohort = spec.clients.number, spec.clients.per_round
    possible = []
    if cohort < number:
        cost = 1.0 if spec.clients.train_all else number / cohort
        possible.append(Change("everyone", f"all {number} clients per round", cost, {"clients.per_round": number}))
    for key, values in knobs(spec).items():
        before = present_value(spec, key)
        for direction, value in values.items():
            name = f"{key}-{direction}"
            if (broken and name in _LENGTHENING) or (direction == "smallest" and not broken):
                continue
            cost = value / before if key in ("local.epochs", "local.steps") else 1.0
            possible.append(Change(name, f"{key} {value:g} instead of {before:g}", cost, {key: value}))
    if uneven(run):
        possible.append(Change("even", "all data dealt out evenly to the clients", 1.0))
    if shrinks(run):
        possible.append(Change("plain", "plain averaging, weights that sum to 1", 1.0, {"method": "fedavg"}))
    return (*possible, *(Change(f"{_WITHOUT}{client}", f"without client {client}", 1.0) for client in without))


def uneven(run: Run) -> bool:
    """Whether labels differ between the clients by more than the same data dealt out at random would."""
    parts, labels, classes = run.parts, run.labels, len(run.dataset.classes)
    if not classes or len(parts) < 2 or not sum(map(len, parts)):
        return False
    means = []
    for split in (parts, _dealt(parts, run.experiment.seed)):
        counts = histogram(labels, split, classes)
        means.append(float(np.nanmean(js_divergence(counts, counts.sum(0)))))
    return means[0] > UNEVEN * means[1]


def shrinks(run: Run) -> bool:
    """Whether the aggregation weights of the last ten rounds sum to other than 1."""
    sums = [float(run.round(index).weights.sum()) for index in run.rounds()[-10:] if len(run.round(index).ids)]
    return any(abs(total - 1) > 1e-6 for total in sums)


def changed(run: Run, name: str) -> tuple[Experiment, Data]:
    """Experiment and data of a run with the change of this name.

    Raises:
        ValueError: If no change has this name.
    """
    spec, data = run.experiment, run.dataset
    if name == UNCHANGED.name:
        return spec, data
    if name == "everyone":
        return with_settings(spec, {"clients.per_round": spec.clients.number}), data
    if name == "plain":
        return with_settings(spec, {"method": "fedavg"}), data
    if name == "even":
        clients = spec.clients.model_copy(update={"partition": load("iid")()})  # one that gives no data anew per round
        return spec.model_copy(update={"clients": clients}), replace(data, parts=_dealt(data.parts, spec.seed))
    client = name.removeprefix(_WITHOUT)
    if client != name and client.isdigit() and int(client) < spec.clients.number:
        nothing = np.zeros(0, dtype=np.int64)
        parts, buffer = list(data.parts), list(data.held_out)
        parts[int(client)], buffer[int(client)] = nothing, nothing
        return spec, replace(data, parts=parts, held_out=buffer)
    key, _, direction = name.rpartition("-")
    try:
        return with_settings(spec, {key: value_to_try(spec, key, direction)}), data
    except KeyError:
        settings = ", ".join(f"{key}-{direction}" for key, values in knobs(spec).items() for direction in values)
        accepted = f"everyone, even, plain, without-K with the number K of a client, {settings}"
        raise ValueError(f"no change is called {name!r}; accepted: {accepted}.") from None


def _dealt(parts: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    """All numbers in random order, cut at the sizes of the parts."""
    order = rng(seed, "dealt evenly").permutation(np.concatenate(parts))
    cuts = np.cumsum([len(numbers) for numbers in parts])[:-1]
    return [np.sort(numbers) for numbers in np.split(order, cuts)]


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
