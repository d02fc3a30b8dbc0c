"""Confusion of a model of a round, and where it and a client's model disagree, by likeness (HetVis paper, Fig. 5)."""

from typing import Any, Literal

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.samples.contents import images
from drift.analyses.samples.disagreement import disagreement
from drift.analyses.samples.predictions import confusion, sample_predictions, samples_of
from drift.runs.run import Run
from figures.axes import matrices
from figures.gallery import _runs, _selected
from figures.looks import style

NEEDS = "one run of a classification that kept the models of a round; the groups need its clients"

COST = "seconds"


@_selected.one_run
def data(
    run: Run,
    *,
    round: int | None = None,
    model: str = "end",
    client: int | None = None,
    split: str = "test",
    groups: int = 8,
    truth: int | None = None,
    predicted: int | None = None,
    examples: int = 8,
) -> xr.Dataset:
    """count (samples) over class and predicted_class; group_size, group_share and shares of right answers over group.

    Also `image` (bytes), where samples are images: one strip per group with those nearest to its centre, or strips of
    the samples of a selected class or cell, those with the largest loss first; sample has their numbers.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        round: By default the last one that kept its global model.
        model: Name of the model, such as end, start, aggregate, "client 3" or "round 12".
        client: The client that it is compared with; by default the first of the cohort, where the round kept it.
        split: test, train, proxy, or "client 3" for what that client trains on.
        groups: Number of groups of like samples.
        truth, predicted: Number of the class, and of the class that the model predicts, of the samples that are shown
            in place of those of the groups; of a class alone those that the model gets wrong.
        examples: Images per strip.
    """
    if not run.kept("globals"):
        raise _runs.missing(f"run {run.name} kept no global model", _runs.KEEP_GLOBALS)
    index = run.kept("globals")[-1] if round is None else run.require_round(round)
    ds = run.cached(confusion, round=index, models=[model], split=split).isel(model=0)
    ds = ds.assign_coords(model=model).assign_attrs(model=model)
    alike = None
    if index in run.kept("clients"):
        alike = run.cached(disagreement, round=index, client=client, against=model, split=split, groups=groups)
        table = alike[[name for name in alike if str(name).startswith("group_") and name != "group_distance"]]
        ds = ds.merge(table, combine_attrs="override").assign_attrs(client=alike.attrs["client"])
    if truth is not None or predicted is not None:
        every = run.cached(sample_predictions, round=index, models=[model], split=split).isel(model=0)
        indices = of_cell(every, truth, predicted, examples)
    else:
        indices = np.zeros((0, examples), int) if alike is None else nearest(alike, examples)
    return _with_images(run, ds, index, split, indices)


def _with_images(run: Run, ds: xr.Dataset, index: int, split: str, indices: np.ndarray) -> xr.Dataset:
    """The data with the images of samples at places (strips, examples), if they are images; -1 stands for none."""
    samples, numbers = samples_of(run, index, split)
    shown = images(run, samples[torch.from_numpy(indices.clip(0).ravel())]) if indices.size else None
    if shown is None:
        return ds
    values = shown.reshape(*indices.shape, *shown.shape[1:]).astype(float)
    values[indices < 0] = np.nan
    dims = ("strip", "example", "row", "column", *(["channel"] if values.ndim == 5 else []))
    ds["image"] = (dims, values, {"long_name": "pixel", "units": "1"})
    shown_numbers = np.where(indices < 0, np.nan, numbers[indices.clip(0)])
    ds["sample"] = (("strip", "example"), shown_numbers, {"long_name": "number of the sample", "units": "1"})
    return ds


