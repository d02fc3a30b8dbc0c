"""Aggregates of a round's clients at given weights, beside those of the usual ones and the round's end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.evaluate_on import evaluate_models, evaluation_of
from drift.analyses.landscapes.models_plane import task_with_classes
from drift.analyses.landscapes.named_models import cohort_models
from drift.analyses.per_round import resolve_round, result
from drift.analyses.selected_samples import selected_samples
from drift.methods._learned_weights import Aggregate
from drift.methods.fedlaw import FedLAW
from drift.runs.client_of_round import recorded_cohort
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.column_blocks import Updates
from drift.store.round_record import Round
from landscape.model.batchnorm import use_batches
from landscape.model.losses import group_weights
from landscape.model.model import plain
from landscape.model.samples import Samples
from landscape.model.task import metric_units
from landscape.sweep.evaluate import evaluate


@dataclass(frozen=True)
class Weights:
    """Aggregation weights gamma lambda.

    Args:
        gamma: Factor of the aggregate.
        shares: lambda of the cohort, ids ascending, summing to 1, shape (m,).
    """

    gamma: float
    shares: tuple[float, ...]

    @classmethod
    def from_values(cls, values: Sequence[float] | Tensor | np.ndarray) -> Weights:
        """From weights of any sum."""
        array = np.asarray(values, dtype=float)
        total = float(array.sum())
        return cls(total, tuple(array / total)) if abs(total) > 1e-12 else cls(0.0, (1 / len(array),) * len(array))

    @property
    def row(self) -> list[float]:
        """Coefficients of the clients."""
        return [self.gamma * share for share in self.shares]


@analysis("mark", "class", "client", cost="evaluations")
def round_weights(
    run: Run,
    *,
    round: int = -1,
    weights: Sequence[float] | None = None,
    gamma: float = 1.0,
    split: str = "test",
    samples: int | None = None,
) -> xr.Dataset:
    """Loss and errors of a round's aggregate at given weights, by data size, at equal weights, and of the round's end.

    Equal weights are those of the clients with samples.

    The aggregate is gamma sum_k lambda_k w_k (FedLAW, equation 2). Models with batch normalisation get statistics
    recomputed on training samples, the end included.

    Source: Li et al. 2023, section 4.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative counts from the last one that did.
        weights: lambda of the cohort, ids ascending; scaled to sum 1. By default those that the round took.
        gamma: Factor of the aggregate.
        split, samples: As in `models_plane`.

    Returns:
        Dataset with loss (mark,) and error, class_error (mark, class) where samples have classes, weight (mark, client)
        and gamma (mark,); the marks are "these", "by size", "uniform" and "end", of which the weights are NaN.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If there is not one weight per client, or they sum to 0.
    """
    record = run.round(resolve_round(run, round, "clients"))
    ids = sorted(record.ids.tolist())
    if weights is not None and (len(weights) != len(ids) or not abs(sum(weights)) > 1e-12):
        raise ValueError(f"weights are {list(weights)}; give one per client of the cohort {ids}, of sum other than 0.")
    these = own_weights(record) if weights is None else Weights(gamma, Weights.from_values(weights).shares)
    equal = Weights(1.0, Weights.from_values((record.shares[record.ids.argsort()] > 0).double()).shares)
    named = {"these": these, "by size": by_size(run, record), "uniform": equal}
    cohort, evaluated_on = cohort_models(run, record.index), selected_samples(run, record.index, split, samples)
    task = task_with_classes(run, evaluated_on)
    models = torch.cat([cohort.models, record.kept("end")[None]])
    rows = [*([*value.row, 0.0] for value in named.values()), [*(0.0 for _ in ids), 1.0]]
    evaluation = evaluation_of(run, split=evaluated_on).between(task)
    models = plain(models) if evaluation.statistics == "recomputed" else models  # those of the end too, as of its twin
    metrics = evaluate(task, models, np.array(rows), evaluation=evaluation)
    columns = {name: values.numpy() for name, values in metrics.items()}
    dims = {name: ("mark", "class") if column.ndim > 1 else ("mark",) for name, column in columns.items()}
    missing = (float("nan"),) * len(ids)
    table = {"weight": (("mark", "client"), np.array([*(value.shares for value in named.values()), missing]))}
    factors = {"gamma": ("mark", np.array([*(value.gamma for value in named.values()), float("nan")]))}
    about = {"weight": ("relative aggregation weight lambda", "fraction"), "gamma": ("shrinking factor gamma", "1")}
    about |= {name: (_WORDS.get(name, name), metric_units(task, name)) for name in columns}
    coords: dict[str, Any] = {"mark": [*named, "end"], "client": ids}
    if "class_error" in columns:
        labels = [str(label) for label in run.dataset.classes]
        classes = columns["class_error"].shape[1]
        coords["class"] = [*labels, *map(str, range(len(labels), classes))][:classes]
    variables = {name: (dims[name], column) for name, column in columns.items()} | table | factors
    source = "Li et al. 2023, section 4"
    return result(variables, about, coords, analysis="round_weights", source=source, round=record.index, split=split)


def own_weights(record: Round) -> Weights:
    """The weights that a round's method took, ids ascending."""
    return Weights.from_values(record.weights[record.ids.argsort()].double())


def by_size(run: Run, record: Round) -> Weights:
    """FedAvg's weights of a round, ids ascending."""
    return Weights.from_values(run.experiment.cohort_weights(record.sizes)[record.ids.argsort()])


