"""The clients of a round around their mean: how sharp their span is, and why the mean has the smaller loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.curvature.surroundings import (
    Surroundings,
    WeightedClients,
    cohort_of,
    first_test_samples,
    principal_directions,
    rounding_of,
    unsure_rounds,
)
from drift.analyses.per_round import ABOUT, DIMS, ROUNDS, result, selected_rounds, stack_rows
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import CLIENTS, Round
from landscape.model.model import plain, with_buffers

ROUNDING = 1e-6
"""Part of a squared length outside of the sharpest directions up to which it is rounding of their projections."""

POINTS = (0.25, 0.5, 0.75, 1.0)
"""Fractions of the way from the mean to a client at which the slope is taken, beside the curvature at the mean."""


@analysis("round", "rank", cost="curvature")
def client_span(run: Run, *, rounds: Sequence[int] | None = None, k: int = 10, samples: int = 500) -> xr.Dataset:
    """How near the span of the clients' drifts is to the k sharpest directions at their mean, and how sharp it is.

    The span has r <= k directions: the leading principal directions of the drifts w_k - mean, weighted as the mean
    is. They cost no product with the Hessian H; the r curvatures along them cost r. With orthonormal rows Q (r, d) of
    the span and V (k, d) of the eigenvectors of largest magnitude:

        cosine      singular values of Q V', cosines of the principal angles
        captured    |Q V'|^2 / k, the share of the eigenspace in the span; r / d for a random span
        ritz        eigenvalues of Q H Q', by falling magnitude
        sharpness   sum of |ritz| over that of the r largest |lambda|; at most 1

    Source: Dimlioglu, Topollai and Choromanska 2026 (the span of workers, arXiv 2605.27739); Gur-Ari, Roberts and Dyer
    2018 (gradient and eigenspace); its weights and `sharpness`: this project (docs/drift-curvature.md).

    Args:
        run: Run to analyse.
        rounds: Rounds that kept their clients; negative count from the last. By default at most 5, evenly spaced.
        k: Number of eigenvectors, and of directions of the span at most.
        samples: Number of test samples, the first, on which the Hessian is taken.

    Returns:
        Dataset with cosine, ritz and eigenvalue (round, rank), NaN beyond r; over round: directions (r, and the
        products that ritz costs), captured, captured_random, sharpness, gradient_share (of |g|^2 in the span),
        search_products (those of Lanczos), and cut, as in `drift_curvature`. What needs an eigenpair that did not
        converge is NaN. Attribute undetermined: as there.

    Raises:
        LookupError: If no round, or one of those named, kept its clients.
        ValueError: If k or samples is not positive.
    """

    def measure(around: Surroundings, cohort: WeightedClients, record: Round) -> dict[str, Any]:
        return measure_span(around, principal_directions(cohort, record.gram[CLIENTS:, CLIENTS:], k))

    return _over_rounds(run, rounds, k, samples, measure, "client_span", source="Dimlioglu et al. 2026")


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
        there. Batch statistics are those of the end. What equal clients that did not move removed is NaN.

    Raises:
        LookupError: If no round, or one of those named, kept its clients or start.
        ValueError: If k or samples is not positive.
    """

    def measure(around: Surroundings, cohort: WeightedClients, record: Round) -> dict[str, Any]:
        return measure_gap(around, cohort, plain(record.kept("start")))

    return _over_rounds(run, rounds, k, samples, measure, "averaging_gap", source="this project")


