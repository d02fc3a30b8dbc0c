"""What a picture shows, in a sentence with the numbers that are drawn; empty where no sentence suits it."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from figures.axes.curves import MOVING
from figures.looks import look, words
from figures.looks.literal import plain

LAST, PANELS, LONGEST = 10, 4, 250
"""Points at the end of a long line whose mean is stated; panels that are named one by one; letters of a finding."""


def finding(ds: xr.Dataset, figure: Figure | None) -> str:
    """A sentence with numbers: where the mean of models lies, how high barriers are, which line ends highest.

    Args:
        ds: As the figure's data() returns it.
        figure: Drawn from it; its lines are read.
    """
    if is_table(ds):  # its cells are the numbers
        return ""
    stated = _measured(ds) or _valley(ds) or _barriers(ds) or _segments(ds) or _pairs(ds)
    return stated or (_ends(figure) if figure is not None and "density" not in ds else "")


def is_table(ds: xr.Dataset) -> bool:
    """Whether a figure's data are a table: numbers of rows, in columns or by variable."""
    return "row" in ds.dims and set(map(str, ds.dims)) <= {"row", "column", "seed"}


def _measured(ds: xr.Dataset) -> str:
    """The numbers that a map of models, coherence, gains or a path are drawn for."""
    if "mark_chosen" in ds:
        losses = dict(zip(ds.candidate.values, ds.judged_loss.values, strict=True))
        lowest, last = losses[ds.attrs["chosen"]], list(losses)[-1]
        count, number = int(ds.mark_chosen.sum()), ds.sizes["basin"]
        basins = f"{number} basins, with barriers up to {float(ds.basin_barrier.max()):.2g} nats; " * (number > 1)
        return f"{basins}the mean of {count} models has a loss of {lowest:.3f}, {last} one of {losses[last]:.3f}"
    if "critical_point" in ds and "algorithm" in ds.dims and bool(ds.critical_point.notnull().any()):
        rounds = ds.critical_point.median({"seed"} & set(ds.critical_point.dims)).dropna("algorithm").to_series()
        texts = [f"{look.label(str(name))} {index:.0f}" for name, index in rounds.items()]
        return f"Critical point, where the coherence turns negative, at round: {', '.join(texts)}"
    if "gain" in ds and "concentration" in ds.gain.dims:
        medians = ds.gain.median(set(ds.gain.dims) - {"concentration"}).to_series()
        return f"Median gain by concentration: {', '.join(f'{gain:.2f} at {at:g}' for at, gain in medians.items())}"
    if "minima" in ds and "value" in ds.minima.dims:
        finest = ds.minima.isel(value=0)
        return f"One minimum on {int((finest == 1).sum())} of {int(finest.notnull().sum())} planes"
    if "distance" in ds and "explained_beta" in ds.attrs:
        share = 100 * (ds.attrs["explained_alpha"] + ds.attrs["explained_beta"])
        return f"The plane holds {share:.0f} % of the variance; models lie up to {float(ds.distance.max()):.2g} off it"
    return ""


def _valley(ds: xr.Dataset) -> str:
    """Of maps through models: by how much their mean is lower or higher than the best of them."""
    values = ds.get(f"mark_{ds.attrs.get('variable', 'loss')}")
    names = ds.get("at_mark", ds.coords.get("mark"))
    if values is None or names is None or not np.isin("mean", names.values):
        return ""
    rows, marks = np.broadcast_arrays(
        np.atleast_2d(values.transpose(..., "mark").values), np.atleast_2d(names.values.astype(str))
    )
    gaps = [
        float(row[called == "mean"][0] - row[~np.isin(called, ["mean", "by size"])].min())
        for row, called in zip(rows, marks, strict=True)
    ]
    labels = [" ".join(str(text).split()) for text in ds["is_label"].values] if "is_label" in ds else [""] * len(gaps)
    factor, unit = (100, "points") if values.attrs.get("units") == "fraction" else (1, values.attrs.get("units", ""))
    parts = []
    for word, sign in (("below", -1), ("above", 1)):
        sized = [(sign * gap * factor, label) for gap, label in zip(gaps, labels, strict=True) if sign * gap > 0]
        if sized and (len(gaps) > PANELS or (len(gaps) > 1 and not all(labels))):
            low, high = min(sized)[0], max(sized)[0]
            parts.append(f"{low:.3g} to {high:.3g} {unit} {word} on {len(sized)} of {len(gaps)} planes")
        else:
            parts += [
                f"{size:.3g} {unit} {word}" + f" ({label.removesuffix(', own scale')})" * bool(label)
                for size, label in sized
            ]
    return f"Against the best of its models, the mean lies {words.listed(parts)}" if parts else ""


