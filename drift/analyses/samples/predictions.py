"""Predictions of models of a round for every sample of a split, and their confusion matrices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

from drift.analyses.landscapes.named_models import named_models, stated_statistics
from drift.analyses.per_round import result
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.measures.predictions import confusion_counts, predictions
from landscape.model.losses import IGNORED
from landscape.model.samples import Samples
from landscape.model.task import metric_units


@analysis("model", "sample", cost="evaluations")
def sample_predictions(
    run: Run, *, round: int = -1, models: Sequence[str] = ("end",), split: str = "test"
) -> xr.Dataset:
    """Class that models of a round predict for every sample, with its probability and the sample's loss.

    Source: this project.

    Args:
        run: Run to analyse.
        round: Number of the round; negative ones count from the last complete one.
        models: Names of models, as `drift.analyses.landscapes.named_models` takes them.
        split: "test", "train" or "proxy"; "client K" for the samples that client K trains on in the round.

    Returns:
        Dataset with predicted (class number), confidence (fraction) and loss over model and sample, and target (class
        number, -100 if ignored) over sample; `sample` has the numbers in the split (of a client: in train).

    Raises:
        ValueError: If there is no such model or split, or the task is not a classification.
        LookupError: If the round kept no such model.
    """
    index = run.require_round(round)
    samples, numbers = samples_of(run, index, split)
    named = named_models(run, index, models)
    results = [predictions(run.task, theta, split=samples) for theta in named.models]
    words = {
        "predicted": ("predicted class number",),
        "confidence": ("probability of the predicted class", "fraction"),
        "loss": ("loss of the sample", metric_units(run.task, "loss")),
    }
    columns = {name: np.stack([getattr(result, name) for result in results]) for name in words}
    variables: dict[str, Any] = {name: (("model", "sample"), columns[name], *about) for name, about in words.items()}
    variables["target"] = "sample", run.task.labels(samples).numpy(), "class number"
    coords = {"model": [str(name) for name in models], "sample": numbers}
    attrs = {"round": index, "split": split, "samples": len(samples), **stated_statistics(run, models)}
    return result(variables, None, coords, analysis="sample_predictions", source="this project", **attrs)


@analysis("model", "class", "predicted_class", cost="evaluations")
def confusion(run: Run, *, round: int = -1, models: Sequence[str] = ("end",), split: str = "test") -> xr.Dataset:
    """Samples by class and predicted class, for models of a round, and the error of each class.

    Source: this project.

    Args:
        run: Run to analyse.
        round: Number of the round; negative ones count from the last complete one.
        models: Names of models, as `drift.analyses.landscapes.named_models` takes them.
        split: Samples, as in `sample_predictions`.

    Returns:
        Dataset with count (model, class, predicted_class), class_error (model, class; NaN for a class without samples)
        and error (model,), fractions.

    Raises:
        ValueError, LookupError: As `sample_predictions`.
    """
    return confusion_of(sample_predictions(run, round=round, models=models, split=split), run.dataset.class_names)


def confusion_of(ds: xr.Dataset, classes: Sequence[str]) -> xr.Dataset:
    """The result of `confusion` from one of `sample_predictions`.

    Args:
        ds: Predictions; classes beyond `classes` are called by their numbers.
        classes: Names of the classes.
    """
    if not (counted := ds.target.values != IGNORED).any():
        raise ValueError("no sample has a label that counts: all are ignored; name another split.")
    ds = ds.isel(sample=counted)
    size = max(len(classes), int(ds.target.max()) + 1, int(ds.predicted.max()) + 1)
    names = [*map(str, classes), *map(str, range(len(classes), size))]
    counts = np.stack([confusion_counts(ds.target.values, row, size) for row in ds.predicted.values]).astype(float)
    totals, right = counts.sum(2), np.diagonal(counts, axis1=1, axis2=2)
    errors = np.divide(totals - right, totals, out=np.full_like(totals, np.nan), where=totals > 0)
    variables = {
        "count": (("model", "class", "predicted_class"), counts, "samples", "samples"),
        "class_error": (("model", "class"), errors, "error of the class", "fraction"),
        "error": ("model", 1 - right.sum(1) / counts.sum((1, 2)), "error", "fraction"),
    }
    coords = {"model": ds.model.values, "class": names, "predicted_class": names}
    attrs = {name: ds.attrs[name] for name in ("round", "split") if name in ds.attrs} | {"samples": ds.sizes["sample"]}
    return result(variables, None, coords, analysis="confusion", source="this project", **attrs)


def samples_of(run: Run, index: int, split: str) -> tuple[Samples, np.ndarray]:
    """Samples of a split, or those that "client K" trains on in a round, and their numbers in the split (or in train).

    Raises:
        ValueError: If there is no such split or client, or it has no samples.
    """
    if parsed := re.fullmatch(r"client (\d+)", split):
        client, parts = int(parsed[1]), run.parts_in(index)
        if client >= len(parts):
            raise ValueError(f"run {run.name} has clients 0 to {len(parts) - 1}, {split!r} is not one of them.")
        numbers = np.asarray(parts[client])
        samples = run.task.split("train")[torch.from_numpy(numbers)]
    else:
        samples = run.task.split(split)
        numbers = np.arange(len(samples))
    if not len(samples):
        raise ValueError(f"{split} of run {run.name} has no samples; name another split.")
    return samples, numbers
