"""From an experiment to its data, partition, proxy set and task; labels of corrupted clients are swapped."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from drift.config.experiment import Experiment, Proxy
from drift.config.external_run import ExternalPartition, UnknownParts
from drift.config.initial_model import initialise
from drift.config.random_keys import cohort, key, rng
from drift.partitions._partitioner import split_with_groups
from drift.plugins import trust
from drift.training.corrupted_labels import corrupted_targets, swaps
from landscape.datasets import open_dataset
from landscape.datasets._dataset import Dataset, Groups, merge_splits, normalisation, select_samples
from landscape.datasets._split import select_classes
from landscape.model.binary_losses import binary_cross_entropy, binary_error
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.model.token_losses import token_cross_entropy, token_error
from landscape.models import build_model


@dataclass(frozen=True, repr=False)
class Data:
    """Samples by split, classes, shape of an input, and the samples of each client.

    Args:
        samples: Splits train, test and, where the experiment has one, proxy. Targets of train are those that clients
            see, with the corrupted ones where there are any.
        parts: Sample numbers (into train) of each client, K arrays; what clients train on.
        held_out: Sample numbers that clients keep for validation, K arrays.
        corrupted: The two classes that each corrupted client swaps, by client.
        normalisation: mean and std of inputs z = (x - mean) / std, x in [0, 1], one number per channel or one for all.
        groups: Further labels of the train and test samples by kind: "domain", "user", "coarse".
        loss: "cross_entropy" of one output per class, "binary": of one output, the logit of class 1, or "tokens": of
            logits of every place of a text.
    """

    samples: dict[str, Samples]
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    fingerprint: str
    parts: list[np.ndarray]
    held_out: list[np.ndarray]
    corrupted: dict[int, tuple[int, int]] = field(default_factory=dict)
    normalisation: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0,), (1.0,))
    groups: Mapping[str, Groups] = field(default_factory=dict)
    loss: str = "cross_entropy"

    def __repr__(self) -> str:
        """One line: samples by split, number of classes, clients."""
        splits = ", ".join(f"{name} {len(samples)}" for name, samples in self.samples.items())
        return f"Data({splits}; {len(self.classes)} classes, inputs {self.shape}, {len(self.parts)} clients)"

    @property
    def labels(self) -> np.ndarray:
        """Class of every training sample, shape (n,).

        Raises:
            LookupError: If the samples are texts.
        """
        if self.loss == "tokens":
            _ = self.class_names  # which says that there are none
        return self.samples["train"].targets.numpy()

    @property
    def class_names(self) -> list[str]:
        """Names of the classes.

        Raises:
            LookupError: If the targets are no class numbers, as in regression.
        """
        if not self.classes or self.loss == "tokens":
            targets = self.samples["train"].targets
            raise LookupError(
                f"the data have no classes: their targets are {str(targets.dtype).removeprefix('torch.')} of shape "
                f"{tuple(targets.shape)}, and this needs one class number per sample."
            )
        return [str(name) for name in self.classes]

    def sizes(self) -> np.ndarray:
        """Samples each client holds, held-out ones included, shape (K,)."""
        return np.array([len(rows) + len(out) for rows, out in zip(self.parts, self.held_out, strict=True)])


def read_data(experiment: Experiment, data: Path | None) -> Data:
    """Data of an experiment, split by its partition and proxy set."""
    spec, seed = experiment.task, experiment.seed
    dataset = open_dataset(trust.located(spec.dataset), data=data, scale=spec.scale, **spec.dataset_options)
    if spec.classes is not None:
        dataset = select_classes(dataset, spec.classes)
    dataset = select_samples(
        dataset,
        _subset(dataset.train, spec.train_samples, seed, "train"),
        _subset(dataset.test, spec.test_samples, seed, "test"),
        stated=dataset.fingerprint,
    )
    spread, classes = experiment.clients, len(dataset.classes)
    dataset, parts = _split(experiment, dataset)
    splits = {"train": dataset.train, "test": dataset.test}
    if experiment.proxy is not None:
        proxy_numbers = proxy_indices(splits["test"].targets.numpy(), classes, experiment.proxy, seed)
        rest = np.setdiff1d(np.arange(len(splits["test"])), proxy_numbers)
        splits["proxy"] = splits["test"][torch.from_numpy(proxy_numbers)]
        dataset = select_samples(dataset, None, torch.from_numpy(rest), stated=dataset.fingerprint)
        splits["test"] = dataset.test
    about = tuple(dataset.classes), tuple(dataset.shape), dataset.fingerprint
    further = normalisation(dataset), dataset.groups, dataset.loss
    if isinstance(spread.partition, ExternalPartition):
        unknown: Any = UnknownParts()
        return Data(splits, *about, unknown, unknown, {}, *further)
    labels = _classes_of(splits["train"])
    held_out = [_held_out(rows, spread.valid_ratio, seed, client) for client, rows in enumerate(parts)]
    trained_on = [np.setdiff1d(rows, out) for rows, out in zip(parts, held_out, strict=True)]
    swapped = swaps(experiment, labels, parts, classes)
    if swapped:
        splits["train"] = replace(splits["train"], targets=corrupted_targets(splits["train"].targets, parts, swapped))
    return Data(splits, *about, trained_on, held_out, swapped, *further)


def client_samples(experiment: Experiment, data: Data, index: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sample numbers (into train) that each of the K clients trains on, and those that it holds out, in round `index`.

    The cohort's are what the partition makes of all their data in this round; a client outside it has its own.
    """
    spread, seed = experiment.clients, experiment.seed
    if not spread.partition.moves:
        return data.parts, data.held_out
    ids = cohort(seed, index, spread.number, spread.per_round)
    before = [np.union1d(rows, out) for rows, out in zip(data.parts, data.held_out, strict=True)]
    source = rng(_partition_seed(experiment), "partition", index)
    parts, held_out = list(data.parts), list(data.held_out)
    for client, rows in zip(ids.tolist(), spread.partition.for_round(data.labels, before, ids, source), strict=True):
        held_out[client] = _held_out(rows, spread.valid_ratio, seed, client, index)
        parts[client] = np.setdiff1d(rows, held_out[client])
    return parts, held_out


