"""Pictures of docs/findings.md, drawn from the files of a campaign alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from _ext.evidence import variant
from drift.analyses.over_seeds import estimate
from drift.claims.campaign import judge, plan
from drift.claims.campaign.recorded_run import RecordedRun
from drift.claims.cross import costs, estimate_over_exact, exact_terms, window_gains
from drift.config.shipped import plans
from figures.looks import palette, style

ITEM = "cross-fmnist-mlp-shards2"
"""Item of the plan whose runs the pictures show."""

SHOWN = ("fedavg", "ima", "fedeve", "fedeve+ima")

COLOURS = {
    **{palette.label(name): palette.colour(name) for name in SHOWN},
    "IMA (late = na)": "#E69F00",
    "IMA (window = 1)": "#56B4E9",
}

DASHES = {
    **{palette.label(name): palette.dash(name) for name in SHOWN},
    "IMA (late = na)": palette.DASHES[2],
    "IMA (window = 1)": palette.DASHES[4],
}
"""Line styles, those of the gallery where it has the method."""

NAMES = {"IMA (late = na)": "averaging, FedAvg's rates", "IMA (window = 1)": "IMA's rates, no averaging"}

Runs = Mapping[str, Sequence[RecordedRun]]
"""Runs by their variant, one per seed."""


def draw(files: Path, folder: Path) -> list[Path]:
    """Draw every picture whose runs are recorded; returns the paths."""
    campaign = plan.load(plans()["reproduction"])
    item = next(item for item in campaign.items if item.name == ITEM)
    runs: dict[str, list[RecordedRun]] = {}
    for run in judge.runs_of([item], campaign, judge.by_identity(files)):
        runs.setdefault(variant(run), []).append(run)
    if not {"FedAvg", "IMA", "FedEve", "FedEve+IMA"} <= set(runs):
        return []
    pictures = {"averaging": _averaging, "fedeve": _fedeve, "start": _start, "loss": _loss, "exact": _exact}
    paths = []
    for name, picture in pictures.items():
        paths += style.save(picture(runs), folder / f"findings-{name}", ("png",))
    return paths


def _averaging(runs: Runs) -> Figure:
    figure, ((left, right),) = style.panels(1, 2)
    shown = _paired(runs, ("FedAvg", "IMA", "IMA (late = na)", "IMA (window = 1)"))
    for ax, name, text in (
        (left, "change_variance", "update change"),
        (right, "client_variance", "client drift by equation 13"),
    ):
        for method, own in shown.items():
            _band(ax, [run.series()[name] for run in own], method, log=True, first=75)
        ax.set(xlabel="round", ylabel=text, yscale="log")
        _mark_start(ax)
    style.key(figure, [left], columns=4)
    return figure


def _fedeve(runs: Runs) -> Figure:
    figure, ((left, right),) = style.panels(1, 2)
    shown = _paired(runs, ("FedAvg", "IMA", "FedEve", "FedEve+IMA"))
    for method in ("FedEve", "FedEve+IMA"):
        _band(left, [run.series()["gain"] for run in shown[method]], method, first=75)
    left.set(xlabel="round", ylabel="Kalman gain")
    for method, own in shown.items():
        _band(right, [100 * run.metrics()["accuracy"] for run in own], method, first=75)
    right.set(xlabel="round", ylabel="test accuracy, %")
    for ax in (left, right):
        _mark_start(ax)
    style.key(figure, [right], columns=4)
    return figure


def _start(runs: Runs) -> Figure:
    figure, ((left, right),) = style.panels(1, 2)
    gains = _stored(runs["FedAvg"], window_gains)
    for place, (rounds, values) in enumerate(gains):
        left.plot(rounds, values, color="0.75", linewidth=0.8, label="one seed" if place == 0 else None)
    left.plot(gains[0][0], np.mean([values for _, values in gains], axis=0), color=COLOURS["FedAvg"], label="mean")
    left.axhline(0, color="0.4", linewidth=0.6)
    left.set(xlabel="round", ylabel="loss gained by a window of five, nats")
    _band(right, [run.series()["mean_cosine"] for run in runs["FedAvg"]], "FedAvg")
    right.axhline(0, color="0.4", linewidth=0.6)
    right.set(xlabel="round", ylabel="mean cosine of the clients")
    style.key(figure, [left], columns=3)
    return figure


_KINDS = {"client": "client drift", "change": "update change", "random": "random directions"}


def _loss(runs: Runs) -> Figure:
    figure, ((left, right),) = style.panels(1, 2)
    values = xr.concat(_stored(runs["FedAvg"], costs), "seed", join="exact", combine_attrs="drop")
    colours = {"client": COLOURS["FedAvg"], "change": COLOURS["IMA"], "random": "0.5"}
    for marker, (kind, colour) in zip("os^", colours.items(), strict=True):
        own = values.sel(kind=kind)
        look: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 3}
        left.plot(own["round"], own["share"].mean("seed"), label=_KINDS[kind], **look)
        right.plot(own["cost"].values.ravel(), own["quadratic"].values.ravel(), linestyle="", **look)
    left.set(xlabel="round", ylabel="share in ten sharpest directions", ylim=(-0.02, 1.02))
    ends = [
        float(min(values["cost"].min(), values["quadratic"].min())),
        float(max(values["cost"].max(), values["quadratic"].max())),
    ]
    right.plot(ends, ends, color="0.4", linewidth=0.6)
    right.set(xlabel="measured cost, nats", ylabel="second-order cost, nats")
    style.key(figure, [left], columns=3)
    return figure


def _exact(runs: Runs) -> Figure:
    figure, ((left, right),) = style.panels(1, 2)
    values = _stored(runs["FedAvg"], exact_terms)
    parts = ("sampling", "gradient_sampling", "local")
    for place, part in enumerate(parts):
        _bar(left, place, [float(one["loss_cost"].sel(part=part).mean("round")) for one in values])
    left.set_xticks(range(len(parts)), ("sampling drift", "of gradients alone", "local steps"))
    left.axhline(0, color="0.4", linewidth=0.6)
    left.set(ylabel="loss that the part costs, nats", xlim=(-0.5, 2.5))
    for place, name in enumerate(("sampling", "client")):
        _bar(right, place, [estimate_over_exact(one, name) for one in values])
    right.axhline(1, color="0.4", linewidth=0.6)
    right.set_xticks(range(2), ("sampling drift", "client drift"))
    right.set(ylabel="FedEve's estimate over exact", xlim=(-0.5, 1.5))
    return figure


def _mark_start(ax: Axes) -> None:
    """The round from which IMA averages."""
    ax.axvline(90, color="0.6", linewidth=0.8, linestyle=":")
    look: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "fontsize": style.small()}
    ax.text(89.5, 0.02, "averaging starts", ha="right", **look)


def _paired(runs: Runs, methods: Sequence[str]) -> dict[str, list[RecordedRun]]:
    """The runs of those methods that are recorded, of the seeds that all of them have, in the order of the seeds."""
    present = [method for method in methods if runs.get(method)]
    by_seed = {method: {run.experiment.seed: run for run in runs[method]} for method in present}
    seeds = sorted(set.intersection(*(set(own) for own in by_seed.values())))
    return {method: [own[seed] for seed in seeds] for method, own in by_seed.items()}


def _stored(runs: Sequence[RecordedRun], measure: Callable[[Any], Any]) -> list[Any]:
    """The measure of each run whose file holds what it reads."""
    values = []
    for run in runs:
        with suppress(LookupError):
            values.append(measure(run))
    return values


def _bar(ax: Axes, place: int, values: Sequence[float]) -> None:
    """Values of the seeds, their mean and its 95 % interval at a place."""
    interval = estimate(values)
    ax.plot([place] * len(values), values, "o", color="0.75", markersize=3)
    reach = 0.0 if interval.number < 2 else interval.high - interval.value
    ax.errorbar([place + 0.15], [interval.value], [reach], fmt="o", color=COLOURS["FedAvg"], markersize=4, capsize=2)


def _band(ax: Axes, series: Sequence[xr.DataArray], method: str, *, log: bool = False, first: int = 0) -> None:
    """Mean over seeds, geometric if asked, with the range of the seeds."""
    if not series:
        return
    rounds = series[0]["round"].values
    values = np.stack([one.values for one in series])[:, rounds >= first]
    centre = np.exp(np.nanmean(np.log(values), axis=0)) if log else np.nanmean(values, axis=0)
    rounds = rounds[rounds >= first]
    ax.plot(rounds, centre, color=COLOURS[method], linestyle=DASHES[method], label=NAMES.get(method, method))
    ax.fill_between(
        rounds, np.nanmin(values, axis=0), np.nanmax(values, axis=0), color=COLOURS[method], alpha=0.12, linewidth=0
    )
