"""Pre-training: centralised training on the user's data, stored as a checkpoint."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from drift.config.experiment import Experiment, TaskSettings
from drift.config.random_keys import key
from drift.parallel.threads import torch_threads
from drift.plugins.reserved_names import require_free
from drift.simulation.description import versions
from drift.simulation.simulate import Diverged
from drift.store import files
from drift.training.client import Client
from drift.training.data import task_of
from landscape import datasets
from landscape.datasets import Dataset, open_dataset
from landscape.datasets._split import select_classes
from landscape.model.samples import Samples
from landscape.models import build_model
from landscape.sweep.evaluate import model_metrics

EpochProgress = Callable[[int, float, float], None]
"""(epochs done, mean training loss in nats, accuracy on the test samples, a fraction) -> None."""


def pretrain(
    experiment: Experiment,
    path: str | Path,
    *,
    dataset: str | None = None,
    dataset_options: Mapping[str, Any] | None = None,
    classes: Sequence[int] | None = None,
    epochs: int = 5,
    data: str | Path | None = None,
    progress: EpochProgress | None = None,
) -> dict[str, Any]:
    """A checkpoint at `path` that the experiment can start from (`init`), and its description.

    The experiment's model is trained as one client that holds all samples of another dataset, or of some classes, with
    the experiment's local settings and seed; images get the size and channels of the experiment's own. Where the same
    checkpoint is there already, it is not trained again.

    Source: the pre-trained start of the LSS paper (papers.md 5.3), on the user's data in place of ImageNet.

    Args:
        experiment: Names model, scaling of pixels, local settings, seed and threads.
        path: Ends in .safetensors.
        dataset: The training data; by default the experiment's.
        dataset_options: Options of that dataset, added to the experiment's if it is the same dataset.
        classes: Numbers of the classes that are trained on; all where not given.
        epochs: Over all samples; the rate decays by local.lr_decay after each.
        data: Folder of the datasets.
        progress: Called after every epoch.

    Returns:
        dataset, fingerprint, classes (names), numbers (of the classes), model, epochs, seed, samples, accuracy on the
        test samples (a fraction), loss (nats) and settings.

    Raises:
        ValueError: If the clients train on the same samples, the images cannot be fit_images, or another checkpoint is
            at `path`.
        Diverged: If training ends in values that are not finite.
    """
    path, spec = Path(path), experiment.task
    dataset = spec.dataset if dataset is None else dataset
    if path.suffix != ".safetensors":
        raise ValueError(f"the checkpoint is to be written to {path}; give a name that ends in .safetensors.")
    if epochs < 1:
        raise ValueError(f"epochs is {epochs}; give 1 or more.")
    folder = None if data is None else Path(data)
    require_free("dataset_options", dataset_options or {})
    options = {**(spec.dataset_options if dataset == spec.dataset else {}), **(dataset_options or {})}
    target = open_dataset(spec.dataset, data=folder, scale=spec.scale, **spec.dataset_options)
    same = dataset == spec.dataset and options == spec.dataset_options
    source = target if same else open_dataset(dataset, data=folder, scale=spec.scale, **options)
    numbers = tuple(range(len(source.classes))) if classes is None else tuple(classes)
    _require_others(dataset, source, numbers, target, spec)
    source = select_classes(source, numbers)
    samples = {name: fit_images(getattr(source, name), target.shape) for name in ("train", "test")}
    about = {
        "dataset": dataset,
        "fingerprint": source.fingerprint,
        "classes": list(source.classes),
        "numbers": list(numbers),
        "model": spec.model,
        "shape": list(target.shape),
        "epochs": epochs,
        "seed": experiment.seed,
        "settings": _settings(experiment, source),
        **({"dataset_options": json.loads(json.dumps(options))} if dataset_options else {}),
    }
    before = description_of(path) if path.exists() else None
    if before is not None:
        if any(before.get(name) != value for name, value in about.items()):
            raise ValueError(f"{path} is another checkpoint; write to another file, or delete it first.")
        return before
    with torch_threads(experiment.threads):
        tensors, measured = _train(experiment, target, source, samples, epochs, progress)
    about |= {"samples": len(samples["train"]), "test_samples": len(samples["test"]), **measured}
    about["versions"] = versions()
    files.write_tensors(path, tensors, about)
    return about


def description_of(path: Path) -> dict[str, Any]:
    """The description that `pretrain` stored in a checkpoint.

    Raises:
        LookupError: If the file is damaged, or was not written by fedscape.
    """
    return files.read_tensors(path)[1]


def fit_images(samples: Samples, shape: tuple[int, ...]) -> Samples:
    """Images (n, C, h, w) as the experiment's have them: grey repeated, colours averaged, sides resized bilinearly.

    Raises:
        ValueError: If the shapes differ and one is not that of an image.
    """
    inputs = samples.inputs
    if not isinstance(inputs, Tensor):
        raise ValueError("inputs are several tensors; a start is trained on datasets whose inputs are one.")
    if tuple(inputs.shape[1:]) == tuple(shape):
        return samples
    if inputs.ndim != 4 or len(shape) != 3 or (shape[0] != 1 and inputs.shape[1] not in (1, shape[0])):
        raise ValueError(
            f"inputs have shape {tuple(inputs.shape[1:])}, the experiment's have {tuple(shape)}; a start is trained on "
            "inputs of the same shape, or on images (channels, height, width)."
        )
    if shape[0] == 1:
        inputs = inputs.mean(1, keepdim=True)
    if tuple(inputs.shape[2:]) != tuple(shape[1:]):
        features = [
            F.interpolate(images, size=shape[1:], mode="bilinear", antialias=True, align_corners=False)
            for images in inputs.split(4096)
        ]
        inputs = torch.cat(features)
    return replace(samples, inputs=inputs.expand(-1, shape[0], -1, -1))


def _require_others(dataset: str, source: Dataset, numbers: Sequence[int], target: Dataset, spec: TaskSettings) -> None:
    """Refuse data that the clients train on: a start from them has seen the clients' samples."""
    shared = sorted(_origins(source) & _origins(target))
    both = sorted({*(spec.classes or range(len(target.classes)))} & {*numbers})
    if not shared or not both:
        return
    if dataset == spec.dataset:
        raise ValueError(
            f"the clients of the experiment train on classes {both} of {dataset} too; name another dataset, "
            "or give each its own classes: --classes 0 1 2 here and task.classes=[3, 4] in the experiment."
        )
    if "domain" in target.groups:
        raise ValueError(
            f"{shared[0]} is a domain of {target.name}, which the clients of the experiment train on; name another "
            "dataset, or leave the domain out by task.dataset_options.domains."
        )
    raise ValueError(
        f"the clients of the experiment train on {shared[0]}, which is a domain of {dataset}; name another dataset, or "
        "leave the domain out by --dataset-options domains=[...]."
    )


