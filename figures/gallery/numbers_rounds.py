"""Any number over rounds, a line per run, or its difference to a method on the same cohorts (LSS paper, Fig. 3)."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.over_seeds import INTERVAL, t_interval
from drift.analyses.rounds.numbers import number as number_of
from drift.analyses.rounds.numbers import quantity
from drift.analyses.rounds.paired import counterpart
from drift.runs.growing_run import recorded
from drift.runs.run import Run
from figures.axes import curves, method_looks
from figures.gallery import _runs, _stack
from figures.looks import palette, style
from figures.selection.lines import differences, lines

NEEDS = "runs of any methods and settings"

COST = "seconds"

SEEDS = ("lines", "interval")
"""How the seeds of a group are shown."""


def data(
    runs: Sequence[Run],
    *,
    number: str = "accuracy",
    reference: str | None = None,
    rounds: Sequence[int] | None = None,
    seeds: str = "lines",
) -> xr.Dataset:
    """value over run and round; mean, low and high (its 95 % t interval over seeds) over group and round.

    Args:
        number: Recorded number, such as accuracy, loss or local_loss; or one that follows from the record, such as
            coherence, client_variance, gain or step_norm.
        reference: Name of a group: the others are shown as differences to its run with the same seed, in the rounds in
            which both trained the same cohorts; runs on other data are refused.
        rounds: First and last round that are shown; all by default.
        seeds: "lines" for a line per run, "interval" for the mean of each group in its interval.
    """
    if not runs:
        raise _runs.missing("no run was given", "fedscape train digits-shards2")
    if seeds not in SEEDS:
        raise ValueError(f"seeds is {seeds!r}; accepted: {', '.join(SEEDS)}.")
    if rounds is not None and len(rounds) != 2:
        raise ValueError(f"rounds is {list(rounds)}; give the first and the last round.")
    every = lines(map(recorded, runs), lambda run: number_of(run, number).astype(float))
    references = [line.run for line in every if line.group == reference]
    for line in every if references else ():
        with suppress(LookupError):  # the reference has no run of this seed
            counterpart(line.run, references)
    shown, remarks = differences(every, reference or "")
    if not shown:
        raise LookupError(f"there is no difference to {reference}; leave out the reference. {' '.join(remarks)}")
    table = xr.concat([line.values for line in shown], "run", join="outer", combine_attrs="override")
    table = table.assign_coords(run=[line.name for line in shown], group=("run", [line.group for line in shown]))
    if rounds is not None:
        table = table.sel(round=slice(*rounds))
    ds = xr.Dataset({"value": table}).assign_attrs(number=number, reference=reference or "", seeds=seeds)
    ds = ds.assign_attrs({"caption": " ".join(remarks).removesuffix(".")} if remarks else {})
    return _stack.name_runs(_with_means(ds), [line.run for line in every])


def _with_means(ds: xr.Dataset) -> xr.Dataset:
    """The data with mean and interval of each group."""
    names = list(dict.fromkeys(ds.group.values.tolist()))
    rows: dict[str, list[np.ndarray]] = {name: [] for name in _TEXTS}
    for name in names:
        for end, column in zip(rows, t_interval(ds.value.values[ds.group.values == name]), strict=True):
            rows[end].append(column)
    units = ds.value.attrs.get("units", "1")
    extra = {}
    for name, columns in rows.items():
        extra[f"group_{name}"] = (("name", "round"), np.array(columns), {"long_name": _TEXTS[name], "units": units})
    return ds.assign(extra).assign_coords(name=("name", names, {"long_name": "group", "units": "1"}))


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """A line per run, thin and pale where a group has several, with their mean; or means in intervals."""
    figure, axs = style.panels(1, 1, width=style.WIDE, height=3.4)
    ds = _with_means(ds.assign(value=curves.smoothed(ds.value)))
    ax, labels = axs[0, 0], _labels([str(name) for name in ds.name.values])
    for index, name in enumerate(map(str, ds.name.values)):
        method = name.partition(",")[0]
        same = [str(other).partition(",")[0] for other in ds.name.values[:index]].count(method)
        look = method_looks.line_look(method) | {"linestyle": style.dash(method, same), "label": labels[name]}
        if mark := _MARKERS[same // len(palette.DASHES)]:
            look |= {"marker": mark, "markersize": 3, "markevery": 0.13}
        values = ds.value.isel(run=ds.group.values == name).rename(run="seed")
        curves.line_with_band(values, ax=ax, over="round", smooth=0, seeds=ds.attrs["seeds"], **look)
    if ds.attrs["reference"]:
        curves.mark_level(ax)
    if curves.is_logarithmic(ds.value, quantity(ds.attrs["number"]).log and not ds.attrs["reference"]):
        style.logarithmic(ax)
    against = f"\nminus that of {style.label(ds.attrs['reference'])}" if ds.attrs["reference"] else ""
    label = ds.value.attrs.get("long_name", ds.attrs["number"]).removeprefix("difference of ") if against else ""
    style.name_axes(ax, "round", f"{label}{against}" if against else style.text(ds.value))
    return style.key(figure, [ax], columns=3, title=curves.band(ds))


def _labels(names: Sequence[str]) -> dict[str, str]:
    """Names of groups in a legend: the first group of a method with its settings, others with those that differ.

    Settings that a group does not have are left out; where two names would be equal, all are in full.
    """
    firsts: dict[str, list[str]] = {}
    labels = {}
    for name in names:
        method, *settings = name.split(", ")
        first = firsts.get(method, [])
        firsts.setdefault(method, settings)
        texts = [text.removeprefix("name ") for text in settings if text not in first and not text.endswith(" -")]
        labels[name] = ", ".join([style.label(method), *texts])
    if len(set(labels.values())) == len(labels):
        return labels
    return {name: style.label(name.partition(",")[0]) + "".join(name.partition(",")[1:]) for name in names}


_TEXTS = {"mean": "mean over seeds", "low": f"lower end of its {INTERVAL}", "high": f"upper end of its {INTERVAL}"}
_MARKERS = ("", "o", "s", "D", "^", "v", "P", "X")
