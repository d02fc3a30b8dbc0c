"""Correlation of aggregation weights with data size and class balance of the clients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.stats import norm

from drift.analyses.per_round import result
from drift.analyses.rounds.label_shares import class_shares
from drift.analyses.rounds.norms_and_weights import learned
from drift.runs.registry import analysis
from drift.runs.run import Run

FACTORS = ("size", "balance", "product")
"""DS, HD and DS x HD."""


@analysis("client", "factor", cost="record")
def weight_factors(run: Run, *, over: str = "sum", confidence: float = 0.95) -> xr.Dataset:
    """Pearson correlation of the clients' aggregation weights with their data size and their class balance.

        DS = n_k,  HD = 1 / max(Var_c(q_kc), 1e-8),  AW = sum_t lambda_kt

    with q_k the class shares and Var the variance over classes (divided by C). HD, "heterogeneity degree", is large
    for a balanced client. lambda are the relative weights used, 0 in rounds without the client; at partial
    participation AW mostly counts how often a client was in a cohort; over = "mean" takes the mean over these rounds
    instead. Clients without samples or without a round do not count.

    Source: Li et al. 2023, appendix B, table 11; methods.md 3.3.

    Args:
        run: Run to analyse.
        over: "sum" or "mean" of the weights over rounds.
        confidence: Of the intervals, by Fisher's z.

    Returns:
        Dataset with size (samples), balance, product and weight over client, and over factor pearson with the
        interval from low to high, NaN where a factor or the weight is constant (interval: below four clients).

    Raises:
        ValueError: If `over` is neither, or confidence is no fraction between 0 and 1.
    """
    if over not in ("sum", "mean"):
        raise ValueError(f'over is {over!r}; give "sum" or "mean" of the weights over rounds.')
    lambdas = learned(run)["weights"]
    dataset = xr.Dataset({"size": ("client", run.dataset.sizes().astype(np.float64))})
    dataset["balance"] = ("client", class_balance(class_shares(run)))
    dataset["product"] = dataset["size"] * dataset["balance"]
    values = np.full(dataset.sizes["client"], np.nan)
    if "client" in lambdas.dims:
        values = getattr(lambdas, over)("round", skipna=True).where(lambdas.notnull().any("round")).values
    dataset["weight"] = ("client", np.where(np.isfinite(dataset["balance"]), values, np.nan))
    dataset = dataset.assign_coords(client=np.arange(dataset.sizes["client"]))
    return result(correlate(dataset, confidence), _ABOUT, over=over)


def pooled_factors(parts: Sequence[xr.Dataset], *, confidence: float = 0.95) -> xr.Dataset:
    """The same correlations over the clients of several runs, from their `weight_factors`.

    Source: Li et al. 2023, table 11, last column.

    Args:
        parts: Datasets of `weight_factors`, one per run.
        confidence: Level of the intervals.

    Returns:
        As `weight_factors`, with the clients of all runs, numbered in their order.
    """
    values = {name: np.concatenate([part[name].values for part in parts]) for name in (*FACTORS, "weight")}
    dataset = xr.Dataset(
        {name: ("client", column) for name, column in values.items()}, coords={"client": range(len(values["weight"]))}
    )
    return result(correlate(dataset, confidence), _ABOUT)


def correlate(clients: xr.Dataset, confidence: float) -> xr.Dataset:
    """The dataset with pearson, low and high over factor, from `weight` and the factors over client."""
    rows = [pearson(clients[name].values, clients["weight"].values, confidence) for name in FACTORS]
    columns = dict(zip(("pearson", "low", "high"), np.array(rows).T, strict=True))
    dataset = clients.assign({name: ("factor", column) for name, column in columns.items()})
    attrs = {"analysis": "weight_factors", "source": "Li et al. 2023, table 11", "confidence": confidence}
    return dataset.assign_coords(factor=list(FACTORS)).assign_attrs(attrs)


def pearson(first: np.ndarray, second: np.ndarray, confidence: float = 0.95) -> tuple[float, float, float]:
    """Correlation r and its interval tanh(atanh r +- z / sqrt(n - 3)), over the n places where both have values.

    r is NaN where one is constant, the interval also where n < 4.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; give a fraction between 0 and 1, such as 0.95.")
    finite = np.isfinite(first) & np.isfinite(second)
    x, y = first[finite], second[finite]
    if not (_varies(x) and _varies(y)):
        return float("nan"), float("nan"), float("nan")
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))
    if len(x) < 4:
        return r, float("nan"), float("nan")
    half = float(norm.ppf((1 + confidence) / 2)) / np.sqrt(len(x) - 3)
    middle = np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))
    return r, float(np.tanh(middle - half)), float(np.tanh(middle + half))


def class_balance(shares: np.ndarray, *, least: float = 1e-8) -> np.ndarray:
    """1 / max(Var_c, least) of each row of class shares (K, C), shape (K,)."""
    balance: np.ndarray = 1 / np.maximum(shares.var(1), least)
    return balance


def _varies(values: np.ndarray) -> bool:
    """Whether values differ by more than rounding."""
    return len(values) > 1 and float(np.ptp(values)) > 1e-9 * float(np.abs(values).max())


_ABOUT = {
    "size": ("data size DS", "samples"),
    "balance": ("class balance HD", "1"),
    "product": ("DS x HD", "samples"),
    "weight": ("aggregation weight AW over rounds", "1"),
    "pearson": ("Pearson correlation with the weight", "1"),
    "low": ("lower end of the interval", "1"),
    "high": ("upper end of the interval", "1"),
    "factor": ("factor", "1"),
}
