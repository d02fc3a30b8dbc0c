"""What is wrong with a run, what speaks for it, and what would help."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from drift.apart import apart
from drift.causes import Cause, breakdown, ranked, suspects
from drift.findings import Finding, findings
from drift.interventions import interventions
from drift.run import Run


@dataclass(frozen=True)
class Diagnosis:
    """A diagnosis.

    Args:
        run: Name of the run.
        rounds, clients, per_round: Complete rounds, clients in all and in a round.
        loss, error: Of the last round that was evaluated, nats and a fraction.
        broken: Whether it lost what it had learned, learned nothing, or clients became non-finite.
        causes: Tested causes, clear ones first; none with `quick`.
        findings: Answers read from the record.
        untested: Why no cause was tested; empty where they were.
    """

    run: str
    rounds: int
    clients: int
    per_round: int
    loss: float
    error: float
    broken: bool
    causes: tuple[Cause, ...]
    findings: tuple[Finding, ...]
    untested: str

    @property
    def first(self) -> Cause | None:
        """The first clear cause; None where there is none."""
        return next((cause for cause in self.causes if cause.clear), None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, texts and lists of these."""
        return {**asdict(self), "first": None if self.first is None else self.first.name}


def diagnose(run: Run, *, quick: bool = False, workers: int = 1) -> Diagnosis:
    """What drifts in a run, by how much, and what would help.

    Causes are found by trying: rounds of the record are played again with one thing changed (`interventions`), and
    what that gains ranks them (`causes.ranked` has the rules, one set for all runs). Beside them stand answers to
    seven questions (`findings`): is the model off the centre of its basin; what is the largest part of its error; how
    large is period drift beside client drift; is coherence past its critical point; would shrinking help; do clients
    stand apart; is training sound. Results are kept in the run's folder, so that asking again takes seconds.

    Args:
        quick: Read the record only, train nothing: no causes, and no variance, covariance and exact drift.
        workers: Processes that share the trainings.

    Raises:
        LookupError: If the run has no complete round.
    """
    indices, metrics = run.rounds(), run.metrics()
    if not indices:
        raise LookupError(f"run {run.name} has no complete round; train it first.")
    starts = breakdown(run)
    causes, why = ([], "nothing was trained (--quick)") if quick else causes_of(run, starts, workers)
    spec = run.experiment.clients
    last = {name: _last(metrics[name].values) if name in metrics else np.nan for name in ("loss", "error")}
    return Diagnosis(
        run=run.name,
        rounds=len(indices),
        clients=spec.number,
        per_round=spec.per_round,
        loss=last["loss"],
        error=last["error"],
        broken=bool(starts),
        causes=tuple(causes),
        findings=tuple(findings(run, quick=quick, workers=workers)),
        untested=why,
    )


def causes_of(run: Run, starts: list[int], workers: int) -> tuple[list[Cause], str]:
    """Causes of a run in their order, or none and why; `starts` is what `causes.breakdown` gives."""
    clients = run.cached(apart)
    try:
        doubted = [] if starts else suspects(clients)  # the losses of a broken model say nothing about labels
        how = {"starts": starts or None, "without": doubted}
        tests = run.cached(interventions, **how, workers=workers)
    except LookupError as missing:
        return [], str(missing)
    return ranked(run, tests, clients, broken=bool(starts)), ""


def _last(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else float("nan")
