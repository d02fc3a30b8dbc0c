"""The span of the clients' differences as an estimate of the sharpest directions, without a Hessian."""

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
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import CLIENTS
from landscape.model.model import with_buffers

ROUNDS = 5
"""Default number of rounds."""


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

    Source: Gur-Ari, Roberts and Dyer 2018 (gradient and eigenspace); the span of clients: this project
    (docs/drift-curvature.md).

    Args:
        run: Run to analyse.
        rounds: Rounds that kept their clients; negative count from the last. By default at most 5, evenly spaced.
        k: Number of eigenvectors, and of directions of the span at most.
        samples: Number of test samples, the first, on which the Hessian is taken.

    Returns:
        Dataset with cosine, ritz and eigenvalue (round, rank), NaN beyond r; over round: directions (r), captured,
        captured_random, sharpness, gradient_share (of |g|^2 in the span), span_products and search_products (those of
        Lanczos), and cut, as in `drift_curvature`. What needs an eigenpair that did not converge is NaN. Attribute
        undetermined: as there.

    Raises:
        LookupError: If no round, or one of those named, kept its clients.
        ValueError: If k or samples is not positive.
    """
    indices, chosen = selected_rounds(run, "clients", rounds, ROUNDS), first_test_samples(run, k, samples)
    rows: list[dict[str, Any]] = []
    for index in run.context.track(indices):
        record = run.round(index)
        cohort = cohort_of(run, record)
        if cohort is None:
            rows.append({})
            continue
        around = Surroundings.of(run.task, with_buffers(cohort.mean, record.end_buffers), k, chosen)
        rows.append(measure_span(around, principal_directions(cohort, record.gram[CLIENTS:, CLIENTS:], k)))
    coords: dict[str, list[Any]] = {"round": indices, "rank": list(range(1, k + 1))}
    dims = dict.fromkeys(("cosine", "ritz", "eigenvalue"), ("rank",))
    return result(
        stack_rows(rows, _ABOUT, coords, dims),
        {**_ABOUT, "rank": ("rank", "1")},
        coords,
        analysis="client_span",
        source="Gur-Ari et al. 2018",
        k=k,
        undetermined=undetermined_rounds(indices, rows),
    )


def principal_directions(cohort: Cohort, inner: Tensor, k: int) -> Tensor:
    """Orthonormal leading directions (r, d) of the drifts, r <= k, in float64; those within rounding are left out.

    Args:
        inner: Inner products of the updates of all clients of the round, shape (m, m).
    """
    p, scale = cohort.weights, cohort.weights.sqrt()
    products = inner[cohort.numbers][:, cohort.numbers].double()
    cross = products @ p
    centred = products - cross - cross[:, None] + p @ cross
    values, columns = torch.linalg.eigh(scale[:, None] * centred * scale)
    rounding = 4 * torch.finfo(cohort.mean.dtype).eps * float(cohort.mean.double().norm())
    real = min(k, len(p) - 1, int((values.clamp(min=0).sqrt() > rounding).sum()))  # weighted drifts sum to zero
    mixing = columns.flip(1)[:, :real] * scale[:, None]
    directions = cohort.mean.new_zeros(real, len(cohort.mean), dtype=torch.float64)
    for row, drift in zip(mixing, cohort.drifts(), strict=True):
        directions += torch.outer(row, drift.double())
    return torch.linalg.qr(directions.T).Q.T


def measure_span(around: Surroundings, directions: Tensor) -> dict[str, Any]:
    """Numbers of `client_span` for orthonormal directions (r, d), by name; those over `rank` have shape (k,)."""
    r, k = len(directions), len(around.eigenvalues)
    row: dict[str, Any] = {
        "eigenvalue": around.eigenvalues.numpy(),
        "directions": r,
        "span_products": r,
        "search_products": around.products,
        "cut": around.cut,
        "undetermined": around.undetermined,
    }
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


_ABOUT: About = {
    "cosine": ("cosine of the principal angle to the leading eigenspace", "1"),
    "ritz": ("curvature along the span", "1"),
    "eigenvalue": ("Hessian eigenvalue", "1"),
    "directions": ("directions of the span", "1"),
    "captured": ("share of the leading eigenspace in the span", "fraction"),
    "captured_random": ("the same for a random span", "fraction"),
    "sharpness": ("curvature along the span over the largest", "fraction"),
    "gradient_share": ("share of the squared gradient in the span", "fraction"),
    "span_products": ("products for the curvature along the span", "1"),
    "search_products": ("products of the search for the eigenvectors", "1"),
    "cut": ("relative gap of eigenvalues k and k + 1", "1"),
}
