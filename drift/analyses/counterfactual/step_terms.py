"""The global step of a round as an exact sum of parts, from the updates of all clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor

TERMS = ("step", "mean", "full", "sampling", "server", "gradient", "gradient_sampling", "local")
"""Names of the vectors in `StepTerms`."""


@dataclass(frozen=True)
class StepTerms:
    """Parts of a round's step, all in float64; letters as in `step_terms`.

    Args:
        start: Model that the clients received, shape (d,).
        vectors: One row per name in PARTS, shape (8, d).
        clients: Norms and alignment of the clients' parts, by name, shape (K,); NaN where they do not apply.
        scale: Factor a of the frozen updates.
        local_share: sum_k q_k |D_k - a U_k|^2 / sum_k q_k |D_k|^2.
    """

    start: Tensor
    vectors: Tensor
    clients: dict[str, Tensor]
    scale: float
    local_share: float

    def __getitem__(self, name: str) -> Tensor:
        return self.vectors[TERMS.index(name)]

    @property
    def norms(self) -> Tensor:
        """Euclidean norms of the parts, shape (8,)."""
        return self.vectors.norm(dim=1)

    def cosines(self, smallest: float = 0.0) -> Tensor:
        """Cosines between the parts, shape (8, 8); NaN where a norm is not above `smallest`."""
        norms = self.norms
        usable = torch.where(norms > smallest, norms, torch.nan)
        return (self.vectors @ self.vectors.T / usable[:, None] / usable).clamp(-1, 1)


def step_terms(
    start: Tensor,
    end: Tensor,
    models: Tensor | Sequence[Tensor],
    frozen: Tensor | Sequence[Tensor],
    shares: Tensor,
    weights: Tensor,
    *,
    fit: bool = True,
) -> StepTerms:
    """Parts of end - start, with updates D_k = w_k - start of all K clients, client minus start:

        step = end - start        mean = sum_k p_k D_k    full = sum_k q_k D_k
        sampling = mean - full    server = step - mean

    and with frozen updates a U_k (the gradient as it is at the start)

        gradient = sum_k q_k a U_k    gradient_sampling = sum_k p_k a U_k - gradient    local = mean - sum_k p_k a U_k

    so that step = full + sampling + server, and mean = gradient + gradient_sampling + local. In the cohort D_k - mean
    is the client's drift; it is the sum of a data part a (U_k - sum_j p_j U_j) and a local part, (D_k - a U_k) - local.
    Weighted by p_k the drifts, and both parts, sum to zero.

    Args:
        start, end: Shape (d,).
        models, frozen: w_k and U_k, shape (K, d), or K vectors (d,).
        shares: q_k, weights of all clients, sum 1, shape (K,), float64.
        weights: p_k, weights of the cohort, sum 1, shape (K,), float64; 0 for the others.
        fit: a is the least-squares factor sum_k q_k <D_k, U_k> / sum_k q_k |U_k|^2; else a = 1.
    """
    origin = start.double()
    mean, full = weighted_sum(weights, models) - origin, weighted_sum(shares, models) - origin
    scale = _fit(origin, models, frozen, shares) if fit else 1.0
    expected, gradient = scale * weighted_sum(weights, frozen), scale * weighted_sum(shares, frozen)
    step = end.double() - origin
    rows = [step, mean, full, mean - full, step - mean, gradient, expected - gradient, mean - expected]
    vectors = torch.stack(rows)
    names = ("update_norm", "distance", "alignment", "client_drift", "client_data", "client_local", "unexplained")
    values = {name: torch.full((len(models),), torch.nan, dtype=torch.float64) for name in names}
    for k in range(len(models)):
        update, straight = models[k].double() - origin, scale * frozen[k].double()
        if shares[k] > 0:
            values["update_norm"][k], values["distance"][k] = update.norm(), (update - full).norm()
            values["alignment"][k] = F.cosine_similarity(update, full, dim=0)
            values["unexplained"][k] = (update - straight).norm()
        if weights[k] > 0:
            values["client_drift"][k] = (update - mean).norm()
            values["client_data"][k] = (straight - expected).norm()
            values["client_local"][k] = (update - straight - (mean - expected)).norm()
    total = float(shares @ values["update_norm"].nan_to_num().square())
    rest = float(shares @ values.pop("unexplained").nan_to_num().square())
    return StepTerms(origin, vectors, values, scale, rest / total if total > 0 else float("nan"))


def expected_sampling(distances: Tensor, shares: Tensor, cohort: int) -> float:
    """Norm of the sampling drift of a random cohort, root of the mean square over cohorts.

        E |mean - full|^2 = K (K - m) / (m (K - 1)) sum_k q_k^2 |D_k - full|^2

    over m of K clients without replacement; exact for equal q_k, else to first order (a ratio of two sums).

    Source: sampling without replacement, Cochran 1977, chapter 2.

    Args:
        distances: |D_k - full|, shape (K,); clients without samples do not count.
        shares: q_k, shape (K,).
        cohort: m, of the clients that count.
    """
    counts = shares > 0
    number, spread = int(counts.sum()), float((shares[counts] * distances[counts]).square().sum())
    if number < 2 or cohort >= number:
        return 0.0
    return (number * (number - cohort) / (cohort * (number - 1)) * spread) ** 0.5


def _fit(origin: Tensor, models: Tensor | Sequence[Tensor], frozen: Tensor | Sequence[Tensor], shares: Tensor) -> float:
    above = below = 0.0
    for share, model, straight in zip(shares.tolist(), models, frozen, strict=True):
        if share > 0:
            direction = straight.double()
            above += share * float((model.double() - origin) @ direction)
            below += share * float(direction @ direction)
    return above / below if below > 0 else 0.0


def weighted_sum(weights: Tensor, rows: Tensor | Sequence[Tensor]) -> Tensor:
    """Weighted sum (d,) of rows (K, d) in float64; rows with weight 0 are not read."""
    total = torch.zeros(len(rows[0]), dtype=torch.float64)
    for weight, row in zip(weights.tolist(), rows, strict=True):
        if weight != 0:
            total.add_(row, alpha=weight)
    return total


def cohort_of_equal_drifts(exact: xr.Dataset, number: int) -> float:
    """Cohort size m at which sampling drift is as large as the part of the mean step from local steps; NaN: unknown.

    A cohort of m of K clients drawn without replacement has

        E |sampling|^2 = T^2 (1/m - 1/K),    T^2 = K^2 / (K - 1) sum_k (q_k |D_k - full|)^2

    (S^2 (1/m - 1/K), with S^2 the sample variance of the updates, where all q_k are 1/K). The part of
    the mean step from local steps, L^2 = |local|^2, does not shrink with m. They are equal at

        m = 1 / (L^2 / T^2 + 1 / K)

    Below it more clients help most, above it shorter or better local training. Client drift itself cannot be compared
    with sampling drift in this way: the variance of a mean of m random clients is S^2 / m, so sampling drift over
    client drift is 1 - m/K in every run.

    Source: sampling without replacement, Cochran 1977, chapter 2; parts as in `drift.counterfactual`.

    Args:
        exact: Result of `counterfactual`; the mean over its rounds is used.
        number: K.
    """
    squares = (exact.share * exact.distance).fillna(0) ** 2
    total = number**2 / max(1, number - 1) * float(squares.sum("client").mean())
    local = float((exact.norm.sel(part="local") ** 2).mean())
    return 1 / (local / total + 1 / number) if total > 0 else nan
