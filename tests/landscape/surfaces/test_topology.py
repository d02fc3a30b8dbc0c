from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import xarray as xr
from scipy import ndimage

import landscape
from landscape.surfaces.aligned_distance import aligned_distance
from landscape.surfaces.persistence import basin_diagram, bottleneck, wasserstein
from landscape.surfaces.surface_distances import surface_distances

NAMES = ("alpha", "beta", "gamma")


def surface(values, marks=None):
    dims = NAMES[: values.ndim]
    ds = xr.Dataset(
        {"loss": (dims, values, {"units": "nats"})}, {n: np.arange(s) for n, s in zip(dims, values.shape, strict=True)}
    )
    if marks is None:
        return ds
    places = {f"mark_{name}": ("mark", [float(mark[axis]) for mark in marks]) for axis, name in enumerate(dims)}
    return ds.assign(places).assign_coords(mark=[str(number) for number in range(len(marks))])


def noise(seed, shape):
    return np.random.default_rng(seed).permutation(int(np.prod(shape))).reshape(shape).astype(float)


def by_thresholds(values):
    """Births and ends of the components of all sublevel sets, each labelled from nothing: slow, and without a tree."""
    alive, ended = set(), {}
    for level in np.sort(values.ravel()):
        labels, count = ndimage.label(values <= level)
        lowest = {float(values[labels == number].min()) for number in range(1, count + 1)}
        ended |= {birth: float(level) for birth in alive - lowest}
        alive = (alive | lowest) - set(ended)
    return {*ended.items(), *((birth, float(values.max())) for birth in alive)}


def by_paths(values, cells):
    """Smallest largest value on any path between cells, by Floyd and Warshall's recursion over all cells."""
    places = list(product(*map(range, values.shape)))
    flat = np.array([values[place] for place in places])
    close = np.array([[sum(abs(a - b) for a, b in zip(p, q, strict=True)) <= 1 for q in places] for p in places])
    cost = np.where(close, np.maximum.outer(flat, flat), np.inf)
    for middle in range(len(places)):
        cost = np.minimum(cost, np.maximum(cost[:, middle, None], cost[None, middle]))
    chosen = [places.index(cell) for cell in cells]
    return cost[np.ix_(chosen, chosen)]


@pytest.mark.parametrize("shape", [(6, 9), (3, 4, 5), (17,)])
@pytest.mark.parametrize("seed", range(3))
def test_basins_are_those_of_all_thresholds(shape, seed):
    values = noise(seed, shape)
    diagram = basin_diagram(surface(values))
    assert {tuple(map(float, pair)) for pair in diagram} == by_thresholds(values)


@pytest.mark.parametrize("seed", range(4))
def test_a_plateau_is_one_minimum_or_none(seed):
    values = np.random.default_rng(seed).integers(0, 4, (7, 9)).astype(float)
    tree = landscape.merge_tree(surface(values))
    minima = []
    for level in np.unique(values):  # by flooding: plateaus without a lower cell beside them
        labels, count = ndimage.label(values == level)
        for number in range(1, count + 1):
            around = ndimage.binary_dilation(labels == number) & (labels != number)
            minima += [level] if (values[around] > level).all() else []
    assert sorted(tree.minimum.values) == minima
    assert (tree.persistence.values > 0).all()
    assert len(minima) > 3


def test_the_tree_names_parents_passes_and_places():
    values = np.array([[0.0, 5.0, 2.0, 7.0, 1.0]])
    tree = landscape.merge_tree(surface(values))
    np.testing.assert_array_equal(tree.minimum, [0, 1, 2])
    np.testing.assert_array_equal(tree.saddle, [np.nan, 7, 5])
    np.testing.assert_array_equal(tree.persistence, [7, 6, 3])
    np.testing.assert_array_equal(tree.parent, [0, 1, 1])
    np.testing.assert_array_equal(tree.first_pass, [5, 7, 5])
    np.testing.assert_array_equal(tree.at_beta, [0, 4, 2])
    np.testing.assert_array_equal(tree.saddle_beta, [np.nan, 3, 1])
    assert float(tree.smad) == pytest.approx((5 + 6 + 3) / 3)


