"""The diagnosis of a run: its state, tested causes, and findings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.counterfactual.followed_changes import followed
from drift.analyses.counterfactual.interventions import WINDOWS, interventions, window_length
from drift.analyses.over_seeds import Estimate
from drift.analyses.rounds.run_state import RunState, recorded_losses, run_state
from drift.diagnosis.causes import Cause, promising, ranked, suspects
from drift.diagnosis.finding import Finding
from drift.diagnosis.findings import findings
from drift.diagnosis.outlying_clients import client_deviations
from drift.runs.run import Run


@dataclass(frozen=True)
class Diagnosis:
    """A diagnosis.

    Args:
        run: Name of the run.
        rounds, clients, per_round: Complete rounds, clients in all and per round.
        last: Number of the last round; rounds before it may not have been recorded.
        loss, error: Test loss (in `loss_units`) and error (fraction) of the last evaluated round.
        loss_units: Unit of the run's losses.
        state: State of the run, one of `drift.analyses.rounds.run_state.STATES`.
        fall: Expected decrease of the loss in the next round, nats.
        broken: Whether it diverged, lost what it had learned, or learned nothing.
        causes: Tested causes, clear ones first; none with `quick`.
        findings: Answers from the record.
        untested: Why no cause was tested; empty if they were.
        memory: State of server and clients in replays: none, restored or anew; empty if nothing was tested.
    """

    run: str
    rounds: int
    clients: int
    per_round: int
    last: int
    loss: float
    error: float
    loss_units: str
    state: str
    fall: Estimate
    broken: bool
    causes: tuple[Cause, ...]
    findings: tuple[Finding, ...]
    untested: str
    memory: str

    @property
    def first(self) -> Cause | None:
        """The first clear cause, or None."""
        return next((cause for cause in self.causes if cause.clear), None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, texts and lists of these."""
        return {**asdict(self), "first": None if self.first is None else self.first.name}


@dataclass(frozen=True)
class TestedCauses:
    """Tested causes of a run and the followed changes, or why there are none."""

    causes: tuple[Cause, ...] = ()
    long: xr.Dataset | None = None
    memory: str = ""
    untested: str = ""


def diagnose(run: Run, *, quick: bool = False, workers: int = 1) -> Diagnosis:
    """Diagnose a run: what drifts, by how much, and what would help.

        print(drift.diagnose(run, quick=True))

    First the state (`run_state`). Then causes, by test: recorded rounds are repeated with one setting changed in either
    direction, in short windows (`interventions`); changes that gain there are followed through the run (`followed`)
    and compared with a placebo, in which only the seed differs (`causes.ranked` has the rule). Then answers to eight
    questions (`findings`). Results are stored in the run's folder, so that a second diagnosis takes seconds.

    Args:
        run: Run to analyse.
        quick: Read the record only, without training: no causes, no variance and covariance, no exact drift.
        workers: Number of processes for the trainings.

    Raises:
        LookupError: If the run has no complete round.
    """
    indices, metrics = run.rounds(), run.metrics()
    run.require_round(-1)
    state = run_state(run)
    tests = TestedCauses(untested="nothing was trained, as was asked") if quick else run_tests(run, state, workers)
    errors = metrics.error.dropna("round") if "error" in metrics else xr.DataArray(())
    loss, error = (float(series[-1]) if series.size else np.nan for series in (recorded_losses(run), errors))
    return Diagnosis(
        run=run.name,
        rounds=len(indices),
        clients=run.experiment.clients.number,
        per_round=run.experiment.clients.per_round,
        last=indices[-1],
        loss=loss,
        error=error,
        loss_units=run.loss_units,
        state=state.name,
        fall=state.fall,
        broken=state.broken or state.name == "not learned",
        causes=tests.causes,
        findings=tuple(findings(run, quick=quick, workers=workers, state=state, long=tests.long)),
        untested=tests.untested,
        memory=tests.memory,
    )


def run_tests(run: Run, state: RunState, workers: int) -> TestedCauses:
    """Causes of a run in their order, or why there are none."""
    try:
        clients = run.cached(client_deviations)
        suspected = [] if state.broken else suspects(clients)  # losses of a broken model are no sign of wrong labels
        tests = run.cached(interventions, starts=_starts(run, state), without=suspected, workers=workers)
        names = promising(tests, state)
        long = run.cached(followed, names=names, workers=workers) if names else None
    except LookupError as missing:
        return TestedCauses(untested=str(missing))
    return TestedCauses(tuple(ranked(run, tests, long, clients)), long, str(tests.attrs["memory"]))


def _starts(run: Run, state: RunState) -> list[int] | None:
    """First rounds of windows around the best round of a broken run; None, evenly spread, for others."""
    if not state.broken:
        return None
    stored, first = set(run.kept("globals")), max(0, state.turn + 1)
    last = len(run.rounds()) - 1
    candidates = [0, first, first + window_length(run)]
    return sorted({index for index in candidates if index in stored and index <= last})[:WINDOWS] or None