def _barriers(ds: xr.Dataset) -> str:
    """Mean and largest barrier between models, and that of another way between them where there is one."""
    if "barrier" not in ds or ds.barrier.attrs.get("units") != "nats":
        return ""
    straight = "curve" if "straight_barrier" in ds else "straight line"
    parts = []
    named = {"barrier": straight, "straight_barrier": "straight line", "aligned_barrier": "after alignment"}
    for name in (name for name in named if name in ds):
        values = ds[name].values
        if ds[name].dims[-2:] == ("mark", "mark_other"):
            values = values[(..., *np.triu_indices(values.shape[-1], 1))]
        highest = float(np.nanmax(values))
        parts.append(
            f"{named[name]} {np.nanmean(values):.3g} nats (largest {highest:.3g})" if highest else f"{named[name]} none"
        )
    if not all(text.endswith("none") for text in parts):
        return f"Mean barrier: {', '.join(parts)}"
    if "midpoint" in ds:
        depth = -ds.midpoint.values[(..., *np.triu_indices(ds.sizes["mark"], 1))]
        low, high = np.nanmin(depth), np.nanmax(depth)
        return f"No barrier; the mean of two models lies {low:.3g} to {high:.3g} nats below the mean of their losses"
    ways = {"loss": straight, "straight_loss": "straight line"}
    falls = " and ".join(f"{float(ds[name].min()):.3g} nats on the {way}" for name, way in ways.items() if name in ds)
    return "No barrier between the models" + f"; the loss falls to {falls}" * bool(falls)


def _segments(ds: xr.Dataset) -> str:
    """Of lines between two models, at t = 0 and 1: whether a point between them is lower than both."""
    loss = ds.get("loss")
    if loss is None or "t" not in loss.dims or not {0.0, 1.0} <= set(np.round(ds.t.values, 9)):
        return ""
    lines, t = loss.transpose(..., "t").values.reshape(-1, ds.sizes["t"]), np.round(ds.t.values, 9)
    lines = lines[np.isfinite(lines).all(1)]
    if not len(lines):
        return ""
    first, second = lines[:, t == 0][:, 0], lines[:, t == 1][:, 0]
    depth = np.minimum(first, second) - lines[:, (t > 0) & (t < 1)].min(1)
    change, deep = second - first, depth[depth > 0]
    by = f", by up to {deep.max():.3g} nats" if len(deep) else ""
    spans = f"{change.min():+.3g} to {change.max():+.3g} nats" if len(change) > 1 else f"{change[0]:+.3g} nats"
    return (
        f"A point between the two models is lower than both on {len(deep)} of {len(lines)} lines{by}; from the first "
        f"to the second the loss changes by {spans}"
    )


def _pairs(ds: xr.Dataset) -> str:
    """Of cosines of updates: how many pairs agree."""
    if "cosine" not in ds or ds.cosine.dims != ("client", "client_other"):
        return ""
    cosines = ds.cosine.values[np.triu_indices(ds.sizes["client"], 1)]
    positive, mean = (cosines > 0).sum(), cosines.mean()
    return f"The updates of {positive} of {len(cosines)} pairs of clients have a positive cosine; mean {mean:.3g}"