def _over_rounds(
    run: Run,
    rounds: Sequence[int] | None,
    k: int,
    samples: int,
    measure: Callable[[Surroundings, WeightedClients, Round], dict[str, Any]],
    analysis: str,
    source: str,
) -> xr.Dataset:
    """Numbers of the cohorts of rounds, each around its mean; NaN in a round without a cohort."""
    indices, tested = selected_rounds(run, "clients", rounds, ROUNDS), first_test_samples(run, k, samples)
    ranks, about = list(range(1, min(k, run.layout.size) + 1)), ABOUT[analysis]
    rows: list[dict[str, Any]] = []
    for record in map(run.round, run.context.track(indices)):
        rows.append({})
        if cohort := cohort_of(run, record):
            around = Surroundings.around(run, with_buffers(cohort.mean, record.end_buffers), k, tested)
            rows[-1] = {**measure(around, cohort, record), "cut": around.cut, "undetermined": around.undetermined}
    coords: dict[str, list[Any]] = {"round": indices} | ({"rank": ranks} if "rank" in about else {})
    values, unsure = stack_rows(rows, about, coords, DIMS[analysis]), unsure_rounds(indices, rows)
    return result(values, about, coords, k=k, undetermined=unsure, analysis=analysis, source=source)


def measure_span(around: Surroundings, directions: Tensor) -> dict[str, Any]:
    """Numbers of `client_span` for orthonormal directions (r, d), by name; those over `rank` have shape (k,)."""
    r, k = len(directions), len(around.eigenvalues)
    row: dict[str, Any] = {"directions": r, "search_products": around.products}
    row["eigenvalue"] = around.eigenvalues.numpy()
    if r == 0:
        return row
    overlap = directions @ around.span.double().T
    defined = not bool(overlap.isnan().any())
    cosines = torch.linalg.svdvals(overlap).clamp(max=1) if defined else overlap.new_full((min(r, k),), torch.nan)
    images = torch.stack([around.product(direction.to(around.gradient)) for direction in directions]).double()
    restricted = images @ directions.T
    ritz = torch.linalg.eigvalsh((restricted + restricted.T) / 2)
    ritz = ritz[ritz.abs().argsort(descending=True)]
    gradient = around.gradient.double()
    return row | {
        "cosine": _padded(cosines, k),
        "ritz": _padded(ritz, k),
        "captured": float(cosines.square().sum() / k),
        "captured_random": r / directions.shape[1],
        "sharpness": float(ritz.abs().sum() / around.eigenvalues[:r].abs().sum()),
        "gradient_share": float((directions @ gradient).square().sum() / gradient.square().sum()),
    }


def _padded(values: Tensor, number: int) -> Any:
    return torch.nn.functional.pad(values, (0, number - len(values)), value=torch.nan).numpy()


def measure_gap(around: Surroundings, cohort: WeightedClients, start: Tensor) -> dict[str, Any]:
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
    updates = updates.where(updates[1] > rounding_of(cohort.mean) ** 2, torch.nan)
    left = (updates[1] - updates[0]).where(updates[1] - updates[0] > ROUNDING * updates[1], torch.nan)
    rounding = 4 * torch.finfo(around.gradient.dtype).eps * (abs(loss) + abs(mean_loss))
    return {
        "gap": loss - mean_loss,
        "quadratic": -0.5 * float(p @ bends[:, 0]),
        "low": low,
        "high": high,
        "holds": float(low - rounding <= loss - mean_loss <= high + rounding),
        "loss": loss,
        "mean_loss": mean_loss,
        "spread": float(drifts[1]),
        "removed": float(drifts[1] / updates[1]),
        "removed_sharp": float(drifts[0] / updates[0]),
        "removed_rest": float((drifts[1] - drifts[0]).clamp(min=0) / left),
    }


def _curvatures(around: Surroundings, drift: Tensor) -> Tensor:
    """c_k(t) |d_k|^2 at t = 0 and at POINTS, shape (5,), float64; zeros for a drift of length 0."""
    if not bool(drift.any()):
        return torch.zeros(1 + len(POINTS), dtype=torch.float64)
    bends = [((around.gradient_at(t * drift) - around.gradient).double() @ drift.double() / t) for t in POINTS]
    return torch.stack([around.curved(drift[None])[0], *bends])


def _squares(around: Surroundings, vector: Tensor) -> Tensor:
    """Squared length (2,) of a vector (d,) inside the sharpest directions, and in all."""
    return torch.stack([values.double().square().sum() for values in (around.span @ vector, vector)])


"""Variables over the ranks of eigenvalues."""
