"""From an experiment to its data, partition, proxy set and task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from drift.experiment import Experiment, Proxy
from drift.keys import key, rng
from landscape.datasets import open_dataset
from landscape.datasets._dataset import normalisation
from landscape.models import build_model
from landscape.samples import Samples
from landscape.task import Task


@dataclass(frozen=True)
class Data:
    """Samples by split, classes, shape of an input, and who holds what.

    Args:
        samples: Splits train, test and, where the experiment has one, proxy.
        parts: Sample numbers (into train) of each client, K arrays; what clients train on.
        held_out: Sample numbers that clients keep for validation, K arrays.
        normalisation: mean and std of inputs z = (x - mean) / std, x in [0, 1], one number a channel or one for all.
    """

    samples: dict[str, Samples]
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    fingerprint: str
    parts: list[np.ndarray]
    held_out: list[np.ndarray]
    normalisation: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0,), (1.0,))

    @property
    def labels(self) -> np.ndarray:
        """Class of every training sample, shape (n,)."""
        return self.samples["train"].targets.numpy()

    def sizes(self) -> np.ndarray:
        """Samples each client holds, held-out ones included, shape (K,)."""
        return np.array([len(part) + len(held) for part, held in zip(self.parts, self.held_out, strict=True)])


def read_data(experiment: Experiment, data: Path | None) -> Data:
    """Data of an experiment, split as its partition and proxy set say."""
    spec, seed = experiment.task, experiment.seed
    dataset = open_dataset(spec.dataset, data=data, scale=spec.scale, **spec.dataset_options)
    splits = {
        "train": _subset(dataset.train, spec.train_samples, seed, "train"),
        "test": _subset(dataset.test, spec.test_samples, seed, "test"),
    }
    classes = len(dataset.classes)
    if experiment.proxy is not None:
        chosen = proxy_indices(splits["test"].targets.numpy(), classes, experiment.proxy, seed)
        rest = np.setdiff1d(np.arange(len(splits["test"])), chosen)
        splits["proxy"] = splits["test"][torch.from_numpy(chosen)]
        splits["test"] = splits["test"][torch.from_numpy(rest)]
    spread = experiment.clients
    source = rng(seed if spread.partition_seed is None else spread.partition_seed, "partition")
    parts = spread.partition.split(splits["train"].targets.numpy(), spread.number, source)
    held = [_held_out(part, spread.valid_ratio, seed, client) for client, part in enumerate(parts)]
    kept = [np.setdiff1d(part, out) for part, out in zip(parts, held, strict=True)]
    about = tuple(dataset.classes), tuple(dataset.shape), dataset.fingerprint
    return Data(splits, *about, kept, held, normalisation(dataset))


def build_task(experiment: Experiment, data: Data) -> Task:
    """The task of an experiment, with its initial model (keyed by the seed and the architecture alone).

    Raises:
        ValueError: If the backbone is to be frozen and the model does not tell it from its head.
    """
    spec = experiment.task
    seed = key(experiment.seed, "init")
    model = build_model(spec.model, data.shape, len(data.classes), seed=seed, **spec.model_options)
    if spec.freeze_backbone:
        if not isinstance(getattr(model, "body", None), nn.Module):
            raise ValueError(f"task.freeze_backbone needs a model with a `body`, {spec.model} has none; leave it out.")
        model.body.requires_grad_(False)
    return Task(model, data.samples)


def proxy_indices(labels: np.ndarray, classes: int, proxy: Proxy, seed: int) -> np.ndarray:
    """Sample numbers of the proxy set, ascending.

    With `long_tail` = 1/f, class c gets floor(V/C * f ** (c / (C - 1))) of V samples (methods.md 1.3).

    Raises:
        ValueError: If a class has too few samples.
    """
    source, chosen = rng(seed, "proxy"), []
    for label in range(classes):
        tail = 1.0 if proxy.long_tail is None else proxy.long_tail ** (-label / max(1, classes - 1))
        wanted, members = int(proxy.per_class * tail), np.flatnonzero(labels == label)
        if wanted > len(members):
            raise ValueError(
                f"proxy.per_class is {proxy.per_class}, class {label} has {len(members)} test samples; lower it."
            )
        chosen.append(source.permutation(members)[:wanted])
    return np.sort(np.concatenate(chosen))


def _subset(samples: Samples, size: int | None, seed: int, split: str) -> Samples:
    """A stratified subset of `size` samples in the original order."""
    if size is None or size == len(samples):
        return samples
    if size > len(samples):
        raise ValueError(f"task.{split}_samples is {size}, the {split} split has {len(samples)}; lower it or leave it.")
    labels = samples.targets.numpy()
    order = rng(seed, "subset", split).permutation(len(labels))
    rank = np.empty(len(labels))
    for label in np.unique(labels):
        members = order[labels[order] == label]
        rank[members] = (np.arange(len(members)) + 0.5) / len(members)
    return samples[torch.from_numpy(np.sort(np.lexsort((order, rank))[:size]))]


def _held_out(part: np.ndarray, ratio: float, seed: int, client: int) -> np.ndarray:
    return rng(seed, "held out", client).permutation(part)[: int(ratio * len(part))]