def _ends(figure: Figure) -> str:
    """Of each panel with named lines: which ends highest and which lowest, or is it where they differ most."""
    parts, quantity, before = list[str](), "", ("", "")
    for ax in figure.get_axes():
        lines = list(named_lines(ax).items())
        across, label = (plain(" ".join(text.split())) for text in (across_label(ax), ax.get_ylabel()))
        quantity = label or quantity  # panels of a row share it
        if not lines or not quantity or not across or ax.get_xscale() == "symlog":
            continue
        moving = next(filter(None, (MOVING.get(line, "") for line in ax.lines)), "")
        long = "round" in across and not moving and min(len(points) for _, points in lines) >= 2 * LAST
        places, heights = slice(-LAST if long else -1, None), [points[:, 1] for _, points in lines]
        if "round" not in across and len(lines) > 1 and len(set(map(len, heights))) == 1:
            places = slice(at := int(np.ptp(heights, axis=0).argmax()), at + 1)  # where settings differ most
        ends = sorted((float(points[places, 1].mean()), plain(name)) for name, points in lines)
        at = lines[0][1][places][-1, 0]
        fixed = isinstance(ax.xaxis.get_major_locator(), FixedLocator)  # ticks have names
        texts = dict(zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)) if fixed else {}
        how = f" ({moving})" if moving else f" (mean of the last {LAST})" * long
        where = f" at {across} {texts[at].get_text() if at in texts else f'{at:.4g}'}{how}"
        (low, lowest), (high, highest) = ends[0], ends[-1]
        both = f"highest {highest}, {number(high)}; lowest {lowest}, {number(low)}"
        single = number(high) + f", from {number(lines[0][1][0, 1])}" * (len(ends) == 1)
        named = ", ".join(filter(None, [panel_title(ax), quantity]))
        here = where * ((quantity, where) != before or not panel_title(ax))
        parts.append(f"{named}{here}: {single if number(low) == number(high) else both}")
        before = quantity, where
    shown = max((count for count in range(len(parts) + 1) if len(". ".join(parts[:count])) <= LONGEST), default=1)
    return ". ".join(text[:1].upper() + text[1:] if len(parts) > 1 else text for text in parts[: max(1, shown)])


def number(value: float) -> str:
    """Three digits, large numbers in full."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def panel_title(ax: Axes) -> str:
    """Of a panel, or of the first one in its row where there are several rows."""
    spec = ax.get_subplotspec()
    row = [other for other in ax.figure.axes if spec and (at := other.get_subplotspec()) and at.rowspan == spec.rowspan]
    titled = [ax, *row[: len(row) < len(ax.figure.axes)]]
    return plain(
        " ".join(next(filter(None, (other.get_title() or other.get_title("left") for other in titled)), "").split())
    )


def named_lines(ax: Axes) -> dict[str, np.ndarray]:
    """Points of each named line of a panel with three or more, shape (n, 2), by its label; a lone line needs none."""
    lines = {}
    for line in ax.get_lines():
        points = np.asarray(line.get_xydata(), dtype=float)
        points = points[np.isfinite(points).all(1)]
        if line.get_linestyle() not in ("None", "", " ") and len(points) > 2:
            lines[str(line.get_label())] = points
    named = {label.strip(): points for label, points in lines.items() if not label.startswith("_")}
    return named or (dict(zip(["line"], lines.values(), strict=True)) if len(lines) == 1 else {})


def across_label(ax: Axes) -> str:
    """Of the horizontal axis of a panel, or of that below it."""
    spec, others = ax.get_subplotspec(), list(ax.get_shared_x_axes().get_siblings(ax))
    others += [
        other for other in ax.figure.axes if spec and (at := other.get_subplotspec()) and at.colspan == spec.colspan
    ]
    return ax.get_xlabel() or next(filter(None, (other.get_xlabel() for other in others)), "")
