"""Samples on which a client's model and another model disagree, grouped by class and by likeness."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.per_round import resolve_round, result
from drift.analyses.samples.likeness import like_groups, principal_components
from drift.analyses.samples.predictions import sample_predictions, samples_of
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.model.samples import Samples, leaves


@analysis("sample", "group", cost="evaluations")
def disagreement(
    run: Run, *, round: int = -1, client: int | None = None, against: str = "end", split: str = "test", groups: int = 12
) -> xr.Dataset:
    """Samples on which a client's model predicts another class than the global one, in groups of like samples.

    The samples with two predictions are clustered by Ward's method inside each class, on the first 20 principal
    components of the inputs; all classes are cut at one height. A sample with one prediction joins the nearest group of
    its class, so that a group also tells the share of its surroundings on which the two models disagree.

    Source: after HetVis (Wang et al. 2022), which compares a client's stand-alone model with the global one and
    clusters the inconsistent records in the context of the others; the rule for the groups is this project's.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative ones count from the last that did.
        client: Id of a client of the cohort; by default the first.
        against: Name of the other model, as in `sample_predictions`.
        split: Samples, as in `sample_predictions`.
        groups: Number of groups, at least one per class with such samples.

    Returns:
        Dataset over sample with target, client_predicted and other_predicted (class numbers), client_loss and
        other_loss, differs (1 or 0), sample_group and group_distance (to its centre; both NaN outside all groups);
        over group, the largest first, group_class (class number), group_size (samples with two predictions),
        group_share (of them among all samples nearest to the group), group_client_right and group_other_right
        (fractions of the size). Without any such sample there is no group.

    Raises:
        ValueError, LookupError: As `sample_predictions`.
    """
    index = resolve_round(run, round, "clients")
    ids = run.round(index).ids.tolist()
    if not ids:
        raise LookupError(f"every client of round {index} of run {run.name} diverged; name another round.")
    names = [f"client {ids[0] if client is None else client}", against]
    ds = sample_predictions(run, round=index, models=names, split=split)
    samples, _ = samples_of(run, index, split)
    return disagreement_of(ds, input_features(samples, ds), groups=groups)


def disagreement_of(ds: xr.Dataset, features: np.ndarray, *, groups: int = 12) -> xr.Dataset:
    """The result of `disagreement` from the predictions of two models.

    Args:
        ds: Result of `sample_predictions` for the client's model and the other one.
        features: By which samples are alike, shape (n, c).
        groups: Number of groups, at least one per class.
    """
    (first, second), target = ds.predicted.values, ds.target.values
    differs = first != second
    alike = like_groups(features, target, differs, groups)
    order, group = _largest_first(alike.group, differs)
    members = [group == number for number in range(len(order))]
    right = [[(row == target)[rows & differs].mean() for rows in members] for row in (first, second)]
    table: dict[str, Any] = {
        "group_class": ([target[rows][0] for rows in members], "class number of the group"),
        "group_size": ([(rows & differs).sum() for rows in members], "samples with two predictions", "samples"),
        "group_share": (
            [differs[rows].mean() for rows in members],
            "share of samples with two predictions",
            "fraction",
        ),
        "group_client_right": (right[0], "client's model right", "fraction"),
        "group_other_right": (right[1], "other model right", "fraction"),
    }
    unit = ds.loss.attrs["units"]
    variables: dict[str, Any] = {
        "target": (target, "class number"),
        "client_predicted": (first, "class that the client's model predicts"),
        "other_predicted": (second, "class that the other model predicts"),
        "client_loss": (ds.loss.values[0], "loss of the client's model", unit),
        "other_loss": (ds.loss.values[1], "loss of the other model", unit),
        "differs": (differs.astype(float), "the two models predict different classes"),
        "sample_group": (np.where(group >= 0, group, np.nan), "group of the sample"),
        "group_distance": (alike.distance, "distance to the centre of the group"),
    }
    columns = {name: ("sample", *entry) for name, entry in variables.items()}
    rows = {name: ("group", np.array(values, float), *words) for name, (values, *words) in table.items()}
    attrs = {name: ds.attrs[name] for name in ("round", "split", "samples") if name in ds.attrs}
    names = {"client": str(ds.model.values[0]), "against": str(ds.model.values[1])}
    coords = {"sample": ds.sample.values, "group": ("group", np.arange(len(order)), "group of like samples")}
    source = "after Wang et al. 2022"
    return result({**columns, **rows}, None, coords, analysis="disagreement", source=source, **attrs, **names)


def input_features(samples: Samples, ds: xr.Dataset) -> np.ndarray:
    """What makes samples alike: principal components (n, c) of their inputs; of inputs without floats, of predictions.

    Args:
        samples: The samples.
        ds: Their predictions, as `sample_predictions` returns them.
    """
    floats = [leaf.flatten(1) for leaf in leaves(samples.inputs) if leaf.is_floating_point() and leaf.ndim > 1]
    integers = [leaf.flatten(1) for leaf in leaves(samples.inputs) if leaf.dtype.itemsize == 1 and leaf.ndim > 1]
    if kinds := floats or integers:  # images are stored as bytes
        return principal_components(np.concatenate([kind.cpu().numpy().astype(np.float32) for kind in kinds], axis=1))
    return np.concatenate([ds.confidence.values, ds.loss.values]).T


def _largest_first(group: np.ndarray, differs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order of the groups by their number of differing samples, and the samples' groups renumbered so."""
    count = int(group.max()) + 1 if len(group) else 0
    sizes = np.bincount(group[differs & (group >= 0)], minlength=count)
    order = np.argsort(-sizes, kind="stable")
    ranks = np.append(np.argsort(order, kind="stable"), -1)  # -1 stays
    return order, ranks[group]
