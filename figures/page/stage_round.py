"""The landscape of one round of a run on the stage: a plane, the models on and near it, and the cohort."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.evaluate_on import evaluation_of
from drift.analyses.landscapes.models_plane import models_plane, task_with_classes
from drift.analyses.landscapes.planes import round_plane
from drift.analyses.landscapes.sweeps import client_sweep
from drift.analyses.rounds.cohort_table import cohort_table
from drift.analyses.samples.client_losses import client_losses
from drift.analyses.selected_samples import fewer, selected_samples
from drift.config.external_run import UnknownParts
from drift.runs.run import Run
from drift.store.column_blocks import weighted_models
from drift.store.numpy_files import Damaged
from drift.store.round_record import Round
from drift.store.row_matrices import Rows, stacked
from figures.interactive.words import label_shares
from figures.page.packed import finite, packed
from figures.page.paired_losses import globals_of, round_losses
from figures.page.sampled import ROUGH_POINTS, Samples, landscape_words, options
from figures.page.shown_rounds import least_clients
from figures.page.why import end_words, why
from landscape.geometry.planes import project
from landscape.surfaces.interpolation import filled
from landscape.surfaces.refinement import lattices
from landscape.surfaces.surface import surface
from landscape.sweep.grid import Sweep

BOX = "symmetric"
"""Planes reach equally far from the mean of their three clients, so that those of several runs overlap."""


def stage_round(
    run: Run,
    index: int,
    points: int,
    samples: Samples,
    *,
    split: str = "test",
    quantity: str = "loss",
    rough: bool = False,
) -> dict[str, Any]:
    """The values of one landscape.

    Losses of models and of the plane are over the same samples. Coordinates are distances from the mean of the three
    clients that the plane goes through: u from the first to the second of them, v across, towards the third.

    Args:
        run: The run.
        index: A round that kept its clients.
        points, samples: Of the plane, as `figures.page.report` takes them.
        split: test, train, proxy, or "client 3" for what that client trains on in the round.
        quantity: loss, error, or "class 3", the error of that class; it is among the metrics.
        rough: Whether it is a first picture, of which few points are evaluated, which says so in `samples` and of which
            nothing is stored.

    Returns:
        plane: extent (u and v, low and high), points of each, and metrics, each as base64 float32 (u, v); None where
            the run never has three clients in a round.
        through: Ids of the three clients; none without a plane.
        samples: A sentence on the samples; empty where all are taken.
        split, quantity: As asked for.
        marks: name, kind (client, start, aggregate or end), u, v, distance from the plane (None without one), and loss.
        cohort: For each client its id, samples, counts by class, weight, cosine with the mean update, length of the
            update, loss, own_before and own_after (losses of the start and of its model on its own data), and cost:
            by how much it raises the loss of the aggregate, and cost_error, the standard error of that.
        parts: of (which samples), samples (how many), and end, the loss of the end on parts of them, by which two
            runs are compared.
        end: How the end differs from the mean with the round's own weights; empty where it does not, or if rough.
        why: Sentences, as `figures.page.why.why` makes them; empty for a rough picture and for other samples.

    Raises:
        LookupError, ValueError: If there is no such round, client, split or quantity, or a value of a rough one is
            infinite or NaN.
    """
    record, sweep, ds = run.round(index), None, None
    about: dict[str, Any] = {"plane": None, "through": []}
    if least_clients(run) > 2:
        record, about["through"], sweep = client_sweep(run, index, None, points=points, margin=0.3, box=BOX)
        ds = (_rough_plane if rough else _plane)(run, index, sweep, samples, split, quantity)
        about["plane"] = _plane_value(ds, quantity)
    losses = round_losses(run, record, samples, split)
    cohort = cohort_values(run, record, losses, samples, rough=rough)
    return {
        **about,
        "samples": samples_words(run, index, ds, split, samples, rough=rough),
        "split": split,
        "quantity": quantity,
        "marks": _marks(run, record, sweep, ds, losses),
        "cohort": cohort,
        "parts": {**losses.attrs, "end": packed(losses.end_parts.values)},
        "end": "" if rough else end_words(run, record),
        "why": [] if rough or split != "test" else why(run, index, losses, cohort),
    }


def _plane_value(ds: xr.Dataset, quantity: str) -> dict[str, Any]:
    metrics = {name: ds[name] for name in ("loss", "error") if name in ds}
    if quantity not in metrics:
        metrics[quantity] = _of_class(ds, quantity)
    axes = [ds[name].values - middle for name, middle in zip(("alpha", "beta"), _centre(ds), strict=True)]
    return {
        "extent": [[float(axis[0]), float(axis[-1])] for axis in axes],
        "points": [len(axis) for axis in axes],
        "metrics": {name: packed(values.transpose("alpha", "beta").values) for name, values in metrics.items()},
    }


def _centre(ds: xr.Dataset) -> list[float]:
    return [float(ds[f"mark_{name}"].sel(mark="mean")) for name in ("alpha", "beta")]


def _plane(run: Run, index: int, sweep: Sweep, samples: Samples, split: str, quantity: str) -> xr.Dataset:
    """The plane by the analysis that has the quantity, stored where it can be."""
    plain = split == "test" and quantity in ("loss", "error")
    how: dict[str, Any] = {"round": index, "points": sweep.shape[0]}
    if plain:
        how |= {"box": BOX, **options(run, samples)}
    else:
        box = [float(sweep.coords[name][end]) for name in ("alpha", "beta") for end in (0, -1)]
        names = [mark.name for mark in sweep.marks[:3]]
        how |= {"models": names, "box": box, "split": split, "samples": samples}
    return cached(run, round_plane if plain else models_plane, **how)


def _rough_plane(run: Run, index: int, sweep: Sweep, samples: Samples, split: str, quantity: str) -> xr.Dataset:
    """The plane from a few of its points, the others interpolated.

    Raises:
        ValueError: If a value is infinite or NaN.
    """
    selected = selected_samples(run, index, split, samples)
    task = task_with_classes(run, selected) if quantity.startswith("class") else run.task
    evaluation = evaluation_of(run, split=selected)
    requested = [mask for mask in lattices((sweep.shape[0], sweep.shape[1])) if mask.sum() <= ROUGH_POINTS][-1]
    return filled(surface(task, replace(sweep, inside=requested), evaluation=evaluation), requested)


def cached(run: Run, analysis: Callable[..., xr.Dataset], **how: Any) -> xr.Dataset:
    """As `run.cached`; a run that has a damaged round cannot store results, so that those of others are computed."""
    try:
        return run.cached(analysis, **how)
    except Damaged:
        return analysis(run, **how)


def _of_class(ds: xr.Dataset, quantity: str) -> xr.DataArray:
    """The error of the class that a quantity names by its number.

    Raises:
        ValueError: If there is none.
    """
    kind, _, number = quantity.partition(" ")
    classes = ds.sizes.get("class", 0) if "class_error" in ds else 0
    if kind != "class" or not number.isdigit() or int(number) >= classes:
        known = ["loss", *(["error"] if "error" in ds else []), *(["class 0"] if classes else [])]
        more = f" to class {classes - 1}" if classes > 1 else ""
        raise ValueError(f"quantity is {quantity!r}; this run has {', '.join(known)}{more}.")
    return ds.class_error.isel({"class": int(number)})


def samples_words(
    run: Run, index: int, ds: xr.Dataset | None, split: str, samples: Samples, *, rough: bool = False
) -> str:
    """A sentence on the samples of a landscape; empty where all test samples are taken."""
    stated = [ds] if ds is not None and "samples_of" in ds.attrs else []
    if not rough and split == "test" and (stated or fewer(run, split, samples) is None):
        return landscape_words(stated)
    every, number = (len(selected_samples(run, index, split, most)) for most in (None, samples))
    words = f"samples of {split}" if split.startswith("client") else f"{split} samples"
    text = f"on the {every:,} {words}" if number == every else f"on {number:,} of the {every:,} {words}, at random"
    if rough and ds is not None:
        points = f"{ds.attrs['evaluated']} of {ds.loss.size} points, the others interpolated"
        return f"A rough first picture: {points}, {text}."
    return f"{text[0].upper()}{text[1:]}."


def _marks(
    run: Run, record: Round, sweep: Sweep | None, ds: xr.Dataset | None, losses: xr.Dataset
) -> list[dict[str, Any]]:
    """The models of a round as places on the plane, each with its distance from it; without one u, v, away are None."""
    ids, shares = record.ids.tolist(), run.experiment.cohort_weights(record.sizes).double()
    single = {"aggregate": weighted_models(shares, record.kept("clients"))} | globals_of(record)
    matrix = stacked([record.kept("clients"), *(model[None] for model in single.values())])
    values = {f"client {client}": losses.client.values[row] for row, client in enumerate(ids)}
    values |= {name: losses[name] for name in single}
    places = np.full((len(values), 3), np.nan)
    if sweep is not None and ds is not None:
        on_plane = project(Rows(matrix), sweep)
        places = np.stack([on_plane[name] for name in ("mark_alpha", "mark_beta", "distance")], 1)
        places -= [*_centre(ds), 0]
    marks = []
    for (name, loss), at in zip(values.items(), places.tolist(), strict=True):
        numbers = dict(zip(("u", "v", "away", "loss"), map(finite, [*at, float(loss)]), strict=True))
        marks.append({"name": name, "kind": name.partition(" ")[0], **numbers})
    return marks


def cohort_values(
    run: Run, record: Round, losses: xr.Dataset, samples: Samples, *, rough: bool = False
) -> list[dict[str, Any]]:
    """What `stage_round` lists under cohort; own losses are left out of a rough picture, and without known own data."""
    unknown = rough or isinstance(run.parts_in(record.index), UnknownParts)
    how = {"round": record.index, "samples": fewer(run, "test", samples)}
    after = None if unknown else cached(run, client_losses, **how)
    table = cohort_table(run, round=record.index) if rough else cached(run, cohort_table, round=record.index)
    shares = label_shares(run, record.index)
    cohort = []
    for client in record.ids.tolist():
        geometry, trained = table.sel(client=client), after and after.sel(client=client)
        size = int(geometry.samples)
        numbers = {
            "weight": geometry.relative_weight,
            "cosine": geometry.cosine_mean,
            "length": geometry.update_norm,
            "loss": losses.client.sel(id=client),
            "own_before": np.nan if trained is None else trained.start_own_loss,
            "own_after": np.nan if trained is None else trained.own_loss,
            "cost": losses.aggregate - losses.without.sel(id=client),
            "cost_error": losses.cost_error.sel(id=client),
        }
        values = {name: finite(float(value)) for name, value in numbers.items()}
        counts = [] if shares is None else np.rint(np.nan_to_num(shares[client]) * size).astype(int).tolist()
        cohort.append({"id": client, "samples": size, "counts": counts, **values})
    return cohort