def of_cell(ds: xr.Dataset, truth: int | None, predicted: int | None, count: int, strips: int = 10) -> np.ndarray:
    """Places of the samples of a class or cell by falling loss, (strips, count); -1 for none.

    Args:
        ds: Predictions of one model, as `drift.sample_predictions` returns them.
        truth, predicted: Numbers of the class and of the predicted class, None for any; of a class alone those that are
            predicted wrong.
        count: Samples per strip.
        strips: At most so many strips.
    """
    mask = np.ones(ds.sizes["sample"], bool) if truth is None else ds.target.values == truth
    mask &= ds.predicted.values != ds.target.values if predicted is None else ds.predicted.values == predicted
    order = np.argsort(-np.nan_to_num(ds.loss.values, nan=np.inf), kind="stable")
    members = order[mask[order]][: count * strips]
    indices = np.full((-(-len(members) // count), count), -1)
    indices.ravel()[: len(members)] = members
    return indices


def nearest(ds: xr.Dataset, count: int) -> np.ndarray:
    """Places of the differing samples of each group that are nearest to its centre, (groups, count); -1 for none.

    Args:
        ds: Result of `drift.disagreement`.
        count: Samples per group.
    """
    indices = np.full((ds.sizes["group"], count), -1)
    for group in range(len(indices)):
        members = np.flatnonzero((ds.sample_group.values == group) & (ds.differs.values > 0))
        members = members[np.argsort(ds.group_distance.values[members], kind="stable")][:count]
        indices[group, : len(members)] = members
    return indices


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """The confusion matrix; the groups by size with who is right; images of each group."""
    several = "group_size" in ds and ds.sizes["group"] > 0
    columns = 1 + several + ("image" in ds)
    widths = ([1.35, 0.8, 1.0] if columns == 3 else [1.35, 1.0])[:columns]
    height = max(2.7, 0.7 + 0.24 * ds.sizes["group"]) if several else 2.7
    width = style.WIDE if columns > 1 else style.NARROW
    figure, axs = style.panels(1, columns, width=width, height=height, cell=0.78, width_ratios=widths)
    matrices.matrix(ds["count"].fillna(0).assign_attrs(units="1"), ax=axs[0, 0])
    axs[0, 0].set_title(f"{_called(ds)}: error {100 * float(ds.error):.1f} %", fontsize=style.small())
    if several:
        _groups(ds, axs[0, 1])
    if "image" in ds:
        _images(ds, axs[0, -1])
    return figure


def _groups(ds: xr.Dataset, ax: Axes) -> None:
    """Bars of the groups' sizes; the parts in which the one or the other model is right, or neither."""
    positions, left = np.arange(ds.sizes["group"]), np.zeros(ds.sizes["group"])
    first, second = ds.group_client_right.values, ds.group_other_right.values
    shares = {f"{ds.attrs['client']} right": first, f"{_called(ds)} right": second, "both wrong": 1 - first - second}
    for (label, values), look in zip(shares.items(), _LOOKS, strict=True):
        size = values * ds.group_size.values
        if not size.round(9).any():
            continue
        ax.barh(positions, size, left=left, label=label, edgecolor="black", linewidth=0.4, **look)
        left = left + size
    names = [str(ds["class"].values[int(label)]) for label in ds.group_class.values]
    ax.set_yticks(positions, [f"class {name}" for name in names])
    for position, share in zip(positions, ds.group_share.values, strict=True):
        look = {"textcoords": "offset points", "fontsize": style.small(), "va": "center"}
        ax.annotate(f"{100 * share:.0f} %", (left[position], position), (3, 0), **look)
    ax.margins(x=0.35)
    ax.set_ylim(len(positions) - 0.5, -0.5)
    ax.set_xlabel("samples with two\npredictions (share)")
    if ax.containers:
        ax.legend(fontsize=style.small(), loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _images(ds: xr.Dataset, ax: Axes) -> None:
    """Strips of images."""
    values = ds.image.transpose("strip", "row", "example", "column", ...).values
    high, wide = values.shape[1], values.shape[3]
    padded = np.full((values.shape[0], high + 1, values.shape[2], wide + 1, *values.shape[4:]), 255.0)
    padded[:, :high, :, :wide] = np.where(np.isfinite(values), values, 255.0)
    mosaic = padded.reshape(padded.shape[0] * (high + 1), -1, *values.shape[4:])
    aligned = "group_size" in ds and ds.sizes["group"] == ds.sizes["strip"]  # strips stand beside the groups' bars
    aspect: Literal["auto", "equal"] = "auto" if aligned else "equal"
    ax.imshow(mosaic / 255, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect=aspect)
    ax.set_axis_off()


def _called(ds: xr.Dataset) -> str:
    """The model in words."""
    words = {"end": "round's end", "start": "round's start", "aggregate": "cohort's aggregate"}
    return words.get(ds.attrs["model"], ds.attrs["model"])


_LOOKS: tuple[dict[str, Any], ...] = ({"color": "#E69F00"}, {"color": "#0072B2"}, {"color": "white", "hatch": "///"})
"""Looks of the parts; they differ in grey too."""
