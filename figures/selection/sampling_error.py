"""Sampling error of compared accuracies: which differences may be chance on so few test samples."""

import re
from collections.abc import Collection

import numpy as np
import xarray as xr

from figures.looks import look
from figures.looks.literal import literal
from figures.selection import setting_text
from landscape.surfaces.sampling_error import SUFFIX

SURE = 1.96
"""Standard errors within which a difference may be chance: 95 percent."""

ALONG = ("algorithm", "row")
"""Dimensions along which methods or settings are compared."""

Groups = list[dict[str, float]]
"""Numbers of two or more methods that a figure compares, by name."""


def comparisons(values: xr.DataArray) -> Groups:
    """The comparisons of a variable, means over seeds and the last ten rounds: one group per panel, column or mark."""
    dim = next((name for name in ALONG if name in values.dims), None)
    allowed = {dim, "seed", "round", "panel", "column", "mark", "value"}
    if dim is None or values.dtype.kind != "f" or values.name in ("printed", "quick") or set(values.dims) - allowed:
        return []
    middle = values.mean("seed") if "seed" in values.dims else values
    if "round" in middle.dims:
        middle = over_last_rounds(middle)
    write = setting_text.row_label if dim == "row" else look.label
    names = [literal(write(str(name))) for name in values[dim].values]
    table = middle.transpose(dim, ...).values.reshape(len(names), -1)
    groups = [
        {name: value for name, value in zip(names, column, strict=True) if np.isfinite(value)} for column in table.T
    ]
    return [{name: float(value) for name, value in group.items()} for group in groups if len(group) > 1]


def sentences(ds: xr.Dataset, samples: int, metric_drawn: Collection[str] | None = None) -> list[str]:
    """Which compared accuracies, errors and accuracy drops may differ by chance on so many test samples, in sentences.

    The standard error of the difference of two accuracies p on n samples is at most sqrt(2 p (1 - p) / n), which holds
    where the models err independently of each other; seeds share the test samples and do not lower it.

    Args:
        ds: As a figure's data() returns it.
        samples: Test samples that the accuracies are measured on.
        drawn: Labels of axes and colour bars; surfaces that none of them names get no sentence. None: all are drawn.
    """
    remarks = []
    for values in ds.data_vars.values():
        kind = accuracy_kind(values)
        base = ds.data_vars.get(str(values.name).removesuffix(SUFFIX))
        if base is not None and _is_drawn(base, metric_drawn):
            remarks += _lowest(values, int(stated.min()) if (stated := _stated(ds)).size else samples)
        if kind == "drop":
            remarks += _lost(values, samples)
        elif kind:
            remarks += _close(values, samples, kind)
            remarks += _map(values, ds) if kind == "error" and _is_drawn(values, metric_drawn) else []
    return list(dict.fromkeys(remarks))


def _is_drawn(values: xr.DataArray, metric_drawn: Collection[str] | None) -> bool:
    """Whether a label names a variable: alone, with its unit or with the part that lies above the scale."""
    return metric_drawn is None or any(re.split(r" \[|\n| \(", label)[0] == _name(values) for label in metric_drawn)


def _lowest(values: xr.DataArray, samples: int) -> list[str]:
    """What the sampling error of a surface is drawn as."""
    name = str(values.name)
    if not name.endswith(SUFFIX) or name.startswith("mark_"):
        return []
    chance = f"within the error of {samples} samples (95 %)"
    if "t" in values.dims:
        return [f"the band is the difference from the lowest point {chance}"]
    return [f"hatched points may be as low as the lowest one {chance}"]


def _stated(ds: xr.Dataset) -> np.ndarray:
    """Numbers of samples that the data state, shape (n,); none where one is missing."""
    stated = ds["is_samples"].values.ravel() if "is_samples" in ds else np.ravel(ds.attrs.get("samples", np.nan))
    usable = np.isfinite(stated.astype(float)).all() and stated.min() > 0
    return stated.astype(int) if usable else np.zeros(0, int)


