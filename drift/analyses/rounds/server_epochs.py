"""Weights and proxy loss over the server epochs of FedLAW in one round."""

from __future__ import annotations

import numpy as np
import xarray as xr

from drift.analyses.per_round import result
from drift.runs.registry import analysis
from drift.runs.run import Run


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
    return result(
        {
            "gamma": ("epoch", curves["gamma"]),
            "proxy_loss": ("epoch", curves["proxy_loss"]),
            "lambda": (("epoch", "client"), curves["lambda"]),
            "gamma_used": ((), float(record.extras["gamma"])),
            "lambda_used": ("client", record.extras["lambda"].double().numpy()),
            "gamma_settled": ((), settled(curves["gamma"][:, None], tolerance)),
            "lambda_settled": ((), settled(curves["lambda"], tolerance)),
        },
        _ABOUT,
        {"epoch": np.arange(1, len(curves["gamma"]) + 1), "client": record.ids.numpy()},
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


_ABOUT = {
    "gamma": ("shrinking factor gamma", "1"),
    "lambda": ("relative aggregation weight lambda", "fraction"),
    "proxy_loss": ("loss on the proxy set", "nats"),
    "gamma_used": ("shrinking factor of the round", "1"),
    "lambda_used": ("relative aggregation weight of the round", "fraction"),
    "gamma_settled": ("server epoch from which gamma has settled", "1"),
    "lambda_settled": ("server epoch from which lambda has settled", "1"),
    "epoch": ("server epoch", "1"),
}
