"""Where a run stands, what would have made it better, and what its record says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.bootstrap import Estimate
from drift.analyses.counterfactual.followed_changes import followed
from drift.analyses.counterfactual.interventions import WINDOWS, interventions, window_length
from drift.analyses.rounds.run_state import RunState, run_state
from drift.diagnosis.causes import Cause, promising, ranked, suspects
from drift.diagnosis.finding import Finding
from drift.diagnosis.findings import findings
from drift.diagnosis.outlying_clients import apart
from drift.runs.run import Run


@dataclass(frozen=True)
class Diagnosis:
    """A diagnosis.

    Args:
        run: Name of the run.
        rounds, clients, per_round: Complete rounds, clients in all and per round.
        loss, error: Of the last round that was evaluated, nats and a fraction.
        state: Where the run stands, one of `drift.analyses.rounds.run_state.STATES`.
        fall: Loss that the next round is expected to gain if training goes on, nats.
        broken: Whether it diverged, lost what it had learned, or learned nothing.
        causes: Tested causes, clear ones first; none with `quick`.
        findings: Answers read from the record.
        untested: Why no cause was tested; empty where they were.
        memory: What server and clients remember in the windows played again: none, restored or anew; empty untested.
    """

    run: str
    rounds: int
    clients: int
    per_round: int
    loss: float
    error: float
    state: str
    fall: Estimate
    broken: bool
    causes: tuple[Cause, ...]
    findings: tuple[Finding, ...]
    untested: str
    memory: str

    @property
    def first(self) -> Cause | None:
        """The first clear cause; None where there is none."""
        return next((cause for cause in self.causes if cause.clear), None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, texts and lists of these."""
        return {**asdict(self), "first": None if self.first is None else self.first.name}


@dataclass(frozen=True)
class Tests:
    """What was tried on a run: windows, changes that were followed, or why there is neither."""

    causes: tuple[Cause, ...] = ()
    long: xr.Dataset | None = None
    memory: str = ""
    untested: str = ""


def diagnose(run: Run, *, quick: bool = False, workers: int = 1) -> Diagnosis:
    """What drifts in a run, by how much, and what would help.

    The state comes first (`run_state`). Causes are found by trying: rounds of the record are played again with one
    setting changed in either direction, in short windows (`interventions`); what gains there is followed through the
    run (`followed`) and compared with a placebo, in which only the seed differs (`causes.ranked` has the rule). Then
    come answers to eight questions (`findings`). Results are stored in the run's folder, so that asking again takes
    seconds.

    Args:
        quick: Read the record only, train nothing: no causes, and no variance, covariance and exact drift.
        workers: Processes that share the trainings.

    Raises:
        LookupError: If the run has no complete round.
    """
    indices, metrics = run.rounds(), run.metrics()
    if not indices:
        raise LookupError(f"run {run.name} has no complete round; train it first.")
    state = run_state(run)
    tests = Tests(untested="nothing was trained (--quick)") if quick else tested(run, state, workers)
    spec = run.experiment.clients
    last = {name: _last(metrics[name].values) if name in metrics else np.nan for name in ("loss", "error")}
    return Diagnosis(
        run=run.name,
        rounds=len(indices),
        clients=spec.number,
        per_round=spec.per_round,
        loss=last["loss"],
        error=last["error"],
        state=state.name,
        fall=state.fall,
        broken=state.broken or state.name == "not learned",
        causes=tests.causes,
        findings=tuple(findings(run, quick=quick, workers=workers, state=state, long=tests.long)),
        untested=tests.untested,
        memory=tests.memory,
    )


def tested(run: Run, state: RunState, workers: int) -> Tests:
    """Causes of a run in their order, or none and why."""
    try:
        clients = run.cached(apart)
        doubted = [] if state.broken else suspects(clients)  # the losses of a broken model say nothing about labels
        tests = run.cached(interventions, starts=_starts(run, state), without=doubted, workers=workers)
        names = promising(tests, state)
        long = run.cached(followed, names=names, workers=workers) if names else None
    except LookupError as missing:
        return Tests(untested=str(missing))
    return Tests(tuple(ranked(run, tests, long, clients)), long, str(tests.attrs["memory"]))


def _starts(run: Run, state: RunState) -> list[int] | None:
    """First rounds of windows around the best round of a broken run; None, evenly spread, for others."""
    if not state.broken:
        return None
    stored, first = set(run.kept("globals")), max(0, state.best + 1)
    last = len(run.rounds()) - 1
    wanted = [0, first, first + window_length(run)]
    starts = sorted({index for index in wanted if index in stored and index <= last})[:WINDOWS]
    return starts or None


def _last(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else float("nan")