def accuracy_kind(values: xr.DataArray) -> str:
    """Whether a variable is a "drop", an "accuracy" or an "error" on test samples; else empty.

    A variable whose attribute `test_samples` is 0 is no plain mean over them, such as an accuracy by client.
    """
    about, units = f"{values.name} {values.attrs.get('long_name', '')}".lower(), values.attrs.get("units")
    if (
        str(values.name).endswith(SUFFIX)
        or values.dtype.kind != "f"
        or units not in ("fraction", "points")
        or values.name == "gain"
        or values.attrs.get("test_samples") == 0
    ):
        return ""
    return next((kind for kind in ("drop", "accuracy", "error") if kind in about), "")


def _lost(values: xr.DataArray, samples: int) -> list[str]:
    resolution = (100 if values.attrs["units"] == "points" else 1) / samples
    if not values.notnull().any() or bool((abs(values) >= resolution * (1 - 1e-9)).any()):  # counts of samples
        return []
    return [f"every accuracy lost is below one of {samples} test samples ({100 / samples:.2g} points)"]


def _close(values: xr.DataArray, samples: int, kind: str) -> list[str]:
    groups = comparisons(values)
    near = [pair for group in groups if (pair := _near(group, samples, kind))]
    if not near:
        return []
    names, error = max(near, key=lambda pair: len(pair[0]))
    chance = f"may be chance on {samples} test samples (differences below {100 * error:.2g} points, 95 %)"
    if len(groups) > 1:
        return [f"which is best {chance} in {len(near)} of {len(groups)} comparisons of {_name(values)}"]
    return [f"the order of {', '.join(names)} by {_name(values)} {chance}"]


def _map(values: xr.DataArray, ds: xr.Dataset) -> list[str]:
    """Which differences between two points of a map of an error may be chance, on the samples that the data state.

    An error of a class is a mean over the samples of the class: `class_samples`; without them nothing is said.
    """
    of_class = "class" in f"{values.name} {_name(values)} {' '.join(map(str, values.dims))}"
    counts = np.ravel(ds["class_samples"].values) if "class_samples" in ds else np.zeros(0, int)
    counts = counts if of_class else np.sort(_stated(ds))[:1]
    if not {"alpha", "beta"} <= set(values.dims) or not counts.size:
        return []
    classes = values.transpose("class", ...).values if "class" in values.dims else values.values[None]
    present = [
        (array, count) for array, count in zip(classes, counts, strict=True) if count > 0 and np.isfinite(array).any()
    ]
    errors = [100 * chance(middle(array), count) for array, count in present]
    if not errors:
        return []
    few, many = (end(count for _, count in present) for end in (min, max))
    size = _range(f"{min(errors):.2g}", f"{max(errors):.2g}")
    where = f"differences of {_name(values)} of up to {size} points between two points of a map"
    return [f"{where} may be chance on {_range(str(few), str(many))} samples{' of the class' * of_class} (95 %)"]


def middle(array: np.ndarray) -> float:
    """The value of a map nearest to 1/2, where chance is largest."""
    values = array[np.isfinite(array)]
    return float(values[abs(values - 0.5).argmin()])


def chance(p: float, samples: int) -> float:
    """Difference of two fractions p of so many samples that may be chance; at least that of one sample."""
    return float(max(SURE * (2 * p * (1 - p) / samples) ** 0.5, 1 / samples))


def over_last_rounds(values: xr.DataArray, last: int = 10) -> xr.DataArray:
    """Mean over the last rounds in which any has a value, as `drift.simulation.compare.mean_of_last`."""
    present = values.dropna("round", how="all")
    late = present["round"].values > present["round"].values.max(initial=0) - last
    return present.isel(round=slice(-last, None) if len(late) >= last else late).mean("round")


def widest(first: float, second: float) -> float:
    """Of two fractions the one nearer to 1/2, of which chance is larger."""
    return min(max(min(first, second, key=lambda p: abs(p - 0.5)), 0.0), 1.0)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _name(values: xr.DataArray) -> str:
    return str(values.attrs.get("long_name", values.name))


def _near(group: dict[str, float], samples: int, kind: str) -> tuple[list[str], float] | None:
    """Methods within chance of the best one, best first, and how much chance is; None where there is no other."""
    order = sorted(group, key=lambda name: group[name], reverse=kind == "accuracy")
    best = group[order[0]]
    errors = {name: chance(widest(best, group[name]), samples) for name in order}
    names = [name for name in order if abs(group[name] - best) < errors[name]]
    return (names, max(errors[name] for name in names)) if len(names) > 1 else None
