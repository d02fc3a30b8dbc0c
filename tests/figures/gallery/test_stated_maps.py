"""Outlines, counts and colours that maps and triangles of named figures state, against counts from the same data."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr
from gallery_runs import QUICK, panels, titles
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.contour import ContourSet

from drift.analyses.landscapes.planes import round_plane
from figures.axes import triangles
from figures.gallery import _stack, planes_overlay, simplex_optima, simplex_settings, topology_rounds


def test_a_tenth_and_a_quarter_of_the_map_are_outlined_where_the_own_loss_is_lowest():
    rng = np.random.default_rng(1)
    alpha, beta = np.linspace(-1, 2, 37), np.linspace(0, 1, 29)
    x, y = np.meshgrid(alpha, beta, indexing="ij")
    at = rng.uniform(-0.5, 1.2, (3, 2))
    own = np.stack([(1 + place) * ((x - a) ** 2 + 3 * (y - b) ** 2) for place, (a, b) in enumerate(at)])
    marks = {"mark_alpha": ("mark", [0.0, 1, 0, 0.3]), "mark_beta": ("mark", [0.0, 0, 1, 0.3])}
    values = {"loss": (("alpha", "beta"), own.mean(0)), "client_loss": (("client", "alpha", "beta"), own)}
    ds = xr.Dataset({**values, **marks}, {"alpha": alpha, "beta": beta, "client": [4, 7, 9]}, {"label": "round 3"})
    figure = planes_overlay.draw(_stack.join_panels([(ds.attrs["label"], ds)]))
    contours = [part for part in panels(figure)[0].collections if isinstance(part, ContourSet)]
    lines = [part for part in contours if not part.filled and len(part.levels) == 2]
    assert len(lines) == 3
    assert not [part for part in contours if part.filled and part.get_alpha()], "shade is the global loss alone"
    for client, (outline, colour) in enumerate(zip(lines, planes_overlay.COLOURS, strict=True)):
        inside = [(own[client] <= level).mean() for level in outline.levels]
        assert inside == pytest.approx([0.1, 0.25], abs=1.5 / own[client].size)
        assert outline.get_linewidths().tolist() == list(planes_overlay.WIDTHS)
        assert {to_hex(edge) for edge in outline.get_edgecolors()} == {colour.lower()}
    entries = {text.get_text().replace("\n", " "): part for key in figure.legends for text, part in _entries(key)}
    for name, width in zip(("thick: tenth", "thin: quarter"), planes_overlay.WIDTHS, strict=True):
        assert entries[f"{name} of the map where its own loss is lowest"].get_linewidth() == width
    greys = [np.dot(to_rgba(colour)[:3], [0.3, 0.6, 0.1]) for colour in planes_overlay.COLOURS]
    lowest, highest = (planes_overlay._PALE(end)[0] for end in (0.0, 1.0))
    assert max(greys) < 0.4 and 2 / 3 < lowest < highest == 1
    names = ("first client", "second client", "third client")
    assert [to_hex(entries[name].get_color()) for name in names] == [
        colour.lower() for colour in planes_overlay.COLOURS
    ]


def _entries(key):
    return zip(key.get_texts(), key.legend_handles, strict=True)


def _grid_minima(values: np.ndarray) -> int:
    """Cells that no cell beside them is below."""
    padded = np.pad(values, 1, constant_values=np.inf)
    beside = [padded[2:, 1:-1], padded[:-2, 1:-1], padded[1:-1, 2:], padded[1:-1, :-2]]
    return int((values < np.min(beside, axis=0)).sum())


def test_planes_with_one_minimum_are_counted_on_the_finest_and_the_coarsest_grid(numbers, kinds):
    ds = numbers("topology-rounds")
    figure = topology_rounds.draw(ds)
    stated = re.search(r"one minimum on (\d+) of (\d+) planes \((\d+) on the coarsest grid\)", titles(figure))
    by_name = {run.name: run for run in kinds}
    minima = {1: [], topology_rounds.STRIDES[-1]: []}
    for run in (by_name[name] for name in ds.attrs["runs"].split(", ")):
        for index in ds["round"].values.tolist():
            loss = run.cached(round_plane, round=index, points=QUICK["topology-rounds"]["points"], margin=0.3)
            for stride, counts in minima.items():
                counts.append(_grid_minima(loss.loss.values[::stride, ::stride]))
    finest, coarsest = minima.values()
    assert [*map(int, stated.groups())] == [finest.count(1), len(finest), coarsest.count(1)]
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert ("minima" in labels) == any("saddle" in text for text in labels) == (finest.count(1) < len(finest))


def _path(rounds, best, seed):
    """The data of simplex-optima with best weights in some rounds, NaN in others."""
    corners = np.linspace(0, 1, 5)
    rng = np.random.default_rng(seed)
    alpha, beta = np.meshgrid(corners, corners, indexing="ij")
    loss = np.where(alpha + beta <= 1 + 1e-9, 1 + (alpha - 0.4) ** 2 + (beta - 0.3) ** 2, np.nan)
    weights = rng.dirichlet(np.ones(3), len(rounds))
    weights[~np.isin(rounds, best)] = np.nan
    marks = ["client 0", "client 1", "client 2", "mean", "by size"]
    about = {"long_name": "loss", "units": "nats"}
    values = {
        "loss": (("alpha", "beta"), loss, about),
        "best_weight": (("round", "client"), weights),
        "best_loss": ("round", np.where(np.isin(rounds, best), 0.5, np.nan), about),
        "size_loss": ("round", np.full(len(rounds), 0.7), about),
        "mean": ("client", np.nanmean(weights, 0)),
        "mark_alpha": ("mark", [1.0, 0, 0, 1 / 3, 0.5]),
        "mark_beta": ("mark", [0.0, 1, 0, 1 / 3, 0.2]),
        "mark_loss": ("mark", [2.0, 3, 4, 1, 1.5]),
    }
    coords = {"alpha": corners, "beta": corners, "round": rounds, "client": range(3), "mark": marks}
    return xr.Dataset(values, coords, {"label": "fedavg", "shown": 2})


def _dots(ax):
    """Places and colours of the dots of a panel."""
    (dots,) = [part for part in ax.collections if isinstance(part, PathCollection)]
    return np.asarray(dots.get_offsets()), dots.get_facecolors()


def test_the_colours_of_best_weights_run_from_the_first_to_the_last_stated_round_in_every_panel():
    parts = [_path([2, 4, 6], [2, 4, 6], 0), _path([4, 6, 8], [6, 8], 1)]
    joined = xr.concat([part.drop_attrs(deep=False) for part in parts], "panel", join="outer")
    joined = joined.assign_coords({"panel": ["a", "b"], "class": ["x", "y"]})
    joined["class_share"] = (("panel", "client", "class"), np.full((2, 3, 2), 0.5), {"long_name": "share"})
    joined["shown"] = ("panel", [4, 6])
    figure = simplex_settings.draw(joined)
    assert "dots: best weights of rounds 2 (dark) to 8 (pale)" in titles(figure)
    shades = dict(
        zip([2, 4, 6, 8], map(to_rgba, triangles.by_round(xr.DataArray(range(4)), np.ones(4, bool))), strict=True)
    )
    light = [sum(shade[:3]) for shade in shades.values()]
    assert light == sorted(light), "dark first"
    landscapes = [ax for ax in panels(figure) if ax.get_title().startswith("landscape of round")]
    assert [ax.get_title() for ax in landscapes] == ["landscape of round 4", "landscape of round 6"]
    for ax, part, rounds in zip(landscapes, parts, ([2, 4, 6], [6, 8]), strict=True):
        places, colours = _dots(ax)
        np.testing.assert_allclose(colours, [shades[index] for index in rounds], atol=1e-9)
        best = part.best_weight.sel(round=rounds).values
        corner = np.array([triangles.on_triangle(*pair) for pair in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0))])
        np.testing.assert_allclose(places, best @ corner, atol=1e-9)


def test_losses_have_the_colours_of_their_rounds_on_the_triangle():
    ds = _path([1, 3, 5, 7], [1, 5, 7], 4)
    ds.size_loss[3] = np.nan
    on_map, beside = panels(simplex_optima.draw(ds))
    assert beside.get_xlabel() == "round (colours as on the triangle)"
    of_round = dict(zip([1, 5, 7], _dots(on_map)[1].tolist(), strict=True))
    places, colours = _dots(beside)
    assert places[:, 0].tolist() == [1, 5]
    assert colours.tolist() == [of_round[1], of_round[5]]
