"""The expected loss of a federated average, split into bias, variance and covariance of the client models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor

from drift.five_factors import sample_factors, totals
from drift.keys import rng
from drift.series import shares
from landscape.progress import counted
from landscape.samples import Samples

if TYPE_CHECKING:
    from drift.rounds import Round
    from drift.run import Run

Estimator = Literal["single", "local"]
Outputs = Literal["probabilities", "logits"]
Split = Literal["train", "test"]
Union = Literal["cohort", "all"]

HELD = 1 << 28
"""Bytes of model outputs held at a time."""

_LABELS = {
    "bias2": "squared bias",
    "B_T": "train part of the squared bias",
    "B_H": "heterogeneity part of the squared bias",
    "B_TH": "cross part of the squared bias",
    "train_bias": "train bias of the clients",
    "heterogeneity_bias": "heterogeneity bias of the clients",
    "var": "variance",
    "cov": "covariance",
    "locality": "largest distance of a client to the averaged model",
    "wens_loss": "squared error of the ensemble (WENS)",
    "fma_loss": "squared error of the averaged model (FMA)",
    "residual": "squared error of FMA minus that of WENS",
    "wens_error": "error of the ensemble (WENS)",
    "fma_error": "error of the averaged model (FMA)",
    "gap": "distance between the outputs of WENS and FMA",
    "gap_ratio": "output distance over squared locality",
}


def decomposition(
    run: Run,
    *,
    rounds: list[int] | None = None,
    estimator: Estimator = "single",
    replicates: int = 3,
    samples_per_client: int = 200,
    split: Split = "train",
    outputs: Outputs = "probabilities",
    union: Union = "cohort",
) -> xr.Dataset:
    """Five factors of the loss of the averaged model, round by round.

    E L(FMA) = bias2 + var + cov + O(locality^2) for the squared error of the outputs against one-hot targets,
    summed over classes. Sums over clients run over the round's cohort with its weights (data sizes, or uniform
    where the experiment says so). A training sample is a client's own if the client trained on it; test samples
    belong to nobody, there a sample is a client's own if its label occurs among the client's labels.

    The estimator single takes each client's recorded model for its mean; var and cov are then NaN. The estimator
    local trains every client again from the same start with fresh randomness (replicate 0 is the record). Given the
    start the clients are independent, so that its covariance only shows the noise.

    FMA has the weighted mean of the clients' parameters and buffers, whatever the method made of them; WENS the
    weighted mean of their outputs.

    Source: Zhou et al. 2024 (IMA), theorem 1 and lemma 1; estimators as in methods.md 3.2.1 and 3.2.2.

    Args:
        rounds: Round indices; when absent, all that kept clients.
        replicates: Models of each client for the estimator local, at least 2.
        samples_per_client: Training samples drawn from each client, the same in every round; each stands for its
            share of the client's data. On test: test samples drawn per client of a cohort.
        outputs: Softmax probabilities, or the model's outputs as they are.
        union: Train samples are those of the cohort, or of all clients.

    Returns:
        Dataset with the quantities of `five_factors`, locality, errors (fraction), gap and gap / locality^2, each
        (round,).

    Raises:
        LookupError: If no round, or one of those named, kept its clients.
        ValueError: If there are too few replicates or samples.
    """
    if estimator == "local" and replicates < 2:
        raise ValueError(f"replicates is {replicates}; the estimator local needs at least 2, better 3 or more.")
    if samples_per_client < 1:
        raise ValueError(f"samples_per_client is {samples_per_client}; give at least 1.")
    number = replicates if estimator == "local" else 1
    rows: dict[int, dict[str, float]] = {}
    for index in counted(run.kept("clients") if rounds is None else rounds, run.progress):
        record = run.round(index)
        if len(record.kept("clients")):  # a round in which every client diverged has none
            chosen = _chosen(run, record, samples_per_client, split, union)
            rows[record.index] = _factors(run, record, number, outputs, chosen)
    if not rows:
        raise LookupError(f"run {run.name} has no round with client models; train with --set keep.clients=all.")
    return xr.Dataset(
        {
            name: ("round", [row[name] for row in rows.values()], {"long_name": label, "units": "1"})
            for name, label in _LABELS.items()
        },
        coords={"round": ("round", list(rows), {"long_name": "round", "units": "1"})},
        attrs={
            "analysis": "decomposition",
            "source": "Zhou et al. 2024, theorem 1",
            "estimator": estimator,
            "replicates": number,
            "outputs": outputs,
            "split": split,
            "union": union,
            "samples_per_client": samples_per_client,
            "membership": "trained on the sample" if split == "train" else "label among the client's labels",
        },
    )


@dataclass(frozen=True)
class Chosen:
    """Samples (n), whose own each is (m, n), and the share of the data that each stands for (n,), summing to 1."""

    samples: Samples
    member: Tensor
    shares: Tensor


def _chosen(run: Run, record: Round, count: int, split: Split, union: Union) -> Chosen:
    ids, seed = record.ids.tolist(), run.experiment.seed
    if split == "test":
        samples = run.task.split("test")
        wanted = min(len(samples), count * run.experiment.clients.per_round)
        drawn = np.sort(rng(seed, "decomposition", "test").permutation(len(samples))[:wanted])
        samples = samples[torch.from_numpy(drawn)]
        labels = samples.targets.cpu().numpy()
        member = np.stack([np.isin(labels, run.labels[run.parts[client]]) for client in ids])
        return Chosen(samples, torch.from_numpy(member), torch.full((wanted,), 1 / wanted, dtype=torch.float64))
    sources = [client for client in (ids if union == "cohort" else range(len(run.parts))) if len(run.parts[client])]
    picked = [rng(seed, "decomposition", client).permutation(run.parts[client])[:count] for client in sources]
    drawn = np.concatenate(picked)
    member = np.stack([np.isin(drawn, run.parts[client]) for client in ids])
    shares = np.concatenate([np.full(len(p), len(run.parts[c]) / len(p)) for c, p in zip(sources, picked, strict=True)])
    samples = run.task.split("train")[torch.from_numpy(drawn)]
    return Chosen(samples, torch.from_numpy(member), torch.from_numpy(shares / shares.sum()))


def _factors(run: Run, record: Round, replicates: int, outputs: Outputs, chosen: Chosen) -> dict[str, float]:
    models, buffers = _models(run, record, replicates)
    weights = shares(run.experiment, record)
    average = torch.einsum("k,rkd->rd", weights.to(models), models)
    statistics = torch.einsum("k,rkb->rb", weights.to(buffers), buffers)

    def predicted(thetas: Tensor, held: Tensor, samples: Samples) -> Tensor:
        pairs = zip(thetas, held, strict=True)
        found = torch.stack([run.task.outputs(theta, samples, buffers=row) for theta, row in pairs])
        return found.softmax(-1) if outputs == "probabilities" else found

    parts: list[dict[str, Tensor]] = []
    for where in _blocks(chosen, models.shape[:2].numel() * len(run.dataset.classes)):
        samples = chosen.samples[where]
        pairs = zip(models, buffers, strict=True)
        clients = torch.stack([predicted(thetas, held, samples) for thetas, held in pairs])
        fma, wens = predicted(average, statistics, samples), torch.einsum("k,rknc->rnc", weights.to(models), clients)
        targets = F.one_hot(samples.targets, clients.shape[-1])
        found = sample_factors(clients, targets, chosen.member[:, where], weights, fma=fma)
        wrong = {
            name: (vote.argmax(-1) != samples.targets).double().mean(0)
            for name, vote in {"wens_error": wens, "fma_error": fma}.items()
        }
        parts.append(found | wrong)
    joined = {name: torch.cat([part[name] for part in parts], dim=-1) for name in parts[0]}
    means = totals(joined, chosen.member, weights, chosen.shares)
    locality = float((models - average[:, None]).norm(dim=2).double().amax(1).mean())
    ratio = means["gap"] / locality**2 if locality > 0 else float("nan")
    return means | {"locality": locality, "gap_ratio": ratio}


def _models(run: Run, record: Round, replicates: int) -> tuple[Tensor, Tensor]:
    """Client models (M, m, d) and buffers (M, m, b); the first are the recorded ones."""
    models, buffers = [record.kept("clients")], [record.client_buffers]
    for replicate in range(1, replicates):
        again = [run.method.local(run.client(record.index, k, replicate=replicate)) for k in record.ids.tolist()]
        models.append(torch.stack([update.theta for update in again]))
        buffers.append(torch.stack([update.buffers for update in again]))
    return torch.stack(models), torch.stack(buffers)


def _blocks(chosen: Chosen, numbers: int) -> Iterator[slice]:
    """Pieces of the samples whose outputs fit into memory, at so many numbers a sample and some copies of them."""
    size = max(1, HELD // (4 * 8 * numbers))
    return (slice(low, low + size) for low in range(0, len(chosen.samples), size))