def learned_weights(run: Run, round: int) -> Weights:
    """FedLAW's weights of a round, ids ascending: the recorded ones, else learned on the proxy set as FedLAW does.

    Raises:
        LookupError: If the round kept no clients, or the run has no proxy set.
    """
    record = run.round(round)
    if run.method.name() == "fedlaw":
        return own_weights(record)
    if not len(run.task.samples.get("proxy", ())):
        raise LookupError(f"run {run.name} has no proxy set to learn weights on; train with --set proxy.per_class=10.")
    combined = FedLAW().combine(run.setting, {}, recorded_cohort(run, record, record.kept("start")))
    return Weights.from_values(combined.weights[record.ids.argsort()].double())


@dataclass(frozen=True)
class Lowest:
    """The weights of sum 1, none negative, with the lowest loss that was found.

    Args:
        weights: lambda, ids ascending.
        loss, recorded_loss: Mean loss of the samples at these weights, and at those that the round took.
        gain, error: By how much weights found on one half of the samples lower the loss of the other half, in the mean
            of both halves, and the standard error over the samples.
        samples: Number of samples.
    """

    weights: Weights
    loss: float
    recorded_loss: float
    gain: float
    error: float
    samples: int


def lowest_weights(run: Run, round: int, split: str = "test", samples: int | None = None) -> Lowest:
    """Descend from a round's own weights to those of the lowest loss, by L-BFGS-B, with gamma = 1.

    Args:
        run, round: A round that kept its clients.
        split, samples: As in `models_plane`; of more than MOST samples, so many are selected at random.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If there is no such split, one sample is selected, the loss is not a mean over samples, or no finite
            loss is found.
    """
    record = run.round(round)
    clients, recorded = record.kept("clients")[record.ids.argsort()], own_weights(record)
    every = selected_samples(run, round, split, min(samples or MOST, MOST))
    if len(every) < 2:
        raise ValueError(f"one sample of {split} was selected; best weights are judged on two halves, so give two.")
    halves = [every[torch.arange(first, len(every), 2)] for first in (0, 1)]
    rows = [_descended(run, clients, recorded, some) for some in (every, *halves)]
    judged = zip(rows, (every, *halves[::-1]), strict=True)
    (losses, shares), *on_halves = (_losses(run, clients, [recorded.row, row], some) for row, some in judged)
    base, lowest = (float(shares @ row) for row in losses)
    if not np.isfinite([base, lowest]).any():
        raise ValueError(f"no weights of round {round} of run {run.name} have a finite loss; select an earlier round.")
    better = Weights(1.0, tuple(rows[0])) if np.isnan(base) or lowest < base else recorded
    gains = torch.cat([values[0] - values[1] for values, _ in on_halves])
    parts = torch.cat([half for _, half in on_halves])
    parts /= parts.sum()  # 2, or 1 where no sample of a half counts
    gain = float(parts @ gains)
    error = float(parts @ (gains - gain) ** 2 / (int((parts > 0).sum()) - 1)) ** 0.5
    return Lowest(better, float(np.nanmin([base, lowest])), base, gain, error, len(every))


def _descended(run: Run, clients: Tensor, recorded: Weights, samples: Samples) -> list[float]:
    """lambda after the descent on samples, in x >= 0 with lambda = x / sum x, which begins with x = m lambda.

    The loss is a multiple of that where a search begins; one that has ended begins again until it gains no more.
    """
    from scipy.optimize import minimize  # here: it takes a quarter of a second to load

    middle, unit = clients.mean(0), torch.tensor(1.0, dtype=torch.float64)
    flat = run.task.flat(middle)
    use_batches(flat, True)
    aggregate = Aggregate(flat, Updates(clients, middle, torch.ones(len(clients), dtype=torch.bool)))

    def loss_and_slopes(x: np.ndarray, unity: float) -> tuple[float, np.ndarray]:
        shares = x / x.sum()
        loss, _, products = aggregate.gradient(unit, torch.tensor(shares), samples)
        return loss / unity, (products.numpy() - shares @ products.numpy()) / x.sum() / unity

    lowest, bounds = len(clients) * np.clip(recorded.shares, NOTHING, None), [(NOTHING, None)] * len(clients)
    unity = loss_and_slopes(lowest, 1.0)[0]
    for _ in range(BEGUN):
        how = {"args": abs(unity) or 1.0, "jac": True, "bounds": bounds, "options": DESCENT}
        search = minimize(loss_and_slopes, lowest, method="L-BFGS-B", **how)
        lowest, gained = search.x * len(clients) / search.x.sum(), unity - search.fun * (abs(unity) or 1.0)
        unity -= gained
        if not gained > 1e-3 * abs(unity):
            break
    lowest = np.where(lowest > 1e3 * NOTHING, lowest, 0)
    return list((lowest / lowest.sum()).tolist())


def _losses(run: Run, clients: Tensor, rows: Sequence[Sequence[float]], samples: Samples) -> tuple[Tensor, Tensor]:
    """Loss of each sample that counts at combinations of the clients (rows, n), and its share in the mean (n,)."""
    points, single = torch.tensor(rows, dtype=torch.float64), torch.arange(len(samples))
    values = evaluate_models(run, clients, samples, points, groups=single)["loss"].double()
    weights = group_weights(run.task.per_sample, samples.targets, single)
    return values[:, weights > 0], weights[weights > 0] / weights.sum()


NOTHING = 1e-14
"""Least share of a client in the descent, so that some client has one; a share near it is none."""

MOST, BEGUN, DESCENT = 1000, 20, {"ftol": 1e-6, "gtol": 1e-6, "maxfun": 100}
"""Samples of the descent to the lowest loss at most, searches that begin where another ended, and for each the gain of
a step and the slope that end it, relative to the loss where it began, and most gradients."""

_WORDS = {"class_error": "error of the class"}
