"""Bias, variance and covariance of client models from their outputs."""

import torch
from torch import Tensor

NAN = float("nan")


def partial_sums(
    outputs: Tensor, targets: Tensor, member: Tensor, weights: Tensor, shares: Tensor, *, fma: Tensor | None = None
) -> dict[str, Tensor]:
    """Contributions of a block of samples to `quantities`, float64, by name: (), or (m,) by client.

    They add up over blocks, also those of a client's own samples and of the others. Memory grows with n m (M C + m).

    Args:
        outputs: Outputs of model r of client k on each sample, shape (M, m, n, C).
        targets: Targets of the outputs, shape (n, C).
        member: Whether a sample is a client's own, shape (m, n), bool.
        weights: p_k, summing to 1, shape (m,).
        shares: Share of the data that each sample represents, summing to 1 over all blocks, shape (n,).
        fma: Outputs of the M averaged models, shape (M, n, C).
    """
    outputs, targets, weights = outputs.double(), targets.double(), weights.double()
    means = outputs.mean(0)
    errors = targets - means
    weighted = weights[:, None, None] * errors
    owned = member[:, :, None]
    train, rest = (weighted * owned).sum(0), (weighted * ~owned).sum(0)
    ensemble = torch.einsum("k,rknc->rnc", weights, outputs)
    values = {
        "bias2": _square(weighted.sum(0)),
        "B_T": _square(train),
        "B_H": _square(rest),
        "B_TH": 2 * (train * rest).sum(-1),
        "wens_loss": _square(targets - ensemble).mean(0),
    }
    if len(outputs) > 1:
        values |= _spread(outputs - means, weights)
    if fma is not None:
        values["fma_loss"] = _square(targets - fma.double()).mean(0)
        values["gap"] = _square(ensemble - fma.double()).sqrt().mean(0)
    error, masses = _square(errors), {"own": member * shares, "other": ~member * shares}
    per_client = {name: (error * mass).sum(1) for name, mass in masses.items()}
    per_client |= {f"{name}_mass": mass.sum(1) for name, mass in masses.items()}
    return {name: value @ shares for name, value in values.items()} | per_client


def quantities(sums: dict[str, Tensor], weights: Tensor, replicates: int) -> dict[str, float]:
    """Parts of the squared error of averaged client outputs, from the `partial_sums` of M models of each client.

    With mu_k(x) the mean of client k's outputs over its models, and e_k = y - mu_k:
    bias2 = mean |sum_k p_k e_k|^2 = B_T + B_H + B_TH, where the inner sum of B_T is over the clients that own the
    sample, that of B_H over the others, and B_TH is twice the product of both;
    train_bias = sum_k p_k mean over k's own samples of |e_k|^2, heterogeneity_bias the same over all others;
    var = sum_k p_k^2 Var_k and cov = sum_{k != l} p_k p_l Cov_kl, both with the factor 1/(M - 1);
    cov_bound = (1 - sum_k p_k^2) mean min_{k != l} Cov_kl(x), which cov never falls below. For equal p_k these are
    the two sides of corollary 1: sum_{k != l} Cov_kl / m^2 and (m - 1)/m mean min Cov_kl(x).

    The mean squared error of the ensemble is wens_loss = bias2 + (M - 1)/M (var + cov), exactly. identity_gap is
    the difference of the computed sides, which is rounding: the left side comes from the ensemble's outputs, the right
    one from those of the clients.

    Source: Zhou et al. 2024 (IMA), theorem 1 and corollary 1; papers.md 3.2.1 and 3.2.4. Variance and covariance are
    averaged over the data.

    Returns:
        The quantities above by name; var, cov and cov_bound are NaN for M = 1, cov_bound also for one client,
        train_bias where no client owns a sample, heterogeneity_bias where every client owns all. With `fma` also its
        squared error fma_loss, residual = fma_loss - wens_loss, and gap, the mean distance of both outputs.
    """
    names = ("own", "other", "own_mass", "other_mass")
    values = {name: float(value) for name, value in sums.items() if name not in names}
    values = {"var": NAN, "cov": NAN, "cov_bound": NAN} | values
    values["train_bias"] = _mean_error(sums["own"], sums["own_mass"], weights.double())
    values["heterogeneity_bias"] = _mean_error(sums["other"], sums["other_mass"], weights.double())
    spread = (replicates - 1) / replicates * (values["var"] + values["cov"]) if replicates > 1 else 0.0
    values["identity_gap"] = values["wens_loss"] - values["bias2"] - spread
    if "fma_loss" in values:
        values["residual"] = values["fma_loss"] - values["wens_loss"]
    return values


def _spread(deviations: Tensor, weights: Tensor) -> dict[str, Tensor]:
    """var, cov and cov_bound of each sample, shape (n,), from outputs minus their means (M, m, n, C)."""
    replicates, clients, samples, _ = deviations.shape
    rows = deviations.permute(2, 1, 0, 3).reshape(samples, clients, -1)
    products = rows @ rows.mT / (replicates - 1)
    variances = products.diagonal(dim1=1, dim2=2)
    variance = variances @ weights.square()
    usable = torch.nonzero(weights > 0).flatten()  # a client without samples has no part in any pair
    first, second = usable[torch.triu_indices(len(usable), len(usable), offset=1)]
    least = products[:, first, second].amin(1) if len(first) else torch.full_like(variance, NAN)
    return {
        "var": variance,
        "cov": torch.einsum("k,nkl,l->n", weights, products, weights) - variance,
        "cov_bound": (1 - weights.square().sum()) * least,
    }


def _mean_error(errors: Tensor, masses: Tensor, weights: Tensor) -> float:
    """sum_k p_k of client k's mean error over some samples; clients without any are left out."""
    usable = masses > 0
    means, weights = errors[usable] / masses[usable], weights[usable]
    return float(weights @ means / weights.sum()) if bool(weights.any()) else NAN


def _square(vectors: Tensor) -> Tensor:
    return vectors.square().sum(-1)
