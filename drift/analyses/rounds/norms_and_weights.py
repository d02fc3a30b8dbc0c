"""Norms, distances, optimisation and regularisation terms, and aggregation weights, per round."""

from __future__ import annotations

from math import ceil, floor, nan

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import ABOUT, relative, result, series
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import CLIENTS, PREVIOUS, START, STEP, Round


@analysis("round", "client", cost="record")
def update_norms(run: Run) -> xr.Dataset:
    """Euclidean norms of models and updates in every round, from the Gram matrix.

        drift.update_norms(run).to_dataframe()

    Args:
        run: Run to analyse.

    Returns:
        Dataset with start_norm and end_norm (models), step_norm (end - start), previous_norm (the expected update; NaN
        where the round before was not recorded),
        mean_update_norm (weighted mean of the client updates), update_norm_mean, _min and _max (of clients with
        samples) over round; update_norm over round and client.
    """
    rounds = {-1, *run.rounds()}

    def measure(record: Round) -> dict[str, float | Tensor]:
        matrix = record.gram.double()
        squares = matrix.diagonal()
        end = torch.zeros(len(matrix), dtype=torch.float64)
        end[[START, STEP]] = 1
        norms: dict[str, float | Tensor] = {
            "start_norm": float(squares[START].sqrt()),
            "end_norm": norm(matrix, end),
            "step_norm": float(squares[STEP].sqrt()),
            "previous_norm": float(squares[PREVIOUS].sqrt()) if record.index - 1 in rounds else nan,
        }
        if not len(record.ids):
            return norms
        updates, mean = squares[CLIENTS:].sqrt(), torch.zeros_like(end)
        mean[CLIENTS:] = run.experiment.cohort_weights(record.sizes)
        trained = updates[mean[CLIENTS:] > 0]
        statistics = {"mean": trained.mean(), "min": trained.min(), "max": trained.max()}
        norms |= {f"update_norm_{name}": float(value) for name, value in statistics.items()}
        return {**norms, "mean_update_norm": norm(matrix, mean), "update_norm": updates}

    return series(run, measure, ABOUT["update_norms"], analysis="update_norms", source="papers.md 3.3")


@analysis("round", cost="record")
def regularisation_ratio(run: Run) -> xr.Dataset:
    """Ratio r of the optimisation term to the regularisation term in every round.

    The step is w_{t+1} = w_t - gamma eta_g g - (1 - gamma) w_t, with gamma the sum of the aggregation weights;
    r = |gamma eta_g g| / |(1 - gamma) w_t|. It is NaN where gamma = 1, that is without regularisation.
    The first term is the step minus the second, so with IMA it includes the averaging over rounds.

    Source: Li et al. 2023, section 4.2, figure 3 (about 19 there) and appendix B, figure 11 (mean about 20.5).

    Args:
        run: Run to analyse.

    Returns:
        Dataset over round with ratio, optimisation, regularisation and gamma.
    """

    def measure(record: Round) -> dict[str, float]:
        if not len(record.ids):
            return {}
        gamma = float(record.weights.double().sum())
        optimisation, regularisation = terms(record.gram, gamma)
        values = {"gamma": gamma, "optimisation": optimisation, "regularisation": regularisation}
        return values if regularisation == 0 else {**values, "ratio": optimisation / regularisation}

    return series(
        run,
        measure,
        ABOUT["regularisation_ratio"],
        analysis="regularisation_ratio",
        source="Li et al. 2023, section 4.2",
    )


@analysis(cost="record")
def regularisation_ratio_mean(run: Run, *, window: tuple[float, float] = (0.45, 0.55)) -> xr.Dataset:
    """The terms of `regularisation_ratio`, r and gamma as means over the middle rounds of a run: one number each.

    The paper's rounds 90 to 110 of 200, both included, are the default window; in a run of R rounds it reaches from
    round floor(0.45 R) to round ceil(0.55 R). Missing rounds, and those without a ratio, are left out.

    Source: Li et al. 2023, section 4.2 and appendix B, figure 11; papers.md 3.3.

    Args:
        run: Run to analyse.
        window: First and last round as fractions of the planned rounds.

    Returns:
        Dataset with ratio, optimisation, regularisation and gamma (), NaN without such a round, and ratio_std (), the
        standard deviation of the ratio over these rounds, NaN below two; attributes first and last.

    Raises:
        ValueError: If the window is not an ascending pair of fractions.
    """
    if len(window) != 2 or not 0 <= window[0] <= window[1] <= 1:
        raise ValueError(f"window is {list(window)}; give two fractions of the run, such as [0.45, 0.55].")
    planned = run.experiment.rounds
    first, last = floor(window[0] * planned + 1e-9), ceil(window[1] * planned - 1e-9)
    rounds = regularisation_ratio(run)
    selected = rounds.isel(round=(rounds["round"] >= first).values & (rounds["round"] <= last).values)
    means = selected.mean("round", keep_attrs=True)
    means["ratio_std"] = selected.ratio.std(ddof=1) if int(selected.ratio.count()) > 1 else xr.DataArray(np.nan)
    about = {"ratio_std": ("standard deviation of r over rounds", "1")}
    return result(means, about, analysis="regularisation_ratio_mean", first=first, last=last)


