"""Samples as the page shows them: which question a selection asks, its answer, which samples of it are shown."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import xarray as xr
from PIL import Image

from drift.analyses.landscapes.named_models import sum_name
from drift.analyses.samples.contents import images, rows
from drift.analyses.samples.disagreement import disagreement_of, input_features
from drift.analyses.samples.predictions import confusion_of, sample_predictions, samples_of
from drift.runs.run import Run
from figures.explore.work.addresses import share_data
from landscape.model.batchnorm import normalisers

if TYPE_CHECKING:
    from figures.explore.shell.selection import Selection

SIDE = 64
"""Pixels of the longer side of a small picture; smaller images are sent as they are."""


@dataclass(frozen=True)
class Question:
    """Which samples and models.

    Args:
        round: Number of the round.
        model: Name of the model, as in `drift.sample_predictions`.
        client: Id of the client whose model it is compared with; None for none.
        split: test, train, proxy or "client 3".
        groups: Groups of like samples.
    """

    round: int
    model: str
    client: int | None = None
    split: str = "test"
    groups: int = 12


MODES = {"wrong": "wrong ones", "differs": "two predictions", "all": "all"}
"""Which samples are shown where no cell or group is selected."""


@dataclass(frozen=True)
class Answer:
    """What models predict for every sample.

    Args:
        predictions: Result of `drift.sample_predictions` for the model, and for the client's model where there is one.
        confusion: Result of `drift.confusion` for them.
        groups: Result of `drift.disagreement`, None without a client.
        classes: Names of the classes.
        normalised: Whether the models have batch normalisation.
    """

    predictions: xr.Dataset
    confusion: xr.Dataset
    groups: xr.Dataset | None
    classes: list[str]
    normalised: bool = False

    def class_name(self, label: int) -> str:
        """Name of a class; its number where it has none."""
        return self.classes[label] if label < len(self.classes) else str(label)


@dataclass(frozen=True)
class Filter:
    """Which samples of an answer are shown.

    Args:
        truth, predicted: Their class and what the model predicts; None for any.
        group: Number of a group of like samples with two predictions; None for any.
        mode: One of MODES.
    """

    truth: int | None = None
    predicted: int | None = None
    group: int | None = None
    mode: str = "wrong"

    @property
    def narrow(self) -> bool:
        """Whether a class, cell or group is selected."""
        return (self.truth, self.predicted, self.group) != (None, None, None)

    def numbers(self, answer: Answer) -> list[int]:
        """Places of the samples in the split: of a group those nearest to its centre first, others by falling loss."""
        ds, groups = answer.predictions, answer.groups
        target, predicted = ds.target.values, ds.predicted.values[0]
        mask = np.ones(len(target), bool)
        if self.truth is not None:
            mask &= target == self.truth
        if self.predicted is not None:
            mask &= predicted == self.predicted
        order = np.argsort(-np.nan_to_num(ds.loss.values[0], nan=np.inf), kind="stable")
        if self.group is not None and groups is not None:
            mask &= (groups.sample_group.values == self.group) & (groups.differs.values > 0)
            order = np.argsort(groups.group_distance.values, kind="stable")
        elif self.mode == "differs" and len(ds.model) > 1:
            mask &= predicted != ds.predicted.values[1]
        elif self.mode != "all" and self.predicted is None:
            mask &= predicted != target
        return [int(number) for number in order if mask[number]]

    def words(self, answer: Answer, model: str, client: int | None) -> list[str]:
        """What is shown, in parts of a sentence."""
        phrases = [] if self.truth is None else [f"class {answer.class_name(self.truth)}"]
        if self.predicted is not None:
            phrases.append(f"predicted as {answer.class_name(self.predicted)} by the {model}")
        if self.group is not None:
            phrases.append(
                f"group {self.group + 1}, on which it and client {client} disagree, nearest to its centre first"
            )
        elif self.predicted is None or self.mode == "differs":
            phrases.append(f"{MODES.get(self.mode, MODES['wrong'])}, largest loss first")
        return phrases


def asked_question(run: Run, index: int, selection: Selection) -> Question:
    """What a selection asks of a round.

    Raises:
        LookupError: If its model is a point or weights that are not selected, or its samples those of a client that the
            round did not keep.
    """
    ids = sorted(run.round(index).ids.tolist()) if index in run.kept("clients") else []
    wanted = [selection.client, *selection.clients, *ids[:1]]
    client = next((number for number in wanted if number in ids), None)
    split = str(selection.split)
    if split == "client":
        if client is None:
            raise LookupError(f"round {index} of {run.name} kept no clients; select other samples than a client's.")
        split = f"client {client}"
    return Question(index, _model_name(run, index, ids, selection), client, split)


def _model_name(run: Run, index: int, ids: list[int], selection: Selection) -> str:
    """Name of the model that is looked at; of a point or of weights, a sum."""
    if selection.model == "point":
        if not selection.point or len(selection.point) != len(selection.corners):
            raise LookupError("no point is selected; click on the map of Plane, or select another model here.")
        return sum_name(selection.corners, selection.point)
    if selection.model != "weights":
        return str(selection.model)
    if not ids:
        raise LookupError(f"round {index} of {run.name} kept no clients; select another model.")
    record = run.round(index)
    if not selection.weights:
        share_of = dict(zip(record.ids.tolist(), record.weights.double().tolist(), strict=True))
        return sum_name([f"client {client}" for client in ids], [share_of[client] for client in ids])
    weights = list(selection.weights)
    if len(weights) != len(ids) or not sum(weights):
        raise LookupError(f"there are {len(weights)} weights for {len(ids)} clients; set them in Weights.")
    factor = selection.gamma / sum(weights)
    return sum_name([f"client {client}" for client in ids], [factor * value for value in weights])


def answer(run: Run, question: Question) -> Answer:
    """Predictions, confusions and groups.

    Raises:
        ValueError, LookupError: As `drift.sample_predictions`.
    """
    share_data(run)
    names = [question.model] + ([] if question.client is None else [f"client {question.client}"])
    ds = sample_predictions(run, round=question.round, models=names, split=question.split)
    classes = run.dataset.class_names
    groups = None
    if question.client is not None:
        samples, _ = samples_of(run, question.round, question.split)
        both = ds.isel(model=[1, 0])
        groups = disagreement_of(both, input_features(samples, both), groups=question.groups)
    return Answer(ds, confusion_of(ds, classes), groups, classes, bool(normalisers(run.task.model)))


def pictures(run: Run, item: tuple[int, str, list[int]]) -> list[bytes] | np.ndarray:
    """Small pictures (PNG) of samples of a split, or their first numbers (n, f) where they are no images.

    Args:
        run: Run of the samples.
        item: Round, split and places.
    """
    share_data(run)
    index, split, numbers = item
    samples, _ = samples_of(run, index, split)
    selected = samples[torch.tensor(numbers, dtype=torch.int64)]
    pixels = images(run, selected)
    return rows(selected) if pixels is None else [_png(image) for image in pixels]


def _png(pixels: np.ndarray) -> bytes:
    picture = Image.fromarray(pixels)
    picture.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    picture.save(buffer, "png")
    return buffer.getvalue()
