"""Samples and what models of a round predict for them: cards, and the confusion matrix."""

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from PIL import Image

from drift.analyses.landscapes.named_models import sum_name
from drift.analyses.samples.contents import images, rows
from drift.analyses.samples.predictions import confusion_of, sample_predictions, samples_of
from drift.runs.run import Run
from figures.explore.answers.weights import from_values
from figures.explore.ask import Ask
from figures.explore.work.addresses import share_data
from figures.explore.work.points import stage_plane
from figures.explore.work.shelf import Shelf
from figures.explore.work.versions import round_version
from figures.page.packed import finite

SIDE = 64
"""Pixels of the longer side of a small picture; smaller images are sent as they are."""

MODES = {"wrong": "wrong ones", "differs": "two predictions", "all": "all"}
"""Which samples are shown where no class is given."""


@dataclass(frozen=True)
class SamplesQuery:
    """Which models, samples and cards.

    Args:
        index: The round.
        model: Name of a model, as in `drift.sample_predictions`; "" for that of `spot`.
        spot: A spot on the stage's plane, or None.
        against: Id of a client whose model it is compared with; None for none.
        split: test, train, proxy or "client 3".
        truth, predicted: Their class, and what the model predicts; None for any.
        mode: One of MODES.
        limit: Cards at most.
    """

    index: int
    model: str
    spot: tuple[float, float] | None
    against: int | None
    split: str
    truth: int | None
    predicted: int | None
    mode: str
    limit: int


def samples(
    ask: Ask,
    run: str,
    round: int,
    model: str | dict[str, Any] = "end",
    against: int | None = None,
    split: str = "test",
    truth: int | None = None,
    predicted: int | None = None,
    mode: str = "wrong",
    limit: int = 48,
) -> dict[str, Any]:
    """Cards of samples, those with the largest loss first.

    Args:
        run, round: A round that kept the model.
        model: end, start, aggregate, "client 3", {"spot": [u, v]} or {"weights": {id: w}, "gamma": 1}.
        against: Id of a client whose model it is compared with.
        split: test, train, proxy, or "client 3".
        truth, predicted: Class of the samples, and class that the model predicts, by number.
        mode: wrong, differs (from the client's prediction) or all.
        limit: Cards at most.

    Returns:
        cards: number (in the split; of a client: in train), truth, predicted and against (class numbers), loss, and
        picture (data:image/png;base64) or numbers (the first inputs). confusion: samples of each class (rows) by
        predicted class; classes: their names; words: what is shown; total: how many such samples there are.

    Raises:
        LookupError, ValueError: If there is no such model, client, split or mode.
    """
    opened = ask.run(run, round)
    name, spot = (model, None) if isinstance(model, str) else _named(opened, round, model)
    if mode not in MODES or (mode == "differs" and against is None):
        raise ValueError(f"mode is {mode!r}; give {', '.join(MODES)}; differs needs a client to compare with.")
    question = SamplesQuery(round, name, spot, against, split, truth, predicted, mode, limit)
    value: dict[str, Any] = ask.quick(shown, opened, question, round, title="samples", priority=20)
    return value


def _named(run: Run, index: int, model: dict[str, Any]) -> tuple[str, tuple[float, float] | None]:
    """Name of the sum that weights make, or a spot."""
    if "spot" in model:
        return "", model["spot"]
    ids = sorted(run.round(index).ids.tolist())
    mixture = from_values(index, ids, model["weights"], model["gamma"])
    return sum_name([f"client {client}" for client in ids], mixture.row), None


def shown(run: Run, question: SamplesQuery) -> dict[str, Any]:
    """The cards; in the process of the jobs."""
    share_data(run)
    name = question.model if question.spot is None else _at_spot(run, question.index, question.spot)
    names = (name,) if question.against is None else (name, f"client {question.against}")
    make = lambda: sample_predictions(run, round=question.index, models=names, split=question.split)  # noqa: E731
    ds: xr.Dataset = _PREDICTED.get((round_version(run, question.index), names, question.split), make)
    classes = run.dataset.class_names
    confusion = confusion_of(ds, classes)
    selected = _selected(ds, question)
    numbers = selected[: question.limit]
    contents = _contents(run, question, numbers)
    return {
        "cards": [{**_card(ds, row), **content} for row, content in zip(numbers, contents, strict=True)],
        "confusion": confusion["count"].values[0].astype(int).tolist(),
        "classes": list(map(str, confusion["class"].values)),
        "words": _words(question, classes),
        "total": len(selected),
    }


_PREDICTED = Shelf(8)


def _at_spot(run: Run, index: int, spot: tuple[float, float]) -> str:
    plane = stage_plane(run, index)
    row = plane.row(spot)
    if len(row) > 3 and row[3]:
        raise ValueError("the three clients lie on one line, and this point does not; select a point on the line.")
    return sum_name([f"client {client}" for client in plane.clients], row[:3].tolist())


def _selected(ds: xr.Dataset, question: SamplesQuery) -> list[int]:
    """Places of the samples that are shown, by falling loss; a loss that is NaN counts as the largest."""
    target, predicted = ds.target.values, ds.predicted.values
    mask = np.ones(len(target), bool)
    if question.truth is not None:
        mask &= target == question.truth
    if question.predicted is not None:
        mask &= predicted[0] == question.predicted
    if question.mode == "differs":
        mask &= predicted[0] != predicted[1]
    elif question.mode == "wrong" and question.predicted is None:
        mask &= predicted[0] != target
    order = np.argsort(-np.nan_to_num(ds.loss.values[0], nan=np.inf), kind="stable")
    return [int(row) for row in order if mask[row]]


def _card(ds: xr.Dataset, row: int) -> dict[str, Any]:
    first, *others = ds.predicted.values[:, row].tolist()
    numbers = {"number": int(ds["sample"].values[row]), "truth": int(ds.target.values[row]), "predicted": first}
    return {**numbers, "against": others[0] if others else None, "loss": finite(ds.loss.values[0, row])}


def _contents(run: Run, question: SamplesQuery, numbers: list[int]) -> list[dict[str, Any]]:
    every, _ = samples_of(run, question.index, question.split)
    selected = every[torch.tensor(numbers, dtype=torch.int64)]
    if not numbers:
        return []
    pixels = images(run, selected)
    if pixels is None:
        return [{"numbers": [finite(value) for value in row]} for row in rows(selected)]
    return [{"picture": _png(image)} for image in pixels]


def _png(pixels: np.ndarray) -> str:
    picture = Image.fromarray(pixels)
    picture.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    picture.save(buffer, "png")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def _words(question: SamplesQuery, classes: list[str]) -> str:
    """What is shown, in a sentence."""
    called = lambda label: classes[label] if 0 <= label < len(classes) else str(label)  # noqa: E731
    kind = "these weights" if " * " in question.model else question.model or "a point of the plane"
    phrases = [] if question.truth is None else [f"class {called(question.truth)}"]
    if question.predicted is not None:
        phrases.append(f"predicted as {called(question.predicted)}")
    if question.mode == "differs":
        phrases.append(f"predicted otherwise by client {question.against}")
    elif question.predicted is None:
        phrases.append(MODES[question.mode])
    return f"{', '.join(phrases)}, largest loss first; model: {kind}"
