"""Aggregation weights in detail: correlation with the clients' data, and what FedLAW learns over server epochs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.special import ndtri

from drift.analyses.per_round import ABOUT, result
from drift.analyses.rounds.labels import class_shares
from drift.analyses.rounds.norms_and_weights import aggregation_weights
from drift.runs.registry import LOSS_UNITS, analysis
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

    Source: Li et al. 2023, appendix B, table 11; papers.md 3.3.

    Args:
        run: Run to analyse.
        over: "sum" or "mean" of the weights over rounds.
        confidence: Of the intervals, by Fisher's z.

    Returns:
        Dataset with size (samples), balance, product and weight over client, and over factor pearson with the
        interval from low to high, NaN where a factor or the weight is constant (interval: below four clients).

    Raises:
        ValueError: If `over` is neither, or confidence is not a fraction between 0 and 1.
    """
    if over not in ("sum", "mean"):
        raise ValueError(f'over is {over!r}; give "sum" or "mean" of the weights over rounds.')
    lambdas = aggregation_weights(run)["weights"]
    dataset = xr.Dataset({"size": ("client", run.dataset.sizes().astype(np.float64))})
    dataset["balance"] = ("client", class_balance(class_shares(run)))
    dataset["product"] = dataset["size"] * dataset["balance"]
    values = np.full(dataset.sizes["client"], np.nan)
    if "client" in lambdas.dims:
        lambdas = lambdas.reindex(client=range(len(values)))  # a user's task may name clients that never took part
        values = getattr(lambdas, over)("round", skipna=True).where(lambdas.notnull().any("round")).values
    dataset["weight"] = ("client", np.where(np.isfinite(dataset["balance"]), values, np.nan))
    dataset = dataset.assign_coords(client=np.arange(dataset.sizes["client"]))
    return result(correlate(dataset, confidence), ABOUT["weight_factors"], over=over)


def pooled_factors(tables: Sequence[xr.Dataset], *, confidence: float = 0.95) -> xr.Dataset:
    """The same correlations over the clients of several runs, from their `weight_factors`.

    Source: Li et al. 2023, table 11, last column.

    Args:
        tables: Datasets of `weight_factors`, one per run.
        confidence: Level of the intervals.

    Returns:
        As `weight_factors`, with the clients of all runs, numbered in their order.
    """
    values = {name: np.concatenate([table[name].values for table in tables]) for name in (*FACTORS, "weight")}
    dataset = xr.Dataset(
        {name: ("client", column) for name, column in values.items()}, coords={"client": range(len(values["weight"]))}
    )
    return result(correlate(dataset, confidence), ABOUT["weight_factors"])


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
    half = float(ndtri((1 + confidence) / 2)) / np.sqrt(len(x) - 3)
    middle = np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))
    return r, float(np.tanh(middle - half)), float(np.tanh(middle + half))


def class_balance(shares: np.ndarray, *, least: float = 1e-8) -> np.ndarray:
    """1 / max(Var_c, least) of each row of class shares (K, C), shape (K,)."""
    return 1 / np.maximum(shares.var(1), least)


def _varies(values: np.ndarray) -> bool:
    """Whether values differ by more than rounding."""
    return len(values) > 1 and float(np.ptp(values)) > 1e-9 * float(np.abs(values).max())


@analysis("epoch", "client", cost="record")
def server_epochs(run: Run, *, round: int = -1, tolerance: float = 0.05) -> xr.Dataset:
    """Shrinking factor, client weights and proxy loss after every server epoch of one round.

    A curve has settled from the first epoch on after which it stays within `tolerance` of its range around its last
    value; for the weights the largest deviation over the clients counts, against the largest range of a client.
    With the variant swa, lambda_used is the average over epochs, not the last row.

    Source: Li et al. 2023, appendix B, figure 14 (gamma settles in about 30 epochs, lambda in about 80).

    Args:
        run: Run to analyse.
        round: A round in which the server learned; negative counts from the last complete round.
        tolerance: Fraction of a curve's range.

    Returns:
        Dataset with gamma and proxy_loss (nats, mean over the epoch's batches) over epoch 1..S; lambda (epoch,
        client), which sums to 1; gamma_used () and lambda_used (client,), what the round was aggregated with;
        gamma_settled and lambda_settled (), epochs, NaN for a curve that never moved.

    Raises:
        LookupError: If the round recorded no server epochs.
    """
    record = run.round(round)
    if "gamma_epochs" not in record.extras:
        raise LookupError(
            f"round {record.index} of run {run.name} recorded no server epochs; FedLAW does in rounds in which it "
            "learns: fedscape train digits-shards2 --set method.name=fedlaw."
        )
    curves = {name: record.extras[f"{name}_epochs"].double().numpy() for name in ("gamma", "proxy_loss", "lambda")}
    weight, epoch, since = "relative aggregation weight", "server epoch", "server epoch from which"
    return result(
        {
            "gamma": ("epoch", curves["gamma"], "shrinking factor gamma"),
            "proxy_loss": ("epoch", curves["proxy_loss"], "loss on the proxy set", LOSS_UNITS),
            "lambda": (("epoch", "client"), curves["lambda"], f"{weight} lambda", "fraction"),
            "gamma_used": ((), float(record.extras["gamma"]), "shrinking factor of the round"),
            "lambda_used": ("client", record.extras["lambda"].double().numpy(), f"{weight} of the round", "fraction"),
            "gamma_settled": ((), settled(curves["gamma"][:, None], tolerance), f"{since} gamma has settled"),
            "lambda_settled": ((), settled(curves["lambda"], tolerance), f"{since} lambda has settled"),
        },
        None,
        {"epoch": ("epoch", np.arange(1, len(curves["gamma"]) + 1), epoch), "client": record.ids.numpy()},
        analysis="server_epochs",
        source="Li et al. 2023, figure 14",
        round=record.index,
    )


def settled(curves: np.ndarray, tolerance: float) -> float:
    """First epoch, from 1, from which all curves (S, m) stay near their last values; NaN if none ever moves."""
    reach = np.ptp(curves, axis=0).max() if curves.size else 0.0
    if not reach > 0:
        return float("nan")
    away = np.flatnonzero(np.abs(curves - curves[-1]).max(1) > tolerance * reach)
    return float(away[-1] + 2) if len(away) else 1.0
