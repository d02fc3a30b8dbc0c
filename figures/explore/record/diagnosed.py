"""The diagnosis of a run for the page: computed as a job, and where each of its answers is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drift.diagnosis.causes import Cause, suspects
from drift.diagnosis.diagnose import Diagnosis, diagnose
from drift.diagnosis.finding import Finding
from drift.diagnosis.findings import is_odd
from drift.diagnosis.outlying_clients import client_deviations
from drift.runs.run import Run

SHOWN_IN: dict[str, dict[str, Any]] = {
    "accuracy-rounds": {"view": "runs", "number": "loss"},
    "norms-rounds": {"view": "runs", "number": "update_norm_mean"},
    "labels-partition": {"view": "round"},
    "lines-globals": {"view": "path"},
    "scale-invariance": {"view": "weights", "round": None},
    "bias-rounds": {"view": "drift", "drift.rounds": "few"},
    "variance-rounds": {"view": "drift"},
    "coherence-rounds": {"view": "drift"},
    "locality-rounds": {"view": "drift"},
}
"""What the selection becomes for the figure that shows an answer."""


@dataclass(frozen=True)
class Diagnosed:
    """A diagnosis.

    Args:
        diagnosis: The diagnosis.
        clients: Clients that stand apart from the others, ids; suspected ones first.
    """

    diagnosis: Diagnosis
    clients: tuple[int, ...]


def diagnosed(run: Run, quick: bool) -> Diagnosed:
    """Diagnose a run; for `Jobs.long`.

    Args:
        run: The run.
        quick: Whether nothing is trained.
    """
    diagnosis = diagnose(run, quick=quick)
    try:
        clients = run.cached(client_deviations)
    except LookupError:  # nobody said which data its clients have
        return Diagnosed(diagnosis, ())
    odd = [int(number) for number in clients.client.values if is_odd(clients.sel(client=number))]
    return Diagnosed(diagnosis, tuple(dict.fromkeys([*suspects(clients), *odd])))


def view_of(answer: Finding | Cause, result: Diagnosed) -> dict[str, Any]:
    """Fields of the selection that show an answer; empty where no view does.

    Args:
        answer: A finding or cause of the diagnosis.
        result: The diagnosis.
    """
    view = dict(SHOWN_IN.get(answer.figure, {}))
    if answer.name.startswith("client-"):
        view |= {"view": "round", "clients": [int(answer.name.rpartition("-")[2])]}
    elif answer.name == "clients" and result.clients:
        view["clients"] = list(result.clients)
    return view