@analysis("round", "client", cost="record")
def aggregation_weights(run: Run) -> xr.Dataset:
    """Shrinking factor and relative weights of the clients in every round, learned or set by data.

        ds = drift.aggregation_weights(run)
        ds.gamma.to_series(), ds.weights.sel(round=0)

    Source: Li et al. 2023, section 4 and appendix B, figure 14.

    Args:
        run: Run to analyse.

    Returns:
        Dataset with gamma (round,), the sum of the aggregation weights; weights (round, client), which sum to 1 over
        the cohort; and weight_ratio (round, client), these over the client's share of the cohort's data, 1 in FMA. NaN
        for clients that were not in the cohort or have no data.
    """

    def measure(record: Round) -> dict[str, float | Tensor]:
        if not len(record.ids):
            return {}
        weights, shares = relative(record.weights), record.shares
        ratio = torch.where(record.sizes > 0, weights / shares, torch.nan)
        return {"gamma": float(record.weights.double().sum()), "weights": weights, "weight_ratio": ratio}

    return series(
        run, measure, ABOUT["aggregation_weights"], analysis="aggregation_weights", source="Li et al. 2023, equation 8"
    )


def reweights(run: Run) -> bool:
    """Whether the weight of a client ever differed from its share of the cohort's data."""
    return float(abs(run.cached(aggregation_weights).weight_ratio - 1).max()) > 1e-4


def terms(gram: Tensor, gamma: float, *, tolerance: float = 1e-6) -> tuple[float, float]:
    """Norms of the optimisation term gamma eta_g g and of the regularisation term (1 - gamma) w of a round.

    The first is the step minus the second. A gamma within `tolerance` of 1 counts as 1, because
    weights are stored as rounded numbers.
    """
    shrink = 0.0 if abs(gamma - 1) <= tolerance else 1 - gamma
    combination = torch.zeros(len(gram), dtype=torch.float64)
    combination[STEP], combination[START] = 1, shrink
    return norm(gram, combination), abs(shrink) * float(gram[START, START].double().sqrt())


def norm(gram: Tensor, combination: Tensor) -> float:
    """Norm of a combination (m + 3,) of the rows of a Gram matrix."""
    return float((combination @ gram.double() @ combination).clamp(min=0).sqrt())


@analysis("round", "client", cost="record")
def locality(run: Run) -> xr.Dataset:
    """Distance of the clients to their mean by data sizes (FMA); the largest one is the locality of WENS-FMA.

    Delta = max_k |w_k - w_FMA| over clients with samples, computed from the Gram matrix alone.

    Source: Zhou et al. 2024, section 5, theorem 1; papers.md 3.2.

    Args:
        run: Run to analyse.

    Returns:
        Dataset with locality and mean_distance (round,) and distance (round, client).
    """

    def measure(record: Round) -> dict[str, float | Tensor]:
        if not len(record.ids):
            return {}
        weights, away = record.shares, distances(record.gram, record.shares)
        return {"locality": float(away[weights > 0].max()), "mean_distance": float(weights @ away), "distance": away}

    return series(run, measure, ABOUT["locality"], analysis="locality", source="Zhou et al. 2024, theorem 1")


def distances(gram: Tensor, weights: Tensor) -> Tensor:
    """Distances |w_k - sum_j weights_j w_j| of the clients of a round, shape (m,), from its Gram matrix.

    Args:
        gram: Inner products of a round, shape (m + 3, m + 3).
        weights: Sum 1, shape (m,).
    """
    inner = gram[CLIENTS:, CLIENTS:].double()
    weights = weights.to(inner)
    cross = inner @ weights
    squares = inner.diagonal() - 2 * cross + weights @ cross
    return squares.clamp(min=0).sqrt()
