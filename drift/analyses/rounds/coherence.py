"""Local gradient coherence, its critical point, and cosines between client updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import ABOUT, relative, result, series
from drift.analyses.rounds.critical_point import critical_point
from drift.analyses.rounds.labels import balance_groups, class_shares, evenness
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import CLIENTS, Round

Weighting = Literal["used", "shares"]

Groups = Mapping[str, Sequence[int]] | str | None
"""Client ids by group name, or "balance"."""


@analysis("round", cost="record")
def coherence(
    run: Run, *, smooth: int = 3, weighting: Weighting = "used", groups: Groups = None, level: float = 0.95
) -> xr.Dataset:
    """Local gradient coherence of every round, and the critical point where it turns from positive to negative.

        c = 1/m sum_{i != j} lambda_i lambda_j cos(D_i, D_j)

    over ordered pairs of the cohort. For uniform weights and equal updates it is only (m - 1) / m^2, so the result
    also has the weighted mean cosine, in [-1, 1]. Both are NaN where a cohort has no pair. A client that did not
    move has cosine 0 with every other client.

    Source: Li et al. 2023, definition 5.1; normalisation: papers.md 3.3; critical point:
    `drift.analyses.rounds.critical_point`.

    Args:
        run: A run of any method.
        smooth: Rounds in the moving average, this round and those before it, NaN where one of them is not recorded;
            and recorded rounds in a block of the resampling for the interval of the critical point.
        weighting: lambda: the relative weights that the method "used", or the "shares" of samples.
        groups: Client ids by group name, for weighted mean cosines within and between groups; "balance" groups the
            clients by the evenness of their classes, as `drift.analyses.rounds.labels.balance_groups` does.
        level: Of the critical point's interval, a fraction.

    Returns:
        Dataset with coherence, mean_cosine and coherence_smooth (round,); critical_point, critical_low and
        critical_high (), the first round of the negative phase with its interval over resampled cohorts (NaN if there
        is no clear one); for groups group_cosine and its moving average
        group_cosine_smooth (round, pair), where pair is "a-b" with a and b in the order given; with "balance" also
        evenness (client,), the entropy of the client's class shares over ln C, and balanced (client,), 1 or 0.

    Raises:
        ValueError: If smooth is below 1, or groups is a text other than "balance".
    """
    if smooth < 1:
        raise ValueError(f"smooth is {smooth}; give the number of rounds in the moving average, 1 or more.")
    members_by_group = _client_groups(run, groups)
    pairs = {f"{a}-{b}": (a, b) for a, b in combinations_with_replacement(members_by_group, 2)}

    def measure(record: Round) -> dict[str, float]:
        if len(record.ids) < 2:
            return {}
        lambdas = relative(record.weights) if weighting == "used" else run.experiment.cohort_weights(record.sizes)
        cosine = cosines(record.gram)
        values = {"coherence": cohort_coherence(cosine, lambdas), "mean_cosine": mean_cosine(cosine, lambdas)}
        for pair, names in pairs.items():
            members = [
                torch.isin(record.ids, torch.tensor(list(members_by_group[name]), dtype=torch.int64)) for name in names
            ]
            values[pair] = mean_cosine(cosine, lambdas, *members)
        return values

    about = {name: ABOUT["coherence"][name] for name in ("coherence", "mean_cosine")}
    about |= dict.fromkeys(pairs, ABOUT["coherence"]["group_cosine"])
    dataset = series(run, measure, about, analysis="coherence", source="Li et al. 2023, definition 5.1")
    numbers = dataset["round"].values
    dataset["coherence_smooth"] = ("round", moving_average(numbers, dataset["coherence"].values, smooth))
    point = critical_point(numbers, dataset["coherence"].values, window=smooth, level=level)
    dataset = dataset.assign(critical_point=point.round, critical_low=point.low, critical_high=point.high)
    if pairs:
        values = np.stack([dataset[pair].values for pair in pairs], axis=1)
        averages = np.stack([moving_average(numbers, column, smooth) for column in values.T], axis=1)
        columns = {"group_cosine": values, "group_cosine_smooth": averages}
        dataset = dataset.drop_vars(pairs).assign({name: (("round", "pair"), table) for name, table in columns.items()})
        dataset = dataset.assign_coords(pair=list(pairs))
    if groups == "balance":
        even = evenness(class_shares(run))
        balanced = np.where(np.isfinite(even), np.isin(np.arange(len(even)), members_by_group["balanced"]), np.nan)
        dataset = dataset.assign(evenness=("client", even), balanced=("client", balanced))
        dataset = dataset.assign_coords(client=np.arange(len(even)))
    dataset["critical_low"].attrs["level"] = dataset["critical_high"].attrs["level"] = level
    return result(dataset, ABOUT["coherence"], smooth=smooth, weighting=weighting, level=level)


@analysis("client", "client_other", cost="record")
def pairwise(run: Run, *, round: int = -1) -> xr.Dataset:
    """Cosines between the client updates of one round.

    Args:
        run: Run to analyse.
        round: Number of the round; negative ones count from the last.

    Returns:
        Dataset with cosine (client, client_other), labelled with client ids; a client that did not move has 0.
    """
    record = run.round(round)
    ids = record.ids.tolist()
    variables = {"cosine": (("client", "client_other"), cosines(record.gram).numpy())}
    coords = {"client": ids, "client_other": ids}
    source = "Li et al. 2023, definition 5.1"
    return result(variables, ABOUT["coherence"], coords, analysis="pairwise", source=source, round=record.index)


def cosines(gram: Tensor) -> Tensor:
    """Cosines between the client updates of a round, shape (m, m), float64; 0 with an update that is zero."""
    inner = gram[CLIENTS:, CLIENTS:].double()
    norms = inner.diagonal().clamp(min=0).sqrt()
    scale = norms[:, None] * norms
    return torch.where(scale > 0, inner / scale, torch.zeros_like(inner)).clamp(-1, 1)


def cohort_coherence(cosine: Tensor, weights: Tensor) -> float:
    """1/m sum_{i != j} weights_i weights_j cosine_ij, definition 5.1; NaN where there is no pair.

    Clients of weight 0 do not count in m, as in `drift.drift_variances`: their updates say nothing.
    """
    m = int((weights != 0).sum())
    return float((_pair_weights(weights) * cosine).sum()) / m if m > 1 else float("nan")


def mean_cosine(cosine: Tensor, weights: Tensor, rows: Tensor | None = None, columns: Tensor | None = None) -> float:
    """Weighted mean cosine over ordered pairs i != j, in [-1, 1]; NaN where no pair has weight.

    Args:
        cosine: Shape (m, m).
        weights: Shape (m,).
        rows, columns: Masks (m,) of the clients that i and j run over; None: all.
    """
    pairs = _pair_weights(weights)
    if rows is not None:
        pairs = pairs * rows.double()[:, None]
    if columns is not None:
        pairs = pairs * columns.double()
    total = float(pairs.sum())
    return float((pairs * cosine).sum()) / total if total > 0 else float("nan")


def moving_average(rounds: np.ndarray, values: np.ndarray, window: int) -> np.ndarray:
    """Mean of each round's value and those of the window - 1 rounds before; NaN where one of these is not recorded.

    Missing values are left out of the mean, which is NaN without any value.
    """
    averages = np.full(len(values), np.nan)
    for last in range(window - 1, len(values)):
        if rounds[last] - rounds[last - window + 1] >= window:
            continue
        window_values = values[last - window + 1 : last + 1]
        window_values = window_values[~np.isnan(window_values)]
        averages[last] = window_values.mean() if len(window_values) else np.nan
    return averages


def _client_groups(run: Run, groups: Groups) -> Mapping[str, Sequence[int]]:
    if groups == "balance":
        return balance_groups(run)
    if groups is not None and not isinstance(groups, Mapping):
        raise ValueError(f'groups is {groups!r}; give "balance" or client ids by name, such as {{a=[0, 2], b=[1]}}.')
    return groups or {}


def _pair_weights(weights: Tensor) -> Tensor:
    """Products weights_i weights_j with a zero diagonal, shape (m, m)."""
    products = torch.outer(weights.double(), weights.double())
    return products - torch.diag(products.diagonal())
