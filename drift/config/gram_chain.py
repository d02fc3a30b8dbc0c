"""Whether rounds of earlier versions, which name neither their run nor the round before, continue each other."""

from __future__ import annotations

import math

import numpy as np

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.store.round_headers import Header
from drift.store.round_record import CLIENTS, PREVIOUS, START, STEP


def continues(left: Header, right: Header, experiment: Experiment, engine: str, *, foreign: bool) -> bool | None:
    """Whether the Gram matrix of a round leads to the next one or to the state, up to rounding of float32.

    Args:
        left: The round.
        right: The next round, or the state.
        experiment: Settings of the run.
        engine: Engine that the run names.
        foreign: Whether its clients may start anywhere, as those of other programs.

    Returns:
        None where that cannot be decided.
    """
    matrix, weights = left.arrays["gram"], _weights(left, experiment, engine)
    if matrix.shape != (len(weights) + CLIENTS,) * 2:
        return None
    size = math.sqrt(abs(matrix[START, START]))
    end = matrix[START, START] + 2 * matrix[START, STEP] + matrix[STEP, STEP]
    slack_end = 1e-6 * math.sqrt(abs(matrix[STEP, STEP])) + 1e-7 * size
    spread = float(weights @ np.sqrt(np.abs(np.diagonal(matrix)[CLIENTS:])))
    mean, slack_mean = float(weights @ matrix[CLIENTS:, CLIENTS:] @ weights), 1e-6 * spread + 5e-7 * size
    pairs = list[tuple[float, float, float]]()
    if right.state:
        pairs += [(end, float(right.arrays["theta"]), slack_end)] if "theta" in right.arrays else []
        if len(weights) and "previous" in right.arrays:
            pairs.append((mean, float(right.arrays["previous"]), slack_mean))
    else:
        other = right.arrays["gram"]
        if min(other.shape) < CLIENTS:
            return None
        ahead_by, expects = lead(experiment.method), _expects_mean(experiment.method)
        if ahead_by is not None and not foreign:
            square = (
                other[START, START] - 2 * ahead_by * other[START, PREVIOUS] + ahead_by**2 * other[PREVIOUS, PREVIOUS]
            )
            pairs.append((end, float(square), slack_end))
        if expects and len(weights):
            pairs.append((mean, float(other[PREVIOUS, PREVIOUS]), slack_mean))
    finite = [pair for pair in pairs if all(map(math.isfinite, pair))]
    return all(_same_square(*pair) for pair in finite) if finite else None


def _same_square(left: float, right: float, slack: float) -> bool:
    """Whether two squared lengths are equal, where the vectors differ by at most `slack`."""
    return abs(left - right) <= 2 * math.sqrt(max(abs(left), abs(right))) * slack + slack**2


def _weights(header: Header, experiment: Experiment, engine: str) -> np.ndarray:
    import torch

    if engine == "recorded":
        return np.asarray(header.arrays["weights"], np.float64)
    return experiment.cohort_weights(torch.from_numpy(header.arrays["sizes"])).numpy()


def lead(method: Method) -> float | None:
    """Multiple of the expected update by which clients start ahead of the global model; None: unknown."""
    base = getattr(method, "base", None)
    if isinstance(base, Method):  # a wrapper sends what its base sends, from the global model where that is fed back
        return lead(base) if getattr(method, "feedback", True) else None
    if type(method).broadcast is Method.broadcast:
        return 0.0
    if hasattr(method, "predict") and hasattr(method, "server_lr"):
        return float(method.server_lr) if method.predict else 0.0
    return None


def _expects_mean(method: Method) -> bool:
    """Whether the previous update that a round records is the mean of the round before."""
    base = getattr(method, "base", None)
    return _expects_mean(base) if isinstance(base, Method) else type(method).momentum is Method.momentum