def _origins(dataset: Dataset) -> set[str]:
    """Origins of its samples: the domains (named as datasets where they are ones), or else the dataset."""
    if "domain" not in dataset.groups:
        return {dataset.name}
    shipped = datasets.names()
    return {name if name in shipped else f"{dataset.name} {name}" for name in dataset.groups["domain"].names}


def _train(
    experiment: Experiment,
    target: Dataset,
    source: Dataset,
    samples: dict[str, Samples],
    epochs: int,
    progress: EpochProgress | None,
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """The state dict after training, and its accuracy and loss on the test samples."""
    spec, seed = experiment.task, experiment.seed
    options = spec.model_options
    model = build_model(spec.model, target.shape, len(source.classes), seed=key(seed, "init"), **options)
    task = task_of(model, samples, source.loss)
    flat = task.flat(task.theta)
    theta, buffers = task.theta, task.buffers
    state: dict[str, Tensor] = {}
    measured: dict[str, float] = {}
    for epoch in range(epochs):
        rate = experiment.local.lr * experiment.local.lr_decay**epoch
        local = experiment.local.model_copy(update={"epochs": 1, "steps": None, "lr": rate, "persist_optimizer": True})
        client = Client(
            id=0,
            index=epoch,
            seed=key(seed, "pretrain"),
            samples=samples["train"],
            start=theta,
            buffers=buffers,
            local=local,
            flat=flat,
            state=state,
        )
        update = client.train()
        theta, buffers, state = update.theta, update.buffers, update.state
        if not bool(torch.isfinite(theta).all()):
            raise Diverged(f"the model is not finite after epoch {epoch + 1}; lower local.lr.")
        test = model_metrics(task, theta, buffers)
        measured = {"loss": test["loss"], "accuracy": 1 - test["error"]}
        if progress is not None:
            progress(epoch + 1, update.loss, measured["accuracy"])
    return {**model.state_dict(), **task.layout.named(theta), **task.layout.named_buffers(buffers)}, measured


def _settings(experiment: Experiment, source: Dataset) -> dict[str, Any]:
    """Further settings that the bits of a checkpoint depend on."""
    local = experiment.local.model_dump(mode="json")
    left = {name: value for name, value in local.items() if name not in ("epochs", "steps", "persist_optimizer")}
    return {
        "local": left,
        "model_options": json.loads(json.dumps(experiment.task.model_options)),
        "scale": source.scale,
        "threads": experiment.threads,
    }
