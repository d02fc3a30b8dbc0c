"""Planes for several figures: which clients and rounds they go through, their fitted minima, their titles."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from drift.analyses.landscapes import minima, planes, sweeps
from drift.analyses.per_round import selected_rounds
from drift.runs.run import Run
from figures.axes.colour_bars import clipped, colorbar, common_levels
from figures.axes.fit import marks
from figures.axes.surfaces import contour
from figures.gallery import _runs
from figures.looks import style

MARGINS = (0.3, 0.8, 2.0)
"""Around three global models, as fractions of their box."""

OWN_SCALE = "own scale"
"""In the title of a map with other levels than the maps in its row."""


def round_plane(run: Run, **how: Any) -> xr.Dataset:
    """`drift.round_plane` of a run, with its fitted minimum."""
    return run.cached(planes.round_plane, **how).assign(run.cached(minima.round_minimum, **how).data_vars)


def widest_plane(run: Run, index: int, **how: Any) -> xr.Dataset:
    """`round_plane` through the clients of `largest_triangle`."""
    return round_plane(run, round=index, clients=largest_triangle(run, index), **how)


def of_round(run: Run, round: int | None) -> dict[str, Any]:
    """The round that is named, or the last one that kept three clients, and its `largest_triangle`; as options."""
    stored = _runs.rounds_with_clients(run, least=3)
    index = stored[-1] if round is None else round
    return {"round": index, "clients": largest_triangle(run, index)}


def early_and_last(run: Run, rounds: Sequence[int] | None) -> list[int]:
    """The rounds that are named, or an early one and the last one that kept three clients."""
    stored = _runs.rounds_with_clients(run, least=3)
    rounds = [stored[len(stored) // 10], stored[-1]] if rounds is None else rounds
    return selected_rounds(run, "clients", rounds, None)


def global_plane(run: Run, **how: Any) -> xr.Dataset:
    """`drift.global_plane` of a run on a square, with its fitted minimum; a wider one where this is not well inside."""
    _, box = sweeps.global_sweep(run, None, points=2, margin=0.0)
    sizes = [float(np.ptp(ends)) for ends in box.coords.values()]
    for wide in MARGINS:
        margin = tuple((0.5 + wide) * max(sizes) / size - 0.5 for size in sizes)
        plane = run.cached(planes.global_plane, margin=margin, **how)
        plane = plane.assign(run.cached(minima.global_minimum, margin=margin, **how).data_vars)
        ends = [(plane[name] - plane[f"minimum_{name}"]).values[[0, -1]] for name in ("alpha", "beta")]
        if all(0.12 < -low / (high - low) < 0.88 for low, high in ends):
            break
    return plane


def short_marks(planes: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """The planes with the numbers of models as their names."""
    return [plane.assign_coords(mark=[str(name).rpartition(" ")[2] for name in plane.mark.values]) for plane in planes]


def key(figure: Figure, axs: np.ndarray, models: str, **how: Any) -> Figure:
    """The figure with a key of the marks of planes, as `figures.contour` draws them.

    Args:
        models: What the triangles are.
        how: Passed to `style.key`.
    """
    marks = [
        Line2D([], [], marker=marker, color=face, markeredgecolor=edge, markersize=5, linewidth=0, label=text)
        for marker, face, edge, text in (
            ("^", "black", "white", models),
            ("X", "white", "black", "their mean"),
            ("o", "none", "#555555", "fitted minimum (lines: standard error)"),
        )
    ]
    return style.key(figure, axs.flat, handles=marks, columns=3, **how)


def maps(
    figure: Figure,
    axs: Sequence[Axes],
    planes: Sequence[xr.Dataset],
    variable: str,
    kinds: Sequence[str] = (),
    beside: bool = False,
    **look: Any,
) -> None:
    """Maps of planes side by side: those of one kind on common levels with one bar, each kind with its own.

    Global models of successive rounds are so close that the levels of client planes would show them in one colour.
    Bars lie below the maps of their kind, of those in several rows below the last ones. Where an equal part of each
    kind lies above its scale, the first bar says so of all.

    Args:
        planes: Planes through clients or globals, those of one kind in succession.
        kinds: Of each plane; by default the analysis that it is a result of.
        beside: The bar of a kind with one map stands beside it, without the name of the variable.
        look: Passed to `contour`, but `top` to `common_levels`.
    """
    top, groups, scales = look.pop("top", 0.9), dict[str, list[int]](), dict[str, np.ndarray]()
    for index, kind in enumerate(kinds or [str(plane.attrs.get("analysis", "")) for plane in planes]):
        groups.setdefault(kind, []).append(index)
    for kind, indices in groups.items():
        values = [planes[index][variable] for index in indices]
        scales[kind] = common_levels(*values, log=variable == "loss", top=top)
        for index in indices:
            contour(planes[index], ax=axs[index], variable=variable, levels=scales[kind], **look)
            if style.is_narrow():  # as many ticks at any size: their labels keep the room that the layout leaves
                axs[index].locator_params(nbins=4)
    above = {f"{clipped([axs[index] for index in groups[kind]], levels[-1]):.2f}" for kind, levels in scales.items()}
    scale = "each scale" if len(groups) > 1 and len(above) == 1 else "the scale"
    for kind, indices in groups.items():
        shown = [axs[index] for index in indices]
        last = [ax for ax in shown if style.is_beside(ax, shown[-1])] if len(shown) > 1 or not beside else []
        named = f"\nall {len(shown)} maps of clients" if 0 < len(last) < len(shown) else ""
        label = style.text(planes[indices[0]][variable]) + named if last else ""
        colorbar(figure, shown, scales[kind], label, below=last, scale=scale)
        scale = "" if scale == "each scale" else scale


def scale_bar(ax: Axes) -> Axes:
    """Show a round distance by a bar with its length at a corner of a map, clear of models, in place of ticks."""
    ax.set(xticks=[], yticks=[])
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    power = 10.0 ** np.floor(np.log10(0.45 * (right - left)))
    length = float(power * max(step for step in (1, 2, 5) if step * power <= 0.45 * (right - left)))
    wide, tall, models = (right - left) / 100, (high - low) / 100, marks(ax)
    corners = [(x, high - down * tall) for down in (8, 72) for x in (left + 6 * wide, right - 6 * wide - length)]
    around = np.array([(-9 * wide, -30 * tall), (length + 9 * wide, 9 * tall)])
    start, up = min(corners, key=lambda corner: Bbox(corner + around).count_contains(models))
    halo = [withStroke(linewidth=2.6, foreground="black", alpha=0.6)]
    (bar,) = ax.plot([start, start + length], [up, up], color="white", linewidth=1.4, solid_capstyle="butt")
    bar.set(path_effects=halo, zorder=6)
    look: dict[str, Any] = {"fontsize": style.small(), "color": "white", "path_effects": halo, "zorder": 6, "va": "top"}
    side, at = ("left", start) if start + length / 2 < (left + right) / 2 else ("right", start + length)
    ax.annotate(f"{length:g}", (at, up), (0, -2), textcoords="offset points", ha=side, **look)
    return ax


def largest_triangle(run: Run, index: int) -> list[int]:
    """The three clients of a round with the largest triangle; the two with the largest distance come first.

    Only the first ten clients of a cohort are compared. Other triples are thin triangles where clients have the same
    classes, and a map with the longest side along alpha is wide and low.
    """
    record = run.round(index)
    models, ids = record.kept("clients")[:10].double(), record.ids.tolist()
    if len(models) < 3:
        return [int(client) for client in ids]
    distances = torch.cdist(models, models)

    def area(triple: tuple[int, ...]) -> float:
        """Area times area of a triangle, by Heron's formula."""
        sides = [float(distances[first, second]) for first, second in combinations(triple, 2)]
        half = sum(sides) / 2
        return half * (half - sides[0]) * (half - sides[1]) * (half - sides[2])

    corners = max(combinations(range(len(models)), 3), key=area)
    first, second = max(combinations(corners, 2), key=lambda pair: float(distances[pair]))
    (last,) = set(corners) - {first, second}
    return [int(ids[index]) for index in (first, second, last)]


def early_middle_last(rounds: Sequence[int]) -> list[int]:
    """An early round (a tenth of the way), a middle one and the last."""
    thirds = (len(rounds) // 10, len(rounds) // 2, len(rounds) - 1)
    return [rounds[index] for index in sorted(set(thirds))] if rounds else []
