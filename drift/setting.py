"""From an experiment to its data, partition, proxy set and task."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from drift.corruption import corrupted_targets, swaps
from drift.experiment import Experiment, Proxy
from drift.keys import cohort, key, rng
from drift.start import started
from landscape.datasets import open_dataset
from landscape.datasets._classes import of_classes
from landscape.datasets._dataset import normalisation
from landscape.models import build_model
from landscape.samples import Samples
from landscape.task import Task


@dataclass(frozen=True)
class Data:
    """Samples by split, classes, shape of an input, and who holds what.

    Args:
        samples: Splits train, test and, where the experiment has one, proxy. Targets of train are those that clients
            see, with the corrupted ones where there are any.
        parts: Sample numbers (into train) of each client, K arrays; what clients train on.
        held_out: Sample numbers that clients keep for validation, K arrays.
        corrupted: The two classes that each corrupted client swaps, by client.
        normalisation: mean and std of inputs z = (x - mean) / std, x in [0, 1], one number a channel or one for all.
    """

    samples: dict[str, Samples]
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    fingerprint: str
    parts: list[np.ndarray]
    held_out: list[np.ndarray]
    corrupted: dict[int, tuple[int, int]] = field(default_factory=dict)
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
    if spec.classes is not None:
        dataset = of_classes(dataset, spec.classes)
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
    labels = splits["train"].targets.numpy()
    parts = spread.partition.split(labels, spread.number, rng(_partition_seed(experiment), "partition"))
    held = [_held_out(part, spread.valid_ratio, seed, client) for client, part in enumerate(parts)]
    kept = [np.setdiff1d(part, out) for part, out in zip(parts, held, strict=True)]
    swapped = swaps(experiment, labels, parts, classes)
    if swapped:
        splits["train"] = replace(splits["train"], targets=corrupted_targets(splits["train"].targets, parts, swapped))
    about = tuple(dataset.classes), tuple(dataset.shape), dataset.fingerprint
    return Data(splits, *about, kept, held, swapped, normalisation(dataset))


def dealt(experiment: Experiment, data: Data, index: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sample numbers (into train) that each of the K clients trains on, and those that it holds out, in round `index`.

    The cohort's are what the partition makes of all their data in this round; a client outside it has its own.
    """
    spread, seed = experiment.clients, experiment.seed
    if not spread.partition.moves:
        return data.parts, data.held_out
    drawn = cohort(seed, index, spread.number, spread.per_round)
    own = [np.union1d(part, out) for part, out in zip(data.parts, data.held_out, strict=True)]
    source = rng(_partition_seed(experiment), "partition", index)
    parts, held = list(data.parts), list(data.held_out)
    for client, part in zip(drawn.tolist(), spread.partition.for_round(data.labels, own, drawn, source), strict=True):
        held[client] = _held_out(part, spread.valid_ratio, seed, client, index)
        parts[client] = np.setdiff1d(part, held[client])
    return parts, held


def build_task(experiment: Experiment, data: Data) -> Task:
    """The task of an experiment, with its initial model.

    Initial values are keyed by the seed and the architecture alone; `init` puts those of a checkpoint in their place.

    Raises:
        LookupError: If there is no such checkpoint.
        ValueError: If it is another model's, or was altered; or the backbone is to be frozen and the model does not
            tell it from its head.
    """
    spec = experiment.task
    seed = key(experiment.seed, "init")
    model = build_model(spec.model, data.shape, len(data.classes), seed=seed, **spec.model_options)
    if experiment.init is not None:
        model = started(model, experiment.init, data.classes)
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


def _partition_seed(experiment: Experiment) -> int:
    chosen = experiment.clients.partition_seed
    return experiment.seed if chosen is None else chosen


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


def _held_out(part: np.ndarray, ratio: float, seed: int, *purpose: int) -> np.ndarray:
    return rng(seed, "held out", *purpose).permutation(part)[: int(ratio * len(part))]
