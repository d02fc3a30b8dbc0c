"""Numbers and judgements that pictures state in words, against what is drawn and against numbers by hand."""

from __future__ import annotations

from statistics import mean

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from figures.axes import curves, triangles
from figures.gallery import topology_round
from figures.looks import look
from figures.selection.sampling_error import sentences


def test_the_ellipse_of_one_std_has_distance_one_from_the_mean_by_the_covariance():
    steps = np.array([[0.1, -0.06, -0.04], [0.0, 0.05, -0.05]])
    middle, covariance = np.array([0.5, 0.3, 0.2]), steps.T @ steps
    values = {"mean": ("client", middle), "covariance": (("client", "client_other"), covariance)}
    ds = xr.Dataset({**values, "best_weight": (("round", "client"), middle + steps)})
    ax = Figure().add_subplot()
    triangles.optima(ds, ax=ax)
    (line,) = [line for line in ax.lines if "one std" in str(line.get_label())]
    corners = np.array([triangles.on_triangle(*pair) for pair in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0))])
    away = line.get_xydata() - middle @ corners
    projected = corners.T @ covariance @ corners
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", away, np.linalg.inv(projected), away), 1, rtol=1e-9)


def test_dots_of_seeds_are_as_many_as_stated():
    ax, values = Figure().add_subplot(), np.array([0.2, np.nan, 0.5])
    with look.drawing(look.read()) as part:
        curves.seeds_at(values, 1.0, ax)
    assert part.notes == ["dots: each of 2 seeds"]
    assert ax.lines[0].get_ydata().tolist() == [0.2, 0.5]


@pytest.mark.parametrize("total", [1, 8])
def test_titles_of_a_merge_tree_state_its_minima_and_smad(total):
    draw = np.random.default_rng(0)
    minima, heights = np.sort(draw.random(total)), np.sort(draw.random(total))[::-1]
    labels = {"long_name": "loss at the minimum", "units": "nats"}
    ds = xr.Dataset({"minimum": ("rank", minima, labels), "persistence": ("rank", heights)})
    ds = ds.assign(parent=("rank", [0] * total), smad=mean(heights), roughness=0.25)
    tree, diagram = Figure().subplots(1, 2)
    shown = ds.isel(rank=slice(topology_round.MOST))
    topology_round._tree(shown, tree, "loss", total=total)
    topology_round._diagram(shown, diagram, "loss")
    rest = f", {topology_round.MOST} shown" if total > topology_round.MOST else ""
    assert tree.get_title() == ("1 minimum" if total == 1 else f"{total} minima{rest}")
    assert diagram.get_title() == f"SMAD {mean(heights):.3g}, roughness 0.25"


def test_which_comparisons_may_be_chance_is_counted_by_hand():
    values = np.array([[0.90, 0.89], [0.90, 0.60]])  # two comparisons of two methods on 400 samples
    about = {"long_name": "accuracy", "units": "fraction"}
    coords = {"panel": ["a", "b"], "algorithm": ["fedavg", "ima"]}
    ds = xr.Dataset({"accuracy": (("panel", "algorithm"), values, about)}, coords)
    below = 1.96 * (2 * 0.9 * 0.1 / 400) ** 0.5  # 4.2 points: 1 point may be chance, 30 may not
    (said,) = sentences(ds, 400)
    assert f"differences below {100 * below:.2g} points, 95 %" in said
    assert said.startswith("which is best may be chance on 400 test samples")
    assert said.endswith("in 1 of 2 comparisons of accuracy")
