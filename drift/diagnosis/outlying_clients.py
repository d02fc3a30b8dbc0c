"""Clients that deviate from the others in their updates, weights, labels or losses."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_models
from drift.analyses.per_round import ABOUT, result, series
from drift.analyses.rounds.labels import js_divergence
from drift.partitions import histogram
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import CLIENTS, Round
from landscape.model.losses import IGNORED

MODELS = 3
"""Number of last global models whose loss on the clients' data is averaged."""

OUTLYING = 3.5
"""Robust deviations from the median from which a client is an outlier."""


@analysis("client", cost="evaluations")
def client_deviations(run: Run) -> xr.Dataset:
    """Deviation of each client from the others, from the record alone.

    For a client's updates: the cosine with the weighted mean of the others in the cohort, and the length over the
    cohort's median, as means over rounds. For its data: the Jensen-Shannon divergence of its labels from all labels,
    and the excess of the last global models' loss there,

        excess_k = sum_c q_kc (L_kc - L_-kc)          ratio_k = L_k / sum_c q_kc L_-kc

    with q_kc the share of class c at the client, L_kc the loss on its samples of that class and L_-kc on those of all
    others: it is near zero for clients with hard classes and large for wrong labels. A deviation is

        z_k = (a_k - median) / (1.4826 median |a - median|)

    of cosine, of the logarithm of the length, and of excess_k sqrt(n_k). |z| > 3.5 marks an outlier.

    Source: robust z and 3.5: Iglewicz and Hoaglin 1993; the excess is this project's own.

    Args:
        run: Run to analyse.

    Returns:
        Dataset with cosine, length, weight, divergence (nats), excess (nats), ratio, samples, rounds (in which it
        took part), cosine_z, length_z and excess_z over client; excess in the last kept global models, NaN where
        none were kept.
    """
    about = {name: ABOUT["client_deviations"][name] for name in ("cosine", "length", "weight")}
    dataset = series(run, lambda record: _updates(run, record), about, analysis="updates", source="this project")
    if "client" not in dataset.dims:  # no round has two clients
        dataset = dataset.expand_dims(client=range(run.experiment.clients.number), axis=1)
    dataset = dataset.reindex(client=range(len(run.parts)))  # a user's task may name clients that never took part
    values = {name: dataset[name].values for name in about}
    means = {name: _mean(table) for name, table in values.items()}
    counts = histogram(run.labels, run.parts, len(run.dataset.class_names))
    samples = counts.sum(1)
    excess, ratio = _excess(run)
    columns = {
        **means,
        "rounds": np.isfinite(values["cosine"]).sum(0),
        "samples": samples,
        "divergence": js_divergence(counts, counts.sum(0)),
        "excess": excess,
        "ratio": ratio,
        "cosine_z": robust(means["cosine"]),
        "length_z": robust(np.log(means["length"], out=np.full(len(samples), np.nan), where=means["length"] > 0)),
        "excess_z": robust(excess * np.sqrt(samples)),
    }
    variables = {name: ("client", column) for name, column in columns.items()}
    coords = {"client": range(len(samples))}
    return result(
        variables, ABOUT["client_deviations"], coords, analysis="client_deviations", source="Iglewicz and Hoaglin 1993"
    )


def robust(values: np.ndarray) -> np.ndarray:
    """Deviations from the median over 1.4826 times the median absolute deviation; 0 where all are equal."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.full(len(values), np.nan)
    middle = np.median(finite)
    scale = 1.4826 * np.median(np.abs(finite - middle))
    return (values - middle) / scale if scale > 0 else np.where(np.isfinite(values), 0.0, np.nan)


def _updates(run: Run, record: Round) -> dict[str, float | torch.Tensor]:
    """Cosine, length and weight of the clients of a round, shape (m,) each; empty below two clients."""
    if len(record.ids) < 2:
        return {}
    weights, inner = run.experiment.cohort_weights(record.sizes), record.gram[CLIENTS:, CLIENTS:].double()
    norms = inner.diagonal().clamp(min=0).sqrt()
    cosine = torch.full_like(weights, torch.nan)
    for index in range(len(weights)):
        rest = weights.clone()
        rest[index] = 0
        other = float((rest @ inner @ rest).clamp(min=0)) ** 0.5
        if other > 0 and norms[index] > 0:
            cosine[index] = float(inner[index] @ rest) / (other * float(norms[index]))
    middle = float(norms[weights > 0].quantile(0.5))
    length = norms / middle if middle > 0 else torch.full_like(norms, torch.nan)
    nothing = weights == 0  # a client without samples is not one of the others
    cosine, length = (values.masked_fill(nothing, torch.nan) for values in (cosine, length))
    return {"cosine": cosine, "length": length, "weight": weights}


def _excess(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """excess_k and ratio_k of every client, mean over the last kept global models; shape (K,) each."""
    rounds, parts = run.kept("globals")[-MODELS:], run.parts
    nothing = np.full(len(parts), np.nan)
    numbers = np.concatenate(parts)
    if not rounds or not len(numbers):
        return nothing, nothing
    count = len(run.dataset.class_names)
    owner = np.repeat(np.arange(len(parts)), [len(numbers) for numbers in parts])
    counted = run.labels[numbers] != IGNORED
    owner, numbers = owner[counted], numbers[counted]
    groups = owner * count + run.labels[numbers]
    samples = run.task.samples["train"][torch.from_numpy(numbers)]
    values = evaluate_models(run, run.models(rounds), samples, groups=torch.from_numpy(groups))["loss"].mean(0)
    sizes = np.bincount(groups, minlength=len(parts) * count).reshape(len(parts), count).astype(np.float64)
    table = np.zeros(sizes.size)
    table[: len(values)] = values.nan_to_num().numpy()
    totals = table.reshape(sizes.shape) * sizes
    others = sizes.sum(0) - sizes
    rest = np.divide(totals.sum(0) - totals, others, out=np.full_like(totals, np.nan), where=others > 0)
    shared = np.where(np.isfinite(rest), sizes, 0.0)  # classes of no other client do not count
    shared_totals = np.where(shared > 0, totals, 0.0).sum(1)
    expected = np.where(shared > 0, shared * np.nan_to_num(rest), 0.0).sum(1)
    number = shared.sum(1)
    some = (number > 0) & (expected > 0)
    excess = np.divide(shared_totals - expected, number, out=nothing.copy(), where=some)
    return excess, np.divide(shared_totals, expected, out=nothing.copy(), where=some)


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean over rounds of the finite values, NaN without any; shape (K,)."""
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0).sum(0)
    return np.divide(total, finite.sum(0), out=np.full(values.shape[1], np.nan), where=finite.any(0))
