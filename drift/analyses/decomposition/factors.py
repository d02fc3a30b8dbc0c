"""The five factors of one round, from outputs of its clients' models in blocks within a memory budget."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from drift.analyses.decomposition.client_models import Rows
from drift.analyses.decomposition.evaluation_samples import EvaluationSamples
from drift.analyses.decomposition.five_factors import partial_sums, quantities
from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.measures.predictions import class_probabilities
from landscape.model.batchnorm import Statistics, calibration_of, recalibrate, usual_statistics
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.results.stated import state

Outputs = Literal["probabilities", "logits"]

FORWARD = 512
"""Samples in one forward pass."""

CACHE = 2**23
"""Bytes of outputs that are summed at once: more is slower."""


@dataclass(frozen=True)
class Budget:
    """Bytes for a round's retrained models, for outputs, and for float64 copies of a part of the outputs."""

    models: int
    outputs: int
    copies: int

    @classmethod
    def divide(cls, run: Run, record: Round, replicates: int, memory: int, *, retrained: bool) -> Self:
        """The budget from `memory` bytes, less the averaged models and a workspace.

        Raises:
            ValueError: If it does not suffice for one sample.
        """
        sizes = clients, classes = len(record.ids), len(run.dataset.class_names)
        size = run.task.layout.size + run.task.layout.buffer_size
        fixed = size * (8 * replicates + 24)  # averages in float64; parameters, gradient, one model in float64
        left = memory - fixed
        limit = left // (4 if retrained else 2)
        budget = cls(left // 2 if retrained else 0, limit, limit)
        if min(budget.samples_at_once(replicates, *sizes), budget.samples_per_sum(replicates, *sizes)) < 1:
            least = fixed + 4 * _copy(replicates, clients, classes)
            raise ValueError(
                f"memory is {memory} bytes; {replicates} averaged models of {size} numbers and one sample's outputs of "
                f"{replicates} x {clients} models need {least}. Give more, or fewer replicates."
            )
        return budget

    @staticmethod
    def bytes_used(run: Run, replicates: int, samples: int, memory: int, *, retrained: bool) -> int:
        """Bytes of `memory` that a round with all clients of a cohort uses."""
        size, clients = run.task.layout.size + run.task.layout.buffer_size, run.experiment.clients.per_round
        models = size * (8 * replicates + 24) + (4 * size * (replicates - 1) * clients if retrained else 0)
        return min(memory, models + 8 * replicates * (clients + 1) * len(run.dataset.class_names) * samples + CACHE)

    def samples_at_once(self, replicates: int, clients: int, classes: int) -> int:
        """Number of samples whose outputs fit."""
        return self.outputs // (8 * replicates * (clients + 1) * classes)

    def samples_per_sum(self, *sizes: int) -> int:
        """Number of samples that are summed at once: no more than fit into a cache."""
        return min(self.copies, max(CACHE, _copy(*sizes))) // _copy(*sizes)


def factors(
    run: Run,
    record: Round,
    models: list[Rows],
    selected: EvaluationSamples,
    outputs: Outputs,
    statistics: Statistics | None,
    budget: Budget,
) -> dict[str, float]:
    """The `quantities` of a round, locality, errors, gap and gap ratio, by name.

    Args:
        record: Supplies the clients; its models are not read.
        models: M models of each client.
        selected: Samples.
        statistics: Batch statistics of the averaged models.
    """
    weights = record.shares
    flat = run.task.flat(models[0](0)[0])
    averages = [average(rows, weights) for rows in models]
    statistics = statistics or usual_statistics(run.task) or "averaged"
    state({"statistics": f"own, {statistics}"} if flat.layout.buffers else {})
    if statistics == "recomputed":
        samples = calibration_of(run.task, "train")
        averages = [(theta, recalibrate(run.task, theta.to(flat.theta), fixed, samples)) for theta, fixed in averages]
    classes = len(run.dataset.class_names)
    total: dict[str, Tensor] = {}
    sizes = (len(models), len(weights), classes)
    for where in _blocks(0, len(selected), budget.samples_at_once(*sizes)):
        samples = selected.samples(where)
        clients = torch.empty(*sizes[:2], len(samples), classes, dtype=flat.theta.dtype)
        for replicate, rows in enumerate(models):
            for row in range(len(weights)):
                clients[replicate, row] = model_outputs(flat, *rows(row), samples, outputs)
        fma = torch.stack([model_outputs(flat, *average, samples, outputs) for average in averages])
        member, shares = selected.member(where), selected.shares[where]
        for block in _blocks(0, len(samples), budget.samples_per_sum(*sizes)):
            sums = _partial_sums(
                clients[:, :, block], samples.targets[block], member[:, block], weights, shares[block], fma[:, block]
            )
            total = {name: total.get(name, 0) + value for name, value in sums.items()}
    means = quantities(total, weights, len(models))
    usable = weights.nonzero().flatten().tolist()
    far = [_farthest(rows, average, usable) for rows, (average, _) in zip(models, averages, strict=True)]
    locality = sum(far) / len(far)
    return means | {"locality": locality, "gap_ratio": means["gap"] / locality**2 if locality > 0 else float("nan")}


def model_outputs(flat: Flat, theta: Tensor, buffers: Tensor, samples: Samples, kind: Outputs) -> Tensor:
    """Outputs (n, C) of one model on samples, in eval mode and without gradients, as they are or their softmax."""
    flat.load(theta, buffers)
    with torch.no_grad():
        raw = torch.cat([flat.outputs(rows.inputs) for rows in samples.blocks(FORWARD)])
    return class_probabilities(raw, samples.targets) if kind == "probabilities" else raw


def _partial_sums(
    clients: Tensor, labels: Tensor, member: Tensor, weights: Tensor, shares: Tensor, fma: Tensor
) -> dict[str, Tensor]:
    sums = partial_sums(clients, F.one_hot(labels, clients.shape[-1]), member, weights, shares, fma=fma)
    wens = torch.einsum("k,rknc->rnc", weights.to(clients), clients)
    for name, vote in {"wens_error": wens, "fma_error": fma}.items():
        sums[name] = (vote.argmax(-1) != labels).double().mean(0) @ shares
    return sums


def average(rows: Rows, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted mean of the clients' parameters (d,) and buffers (b,), float64; clients of weight 0 have no part."""
    theta, buffers = (torch.zeros_like(vector, dtype=torch.float64) for vector in rows(0))
    for row in weights.nonzero().flatten().tolist():
        for mean, vector in zip((theta, buffers), rows(row), strict=True):
            mean.add_(vector, alpha=float(weights[row]))
    return theta, buffers


def _farthest(rows: Rows, average: Tensor, usable: Sequence[int]) -> float:
    return max(float((rows(row)[0] - average).norm()) for row in usable)


def _blocks(low: int, high: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, high)) for start in range(low, high, size))


def _copy(replicates: int, clients: int, classes: int) -> int:
    """Bytes of one sample's float64 copies: outputs, deviations, products, errors of clients."""
    return 8 * (4 * replicates * clients * classes + 4 * clients * classes + 2 * clients * clients)
