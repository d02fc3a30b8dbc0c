"""One thing about a run that is changed, when some of its rounds are played again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drift import method as methods
from drift import partitions
from drift.experiment import Experiment
from drift.keys import rng
from drift.run import Run
from drift.setting import Data

EPOCHS, RATE = 8, 4
"""What local epochs (or steps) and the local rate are divided by."""

_WITHOUT = "without-"


@dataclass(frozen=True)
class Change:
    """A change by name, what it is in words, and its local training as a multiple of that of the recorded rounds."""

    name: str
    text: str
    cost: float


UNCHANGED = Change("unchanged", "nothing changed", 1.0)


def changes(run: Run, *, without: Sequence[int] = ()) -> list[Change]:
    """The changes that make sense for a run:

        everyone    all K clients in every round; where the cohort is smaller
        epochs      an eighth of the local epochs or steps, at least 1; where there are more
        rate        a quarter of the local rate
        even        all clients' samples dealt out anew at random, as many to each as before: no label skew
        plain       FedAvg on the server and the clients; where the recorded weights do not sum to 1 (shrinking)
        without-K   client K has no samples

    Args:
        without: Clients K to leave out, one at a time.
    """
    spec = run.experiment
    clients, local = spec.clients, spec.local
    found = []
    if clients.per_round < clients.number:
        cost = 1.0 if clients.train_all else clients.number / clients.per_round
        found.append(Change("everyone", f"all {clients.number} clients in every round", cost))
    count, unit = (local.epochs, "epoch") if local.steps is None else (local.steps, "step")
    fewer = max(1, count // EPOCHS)
    if fewer < count:
        plural = unit if fewer == 1 else f"{unit}s"
        found.append(Change("epochs", f"{fewer} local {plural} instead of {count}", fewer / count))
    found.append(Change("rate", f"a local rate of {local.lr / RATE:g} instead of {local.lr:g}", 1.0))
    if clients.number > 1:
        found.append(Change("even", "all data dealt out evenly to the clients", 1.0))
    if shrinks(run):
        found.append(Change("plain", "plain averaging, weights that sum to 1", 1.0))
    return [*found, *(Change(f"{_WITHOUT}{client}", f"without client {client}", 1.0) for client in without)]


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
    local = spec.local
    if name == UNCHANGED.name:
        return spec, data
    if name == "everyone":
        return _with(spec, clients={"per_round": spec.clients.number}), data
    if name == "epochs":
        steps = None if local.steps is None else max(1, local.steps // EPOCHS)
        return _with(spec, local={"epochs": max(1, local.epochs // EPOCHS), "steps": steps}), data
    if name == "rate":
        return _with(spec, local={"lr": local.lr / RATE}), data
    if name == "plain":
        return spec.model_copy(update={"method": methods.load("fedavg")()}), data
    if name == "even":
        own = _with(spec, clients={"partition": partitions.load("iid")()})  # one that gives no data anew each round
        return own, replace(data, parts=_dealt(data.parts, spec.seed))
    client = name.removeprefix(_WITHOUT)
    if client == name or not client.isdigit() or int(client) >= spec.clients.number:
        known = "everyone, epochs, rate, even, plain, without-K with the number K of a client"
        raise ValueError(f"no change is called {name!r}; accepted: {known}.")
    nothing = np.zeros(0, dtype=np.int64)
    parts, held = list(data.parts), list(data.held_out)
    parts[int(client)], held[int(client)] = nothing, nothing
    return spec, replace(data, parts=parts, held_out=held)


def _with(spec: Experiment, **parts: dict[str, Any]) -> Experiment:
    """The experiment with settings of its parts replaced."""
    return spec.model_copy(update={name: getattr(spec, name).model_copy(update=new) for name, new in parts.items()})


def _dealt(parts: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    """All numbers in random order, cut at the sizes of the parts."""
    order = rng(seed, "dealt evenly").permutation(np.concatenate(parts))
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return [np.sort(part) for part in np.split(order, cuts)]