def build_task(experiment: Experiment, data: Data, folder: Path | None = None) -> Task:
    """The task of an experiment, with its initial model.

    Initial values are keyed by the seed and the architecture alone; `init` puts those of a checkpoint in their place,
    or of the copy of it in `folder`, that of the run.

    Raises:
        LookupError: If there is no such checkpoint.
        ValueError: If it is another model's, or was altered; or the backbone is to be frozen and the model does not
            tell it from its head.
    """
    spec = experiment.task
    seed = key(experiment.seed, "init")
    model = build_model(trust.located(spec.model), data.shape, len(data.classes), seed=seed, **spec.model_options)
    if experiment.init is not None:
        model = initialise(model, experiment.init, data.classes, folder)
    if spec.freeze_backbone:
        if not isinstance(getattr(model, "body", None), nn.Module):
            raise ValueError(f"task.freeze_backbone needs a model with a `body`, {spec.model} has none; leave it out.")
        model.body.requires_grad_(False)
    return task_of(model, data.samples, data.loss)


def task_of(model: nn.Module, samples: Mapping[str, Samples], loss: str) -> Task:
    """The task of a model with the loss that the dataset names: "cross_entropy", "binary" or "tokens"."""
    if loss == "tokens":
        return Task(model, samples, loss=token_cross_entropy, metrics={"error": token_error})
    if loss == "binary":
        return Task(model, samples, loss=binary_cross_entropy, metrics={"error": binary_error})
    return Task(model, samples)


def proxy_indices(labels: np.ndarray, classes: int, proxy: Proxy, seed: int) -> np.ndarray:
    """Sample numbers of the proxy set, ascending.

    With `long_tail` = 1/f, class c gets floor(V/C * f ** (c / (C - 1))) of V samples (papers.md 1.3).

    Raises:
        ValueError: If a class has too few samples.
    """
    source, selected = rng(seed, "proxy"), []
    for label in range(classes):
        tail = 1.0 if proxy.long_tail is None else proxy.long_tail ** (-label / max(1, classes - 1))
        count, members = int(proxy.per_class * tail), np.flatnonzero(labels == label)
        if count > len(members):
            raise ValueError(
                f"proxy.per_class is {proxy.per_class}, class {label} has {len(members)} test samples; lower it."
            )
        selected.append(source.permutation(members)[:count])
    return np.sort(np.concatenate(selected))


def _partition_seed(experiment: Experiment) -> int:
    stated = experiment.clients.partition_seed
    return experiment.seed if stated is None else stated


def _split(experiment: Experiment, dataset: Dataset) -> tuple[Dataset, list[np.ndarray]]:
    """The dataset, with another test set if the partition `splits_test`, and the sample numbers of each client."""
    partition, seed = experiment.clients.partition, _partition_seed(experiment)
    if isinstance(partition, ExternalPartition):
        return dataset, []
    merged = merge_splits(dataset) if partition.splits_test else dataset
    labels = _classes_of(merged.train)
    groups = {kind: group.train.numpy() for kind, group in merged.groups.items()}
    parts = split_with_groups(partition, labels, experiment.clients.number, rng(seed, "partition"), groups)
    if not partition.splits_test:
        return dataset, parts
    train, test = partition.tested(labels, parts, rng(seed, "partition", "test"))
    order, tests = np.concatenate(train), np.sort(np.concatenate(test))
    ends = np.cumsum([len(rows) for rows in train])
    numbers = [np.arange(end - len(rows), end) for end, rows in zip(ends, train, strict=True)]
    split = select_samples(merged, torch.from_numpy(order), torch.from_numpy(tests), stated=dataset.fingerprint)
    return split, numbers


def _classes_of(samples: Samples) -> np.ndarray:
    """Class of every sample, shape (n,); all texts are of one."""
    labels = samples.targets.numpy()
    return labels if labels.ndim == 1 else np.zeros(len(labels), np.int64)


def _subset(samples: Samples, size: int | None, seed: int, split: str) -> torch.Tensor | None:
    """Numbers of a stratified subset of `size` samples in the original order; None for all."""
    if size is None or size == len(samples):
        return None
    if size > len(samples):
        raise ValueError(f"task.{split}_samples is {size}, the {split} split has {len(samples)}; lower it or leave it.")
    labels = _classes_of(samples)
    order = rng(seed, "subset", split).permutation(len(labels))
    rank = np.empty(len(labels))
    for label in np.unique(labels):
        members = order[labels[order] == label]
        rank[members] = (np.arange(len(members)) + 0.5) / len(members)
    return torch.from_numpy(np.sort(np.lexsort((order, rank))[:size]))


def _held_out(rows: np.ndarray, ratio: float, seed: int, *purpose: int) -> np.ndarray:
    return rng(seed, "held out", *purpose).permutation(rows)[: int(ratio * len(rows))]
