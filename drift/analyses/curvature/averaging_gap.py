"""Why averaging helps: the loss of the mean against the mean of the losses, by curvature and spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.curvature.surroundings import (
    Cohort,
    Surroundings,
    cohort_of,
    first_test_samples,
    undetermined_rounds,
)
from drift.analyses.per_round import About, result, selected_rounds, stack_rows
from drift.runs.registry import LOSS_UNITS, analysis
from drift.runs.run import Run
from landscape.model.model import plain, with_buffers

ROUNDS = 5
"""Default number of rounds."""

POINTS = (0.25, 0.5, 0.75, 1.0)
"""Fractions of the way from the mean to a client at which the slope is taken, beside the curvature at the mean."""


@analysis("round", cost="curvature")
def averaging_gap(run: Run, *, rounds: Sequence[int] | None = None, k: int = 10, samples: int = 500) -> xr.Dataset:
    """L(mean) - mean of L(clients), its bounds by the curvature along the drifts, and what the mean cancels.

    With d_k = w_k - mean, so that sum_k p_k d_k = 0, and the mean curvature along a drift from 0 to t,

        c_k(t) = (g(mean + t d_k) - g(mean))' d_k / (t |d_k|^2),    c_k(0) = d_k' H d_k / |d_k|^2
        gap = L(mean) - sum_k p_k L(w_k) = - sum_k p_k |d_k|^2 (integral of t c_k(t) dt from 0 to 1)
        low = -1/2 sum_k p_k |d_k|^2 max_t c_k(t) <= gap <= -1/2 sum_k p_k |d_k|^2 min_t c_k(t) = high
        quadratic = -1/2 sum_k p_k d_k' H d_k

    The integral is exact for losses with kinks too, such as those of ReLU networks; maximum and minimum are those of
    five t, from 0 to 1, so that the bounds can fail between them: `holds` compares them with the exact gap. With the
    updates D_k = w_k - start, the weighted mean removes from their square, inside the k sharpest directions and outside

        removed = sum_k p_k |d_k|^2 / sum_k p_k |D_k|^2

    Source: Jensen's gap to second order; this project (docs/drift-curvature.md).

    Args:
        run: Run to analyse.
        rounds: Rounds that kept their clients; negative count from the last. By default at most 5, evenly spaced.
        k: Number of eigenvectors of the Hessian at the mean.
        samples: Number of test samples, the first, on which losses, gradients and Hessians are taken.

    Returns:
        Dataset over round with gap, quadratic, low, high, loss (of the mean), mean_loss; holds (1 or 0); spread (sum_k
        p_k |d_k|^2), removed, removed_sharp, removed_rest, and cut, as in `drift_curvature`. Attribute undetermined: as
        there. Batch statistics are those of the end.

    Raises:
        LookupError: If no round, or one of those named, kept its clients or start.
        ValueError: If k or samples is not positive.
    """
    indices, chosen = selected_rounds(run, "clients", rounds, ROUNDS), first_test_samples(run, k, samples)
    rows: list[dict[str, Any]] = []
    for index in run.context.track(indices):
        record = run.round(index)
        if (cohort := cohort_of(run, record)) is None:
            rows.append({})
            continue
        around = Surroundings.of(run.task, with_buffers(cohort.mean, record.end_buffers), k, chosen)
        rows.append(measure_gap(around, cohort, plain(record.kept("start"))))
    coords = {"round": indices}
    about = {"analysis": "averaging_gap", "source": "this project", "undetermined": undetermined_rounds(indices, rows)}
    return result(stack_rows(rows, _ABOUT, coords, {}), _ABOUT, coords, k=k, **about)


def measure_gap(around: Surroundings, cohort: Cohort, start: Tensor) -> dict[str, Any]:
    """Numbers of `averaging_gap` of a cohort that was trained from a start (d,), by name."""
    curvatures, losses, squares = [], [], []
    for drift in cohort.drifts():
        losses.append(around.losses(drift[None]))
        curvatures.append(_curvatures(around, drift))
        squares.append(torch.stack([_squares(around, vector) for vector in (drift, drift + (cohort.mean - start))]))
    p, bends = cohort.weights, torch.stack(curvatures)
    loss, mean_loss = float(losses[0][0]), float(p @ torch.stack(losses)[:, 1])
    low, high = (-0.5 * float(p @ ends) for ends in (bends.amax(1), bends.amin(1)))
    drifts, updates = torch.einsum("k,kvs->vs", p, torch.stack(squares))
    rounding = 4 * torch.finfo(around.gradient.dtype).eps * (abs(loss) + abs(mean_loss))
    return {
        "gap": loss - mean_loss,
        "quadratic": -0.5 * float(p @ bends[:, 0]),
        "low": low,
        "high": high,
        "holds": float(low - rounding <= loss - mean_loss <= high + rounding),
        "loss": loss,
        "mean_loss": mean_loss,
        "spread": float(drifts.sum()),
        "removed": float(drifts.sum() / updates.sum()),
        "removed_sharp": float(drifts[0] / updates[0]),
        "removed_rest": float(drifts[1] / updates[1]),
        "cut": around.cut,
        "undetermined": around.undetermined,
    }


def _curvatures(around: Surroundings, drift: Tensor) -> Tensor:
    """c_k(t) |d_k|^2 at t = 0 and at POINTS, shape (5,), float64; zeros for a drift of length 0."""
    if not bool(drift.any()):
        return torch.zeros(1 + len(POINTS), dtype=torch.float64)
    bends = [((around.gradient_at(t * drift) - around.gradient).double() @ drift.double() / t) for t in POINTS]
    return torch.stack([around.curved(drift[None])[0], *bends])


def _squares(around: Surroundings, vector: Tensor) -> Tensor:
    """Squared length (2,) of a vector (d,) inside the sharpest directions and outside."""
    inside = (around.span @ vector).double().square().sum()
    return torch.stack([inside, (vector.double().square().sum() - inside).clamp(min=0)])


_ABOUT: About = {
    "gap": ("loss of the mean minus the mean loss of the clients", LOSS_UNITS),
    "quadratic": ("the same to second order", LOSS_UNITS),
    "low": ("lower bound by the largest curvatures along the drifts", LOSS_UNITS),
    "high": ("upper bound by the smallest curvatures along the drifts", LOSS_UNITS),
    "holds": ("whether the gap lies between its bounds", "1"),
    "loss": ("loss of the mean", LOSS_UNITS),
    "mean_loss": ("mean loss of the clients", LOSS_UNITS),
    "spread": ("mean squared client drift", "1"),
    "removed": ("share of the squared updates that the mean removes", "fraction"),
    "removed_sharp": ("the same in the leading eigenspace", "fraction"),
    "removed_rest": ("the same outside of the leading eigenspace", "fraction"),
    "cut": ("relative gap of eigenvalues k and k + 1", "1"),
}