def test_missing_cells_separate_basins_and_resolutions_drop_small_ones():
    values = np.array([0.0, 3.0, np.nan, 4.0, 1.0])
    tree = landscape.merge_tree(surface(values))
    np.testing.assert_array_equal(tree.minimum, [0, 1])
    assert np.isnan(tree.saddle).all()
    wave = (np.arange(9) - 4.0) ** 2 + 4 * (np.arange(9) % 2)
    assert landscape.merge_tree(surface(wave)).sizes["rank"] > 1
    assert landscape.merge_tree(surface(wave), stride=2).sizes["rank"] == 1
    with pytest.raises(ValueError, match="stride is 0"):
        landscape.merge_tree(surface(wave), stride=0)
    with pytest.raises(LookupError, match="no loss yet"):
        landscape.merge_tree(surface(np.full(3, np.nan)))


def test_a_bowl_has_one_minimum_and_no_roughness():
    x, y = np.meshgrid(np.linspace(-1, 2, 7), np.linspace(-2, 1, 5), indexing="ij")
    tree = landscape.merge_tree(surface(1 + x**2 + x * y + y**2))
    assert tree.sizes["rank"] == 1
    assert float(tree.smad) == 0
    assert float(tree.roughness) == pytest.approx(0, abs=1e-12)
    assert float(landscape.merge_tree(surface(noise(1, (9, 11)))).roughness) > 0.7


def test_passes_are_the_lowest_of_all_paths():
    values, cells = noise(4, (5, 6)), [(0, 0), (4, 5), (2, 3)]
    ds = landscape.passes(surface(values, cells))
    expected = by_paths(values, cells)
    np.testing.assert_array_equal(ds.level, expected)
    own = np.array([values[cell] for cell in cells])
    np.testing.assert_array_equal(ds.climb, expected - np.maximum.outer(own, own))
    with pytest.raises(LookupError, match="marks no models"):
        landscape.passes(surface(values))


@pytest.mark.parametrize("shape", [(6, 9), (4, 5, 3)])
def test_gudhi_has_the_same_basins(shape):
    pytest.importorskip("gudhi", reason="gudhi is not installed: pip install 'fedscape[topology]'")
    values = noise(7, shape)
    ds = landscape.persistence(surface(values))
    basins = ds.where((ds.dimension == 0) & (ds.persistence > 0), drop=True)
    assert {*zip(basins.birth.values.tolist(), basins.death.values.tolist(), strict=True)} == {
        pair for pair in by_thresholds(values) if pair[1] > pair[0]
    }
    assert bool((np.diff(ds.persistence) <= 0).all())


def test_a_ring_around_a_peak_is_a_loop():
    pytest.importorskip("gudhi", reason="gudhi is not installed: pip install 'fedscape[topology]'")
    values = np.ones((3, 3))
    values[1, 1] = 4.0
    ds = landscape.persistence(surface(values))
    loop = ds.where(ds.dimension == 1, drop=True).isel(rank=0)
    assert (float(loop.birth), float(loop.death)) == (1.0, 4.0)


def test_distances_of_diagrams_by_hand():
    first, second = np.array([[0.0, 4.0], [1.0, 2.0]]), np.array([[0.5, 4.0]])
    assert wasserstein(first, second) == pytest.approx(0.5 + 0.5)  # one pair moves by 0.5, one to the diagonal
    assert wasserstein(first, first) == 0
    pytest.importorskip("gudhi", reason="gudhi is not installed: pip install 'fedscape[topology]'")
    assert bottleneck(first, second) == pytest.approx(0.5)


def hill(turn, size=41):
    """An elongated bowl on a square around its marked mean, turned."""
    axis = np.linspace(-2, 2, size)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    u, v = np.cos(turn) * x + np.sin(turn) * y, -np.sin(turn) * x + np.cos(turn) * y
    ds = xr.Dataset({"loss": (("alpha", "beta"), u**2 + 0.2 * v**2 + 0.3 * u**3)}, {"alpha": axis + 5, "beta": axis})
    ds["mark_alpha"], ds["mark_beta"] = ("mark", [5.0]), ("mark", [0.0])
    return ds.assign_coords(mark=["mean"])


def test_turned_planes_are_alike_and_other_ones_are_not():
    plain, turned = hill(0.0), hill(np.pi / 3)
    apart = float(np.sqrt(((plain.loss.values - turned.loss.values) ** 2).mean()))
    assert aligned_distance(plain, turned) < 0.02 < apart
    steeper = plain.assign(loss=2 * plain.loss)
    assert aligned_distance(plain, steeper) > 0.3
    table = surface_distances({"plain": plain, "turned": turned, "steep": steeper})
    np.testing.assert_allclose(table.aligned, table.aligned.values.T)
    assert float(table.wasserstein.sel(mark="plain", mark_other="plain")) == 0
    with pytest.raises(ValueError, match="1 planes are given"):
        surface_distances({"plain": plain})
