"""Bias, variance and covariance of client models from their outputs: numbers in, numbers out."""

from __future__ import annotations

import torch
from torch import Tensor


def five_factors(
    outputs: Tensor,
    targets: Tensor,
    member: Tensor,
    weights: Tensor,
    *,
    shares: Tensor | None = None,
    fma: Tensor | None = None,
) -> dict[str, float]:
    """Parts of the squared error of averaged client outputs, from M models of each client.

    With mu_k(x) the mean of client k's outputs over its models, and e_k = y - mu_k:
    bias2 = mean |sum_k p_k e_k|^2 = B_T + B_H + B_TH, where B_T keeps of the inner sum the clients that own the
    sample, B_H the others, and B_TH is twice the product of both;
    train_bias = sum_k p_k mean over k's own samples of |e_k|^2, heterogeneity_bias the same over all others;
    var = sum_k p_k^2 Var_k and cov = sum_{k != l} p_k p_l Cov_kl, both with the factor 1/(M - 1).

    The mean squared error of the ensemble is wens_loss = bias2 + (M - 1)/M (var + cov), exactly.

    Source: Zhou et al. 2024 (IMA), theorem 1; methods.md 3.2.1. Variance and covariance are averaged over the data.

    Args:
        outputs: Outputs of model r of client k on each sample, shape (M, m, n, C).
        targets: What the outputs are compared with, shape (n, C).
        member: Whether a sample is a client's own, shape (m, n), bool.
        weights: p_k, summing to 1, shape (m,).
        shares: Share of the data that each sample stands for, summing to 1, shape (n,); equal when absent.
        fma: Outputs of the M averaged models, shape (M, n, C).

    Returns:
        The quantities above by name; var and cov are NaN for M = 1, train_bias where no client owns a sample,
        heterogeneity_bias where every client owns all. With `fma` also its squared error fma_loss,
        residual = fma_loss - wens_loss, and gap, the mean distance of both outputs.
    """
    count = targets.shape[0]
    if shares is None:
        shares = torch.full((count,), 1 / count, dtype=torch.float64)
    return totals(sample_factors(outputs, targets, member, weights, fma=fma), member, weights, shares)


def sample_factors(
    outputs: Tensor, targets: Tensor, member: Tensor, weights: Tensor, *, fma: Tensor | None = None
) -> dict[str, Tensor]:
    """The contributions of each sample, shape (n,), and error (m, n) = |y - mu_k|^2, float64; for joining blocks."""
    outputs, targets, weights = outputs.double(), targets.double(), weights.double()
    replicates = outputs.shape[0]
    means = outputs.mean(0)
    errors = targets - means
    weighted = weights[:, None, None] * errors
    own = member[:, :, None]
    train, rest = (weighted * own).sum(0), (weighted * ~own).sum(0)
    ensemble = torch.einsum("k,rknc->rnc", weights, outputs)
    found = {
        "bias2": _square(weighted.sum(0)),
        "B_T": _square(train),
        "B_H": _square(rest),
        "B_TH": 2 * (train * rest).sum(-1),
        "wens_loss": _square(targets - ensemble).mean(0),
        "error": _square(errors),
    }
    if replicates > 1:
        spread = _square(outputs - means).sum(0) / (replicates - 1)
        together = _square(ensemble - ensemble.mean(0)).sum(0) / (replicates - 1)
        found["var"] = weights.square() @ spread
        found["cov"] = together - found["var"]
    if fma is not None:
        found["fma_loss"] = _square(targets - fma.double()).mean(0)
        found["gap"] = _square(ensemble - fma.double()).sqrt().mean(0)
    return found


def totals(found: dict[str, Tensor], member: Tensor, weights: Tensor, shares: Tensor) -> dict[str, float]:
    """Means over all samples of what `sample_factors` gives for them."""
    missing = {"var": float("nan"), "cov": float("nan")}
    means = {name: float(value @ shares) for name, value in found.items() if name != "error"}
    means["train_bias"] = _readable(found["error"], member, weights.double(), shares)
    means["heterogeneity_bias"] = _readable(found["error"], ~member, weights.double(), shares)
    if "fma_loss" in means:
        means["residual"] = means["fma_loss"] - means["wens_loss"]
    return missing | means


def _readable(error: Tensor, where: Tensor, weights: Tensor, shares: Tensor) -> float:
    """sum_k p_k of client k's mean error over its samples in `where`; clients without any are left out."""
    held = where * shares
    mass = held.sum(1)
    some = mass > 0
    each = (error * held).sum(1)[some] / mass[some]
    return float(weights[some] @ each / weights[some].sum()) if bool(weights[some].any()) else float("nan")


def _square(vectors: Tensor) -> Tensor:
    return vectors.square().sum(-1)
