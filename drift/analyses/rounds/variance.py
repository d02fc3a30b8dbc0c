"""Variances of period drift and client drift, and the Kalman gain of FedEve."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import parameters, result, series
from drift.analyses.rounds.locality import distances
from drift.config.cohort_weights import cohort_weights
from drift.config.method import Method
from drift.methods.fedeve import fuse
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.gram import CLIENTS, PREVIOUS, gram
from drift.store.round_record import Round

Momentum = Literal["recorded", "previous", "zero"]
Center = Literal["weighted", "uniform"]


@analysis("round", cost="record")
def drift_variances(
    run: Run, *, momentum: Momentum = "recorded", center: Center = "weighted", sigma0: float = 0.0
) -> xr.Dataset:
    """Period-drift and client-drift variance of every round, and the Kalman gain of FedEve.

        sigma_Q^2 = |M - D|^2 / (m d),  sigma_R^2 = sum_k |D_k - D|^2 / (m^2 d)
        G = (s + sigma_Q^2) / (s + sigma_Q^2 + sigma_R^2),  s' = (1 - G) (s + sigma_Q^2)

    They follow from the Gram matrix, for every method. The variances are per parameter and include the 1/m of
    equation 13: sigma_R^2 is the variance of a mean of m updates. Clients without samples do not count in m.
    For a FedEve run with one gain, the result equals the recorded one.

    Source: Shen et al., FedEve, equations 12 and 13; methods.md 1.4 and 3.4.

    Args:
        run: A run of any method.
        momentum: M, which the update D is compared with. "recorded": FedEve's M, for methods without a momentum
            the previous mean update. "previous": that for every method; where a momentum was recorded instead,
            it needs the clients of two successive rounds, and is NaN where these were not kept. "zero": nothing,
            as in the author's code (EVE-1).
        center: Mean that sigma_R^2 is around, weighted or uniform (EVE-2).
        sigma0: s before the first round.

    Returns:
        Dataset over round with period_variance, client_variance, their shares of the sum, gain, sigma (s', a
        variance) and cohort m; attribute d.
    """
    d = parameters(run)

    def measure(record: Round) -> dict[str, float]:
        if not bool((record.sizes > 0).any()):
            return {}
        weights = cohort_weights(run.experiment, record.sizes)
        client = client_variance(record.gram, weights, d, uniform=center == "uniform")
        values = {"client_variance": client, "cohort": int((weights > 0).sum())}
        matrix = _against_previous(run, record) if momentum == "previous" else record.gram
        if matrix is None:
            return values
        period = period_variance(matrix, weights, d, momentum=momentum != "zero")
        if period + client > 0:
            values |= {"period_share": period / (period + client), "client_share": client / (period + client)}
        return {**values, "period_variance": period}

    about = {name: text for name, text in _ABOUT.items() if name not in ("gain", "sigma")}
    dataset = series(run, measure, about, analysis="drift_variances", source="FedEve, equations 12 and 13")
    gain, sigma = gains(dataset["period_variance"].values, dataset["client_variance"].values, sigma0)
    dataset = dataset.assign(gain=("round", gain), sigma=("round", sigma))
    return result(dataset, _ABOUT, d=d, momentum=momentum, center=center, sigma0=sigma0)


def gains(period: np.ndarray, client: np.ndarray, sigma0: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Kalman gain and variance after each round, shape (R,), from both drift variances over the rounds.

    A round without them has NaN and leaves the variance as it is.
    """
    columns = np.full((2, len(period)), np.nan)
    carried = torch.tensor(sigma0, dtype=torch.float64)
    for row, (q, r) in enumerate(zip(period, client, strict=True)):
        if not np.isnan(q) and not np.isnan(r):
            gain, carried = fuse(carried, torch.as_tensor(q), torch.as_tensor(r))
            columns[:, row] = float(gain), float(carried)
    return columns[0], columns[1]


def period_variance(gram: Tensor, weights: Tensor, d: int, *, momentum: bool = True) -> float:
    """sigma_Q^2 = |M - D|^2 / (m d) from the Gram matrix of a round; |D|^2 / (m d) without the momentum.

    Args:
        gram: Inner products of a round, shape (m + 3, m + 3).
        weights: Sum 1, shape (m,); clients with weight 0 do not count.
        d: Number of parameters.
    """
    combination = torch.zeros(len(gram), dtype=torch.float64)
    combination[CLIENTS:] = weights
    if momentum:
        combination[PREVIOUS] = -1
    square = combination @ gram.double() @ combination
    return float(square.clamp(min=0)) / (int((weights > 0).sum()) * d)


def client_variance(gram: Tensor, weights: Tensor, d: int, *, uniform: bool = False) -> float:
    """sigma_R^2 = sum_k |D_k - D|^2 / (m^2 d) from the Gram matrix of a round, around the weighted or uniform mean."""
    active = weights > 0
    m = int(active.sum())
    centre = active.double() / m if uniform else weights
    return float(distances(gram, centre)[active].square().sum()) / (m**2 * d)


_ABOUT = {
    "period_variance": ("period-drift variance", "1"),
    "client_variance": ("client-drift variance", "1"),
    "period_share": ("period drift in the sum of both variances", "fraction"),
    "client_share": ("client drift in the sum of both variances", "fraction"),
    "gain": ("Kalman gain", "1"),
    "sigma": ("variance of the fused update", "1"),
    "cohort": ("clients with samples", "1"),
}


def _against_previous(run: Run, record: Round) -> Tensor | None:
    """The Gram matrix with the previous mean update in its row, or None where it is not recorded."""
    if not _records_momentum(run.method):
        return record.gram
    if record.index == 0:
        matrix = record.gram.clone()
        matrix[PREVIOUS], matrix[:, PREVIOUS] = 0, 0
        return matrix
    if record.index - 1 not in run.rounds():
        return None
    before = run.round(record.index - 1)
    if record.clients is None or before.clients is None:
        return None
    weights = cohort_weights(run.experiment, before.sizes).to(before.deltas)
    start = record.kept("start")
    return gram(start, weights @ before.deltas, torch.zeros_like(start), record.deltas)


def _records_momentum(method: Method) -> bool:
    """Whether the recorded row PREVIOUS is the momentum of the method."""
    base = getattr(method, "base", method)
    return type(base if isinstance(base, Method) else method).momentum is not Method.momentum
