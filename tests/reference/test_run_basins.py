"""Minima, basins and topology of a run's planes: losses written out cell by cell, numpy in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tiny
from reference.linear_model import FULL, loss, models, numbers, sample_losses
from reference.registry import agree, reference
from reference.test_run_planes import ends, on_plane

import drift
import landscape
from drift.config.random_keys import rng

FOLDS = 4
BENT = (*FULL, "task.model=mlp", "task.model_options.hidden=[4]")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three rounds of three of four unequal clients, a linear model."""
    return tiny.trained(tmp_path_factory.mktemp("basins"), *FULL)


@pytest.fixture(scope="module")
def bent(tmp_path_factory):
    """A network of four hidden units, whose loss has several minima."""
    return tiny.trained(tmp_path_factory.mktemp("bent"), *BENT, "local.lr=2.0", "local.epochs=10")


def bent_loss(theta, samples):
    inputs, labels = numbers(samples)
    hidden = np.maximum(inputs @ theta[:32].reshape(4, 8).T + theta[32:36], 0)
    z = hidden @ theta[36:52].reshape(4, 4).T + theta[52:]
    top = z.max(1)
    return float((np.log(np.exp(z - top[:, None]).sum(1)) + top - z[np.arange(len(z)), labels]).mean())


def plane(thetas, measure, points, margin):
    """Axes (points,) each and values (points, points, ..) on a box around three models and their mean; their places."""
    w1, w2, w3 = thetas
    theta_at = on_plane(w1, w2, w3)
    u, v = theta_at(1, 0) - w1, theta_at(0, 1) - w1
    places = np.array([[(w - w1) @ u, (w - w1) @ v] for w in (w1, w2, w3, (w1 + w2 + w3) / 3)])
    low, high = places.min(0), places.max(0)
    reach = margin * (high - low)
    axes = [np.linspace(low[i] - reach[i], high[i] + reach[i], points) for i in range(2)]
    values = np.array([[measure(theta_at(a, b)) for b in axes[1]] for a in axes[0]])
    return axes, values, places


def fit(axes, values, place, reach):
    """Minimum (2,) and Hessian (2, 2) of the least-squares quadratic on a square of cells, moved inside the grid."""
    first = [min(max(at - reach, 0), len(axis) - 2 * reach - 1) for at, axis in zip(place, axes, strict=True)]
    rows = list(itertools.product(*(range(at, at + 2 * reach + 1) for at in first)))
    x = np.array([(axes[0][i], axes[1][j]) for i, j in rows])
    terms = np.column_stack([np.ones(len(x)), x, x[:, 0] ** 2, x[:, 0] * x[:, 1], x[:, 1] ** 2])
    c = np.linalg.lstsq(terms, np.array([values[row] for row in rows]), rcond=None)[0]
    hessian = np.array([[2 * c[3], c[4]], [c[4], 2 * c[5]]])
    return -np.linalg.inv(hessian) @ c[1:3], hessian


def nearest(axes, at):
    return tuple(int(np.abs(axis - value).argmin()) for axis, value in zip(axes, at, strict=True))


def located(axes, each, places, folds=FOLDS):
    """Fitted minimum, its covariance, and its distance from the mean with its error; losses (a, b, samples)."""
    values = each.mean(2)
    place = np.unravel_index(values.argmin(), values.shape)
    for _ in range(20):
        at, _ = fit(axes, values, place, 1)
        near = nearest(axes, at)
        if max(abs(near[i] - min(max(place[i], 1), len(axes[i]) - 2)) for i in range(2)) <= 1:
            break
        place = near
    other, _ = fit(axes, values, near, 2)
    covariance = np.eye(2) * ((at - other) ** 2).sum() / 4
    number = each.shape[2]
    group = rng(0, "folds").permutation(number) % folds
    left = np.array([fit(axes, each[:, :, group != fold].mean(2), place, 1)[0] for fold in range(folds)])
    covariance += (folds - 1) / folds * sum(np.outer(row, row) for row in left - left.mean(0))
    away = at - places[3]
    distance = np.linalg.norm(away)
    return at, covariance, distance, np.sqrt(away @ covariance @ away) / distance


@reference("drift.round_minimum", "drift.global_minimum", by="least squares and jackknife by hand")
def test_fitted_minima(run):
    samples = numbers(run.task.split("test"))
    found = {
        "round": (models(run.round(-1)), drift.round_minimum(run, points=9, margin=5, folds=FOLDS)),
        "global": (ends(run), drift.global_minimum(run, points=9, margin=5, folds=FOLDS)),
    }
    for name, (thetas, ds) in found.items():
        axes, each, places = plane(thetas, lambda theta: sample_losses(theta, *samples), 9, 5)
        at, covariance, distance, uncertain = located(axes, each, places)
        function, errors = f"drift.{name}_minimum", np.sqrt(np.diag(covariance))
        assert str(ds.minimum_state.values) == "inside"
        agree(function, [ds.minimum_alpha, ds.minimum_beta], at, relative=1e-3)
        agree(function, [ds.minimum_alpha_error, ds.minimum_beta_error], errors, relative=1e-3)
        agree(function, [ds.minimum_offset, ds.minimum_offset_error], [distance, uncertain], relative=1e-3)


def bottlenecks(values):
    """Lowest maximum over all paths of edge-touching cells, shape (cells, cells): Floyd and Warshall's loops."""
    flat, cells = values.ravel(), list(np.ndindex(values.shape))
    level = np.full((len(cells),) * 2, np.inf)
    for (i, one), (j, two) in itertools.product(enumerate(cells), repeat=2):
        if np.abs(np.subtract(one, two)).sum() <= 1:
            level[i, j] = max(flat[i], flat[j])
    for k in range(len(cells)):
        level = np.minimum(level, np.maximum(level[:, k, None], level[k]))
    return level


def summary(axes, values):
    """Number of minima, second persistence, SMAD and roughness of a surface."""
    flat, level = values.ravel(), bottlenecks(values)
    age = np.argsort(np.argsort(flat, kind="stable"))  # equal values by their place
    lower = age[None] < age[:, None]
    escape = np.where(lower, level, np.inf).min(1)  # the lowest level at which a lower cell is reached
    minima = np.flatnonzero(escape > flat)
    climbs = sorted((escape[m] - flat[m] for m in minima if np.isfinite(escape[m])), reverse=True)
    first = [min(level[m, other] for other in minima if other != m) - flat[m] for m in minima if len(minima) > 1]
    grid = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]
    products = [a * b for a, b in itertools.combinations_with_replacement(grid, 2)]
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(flat)), *grid, *products]))
    rest = flat - basis @ (basis.T @ flat)
    rough = rest @ rest / np.sum((flat - flat.mean()) ** 2)
    return len(minima), climbs[0] if climbs else 0.0, np.mean(first) if first else 0.0, rough


@reference("drift.topology_directions", by="lowest maxima of all paths; a quadratic projected out")
def test_topology_along_random_directions(bent):
    end, held = bent.round(-1).end, bent.task.split("test")
    ds, several = drift.topology_directions(bent, directions=(1, 2, 3), points=5, radius=3.0, draws=3), 0
    for count, seed in itertools.product((1, 2, 3), range(3)):
        sweep = landscape.random_directions(bent.task, end, count=count, points=5, seed=seed)
        steps, axis = sweep.axes @ sweep.basis.double().numpy(), np.linspace(-3, 3, 5)
        rows = [end.double().numpy() + np.array(at) @ steps for at in itertools.product(axis, repeat=count)]
        values = np.array([bent_loss(theta, held) for theta in rows]).reshape((5,) * count)
        minima, second, smad, rough = summary([axis] * count, values)
        own, several = ds.sel(rank=count, seed=seed), several + (minima > 1)
        agree("drift.topology_directions", own.minima, minima, relative=0)
        agree("drift.topology_directions", [own.second, own.smad], [second, smad], relative=1e-4, absolute=1e-5)
        agree("drift.topology_directions", own.roughness, rough, relative=1e-4)
    assert several > 1, "surfaces with one minimum compare nothing"


@reference("drift.topology_rounds", by="lowest maxima of all paths; a quadratic projected out; planes by hand")
def test_topology_of_planes_over_rounds(bent):
    held, several = bent.task.split("test"), 0
    ds = drift.topology_rounds(bent, rounds=[0, 1], points=9, margin=1.0, strides=(1, 2))
    for index, stride in itertools.product((0, 1), (1, 2)):
        axes, values, places = plane(models(bent.round(index)), lambda theta: bent_loss(theta, held), 9, 1.0)
        axes, values = [axis[::stride] for axis in axes], values[::stride, ::stride]
        minima, second, smad, rough = summary(axes, values)
        cells = [np.ravel_multi_index(nearest(axes, at), values.shape) for at in places[:3]]
        flat, paths = values.ravel(), bottlenecks(values)
        climb = max(paths[i, j] - max(flat[i], flat[j]) for i, j in itertools.combinations(cells, 2))
        own, several = ds.sel(round=index, value=stride), several + (minima > 1) + (climb > 0)
        agree("drift.topology_rounds", own.minima, minima, relative=0)
        found = [own.second, own.smad, own.climb]
        agree("drift.topology_rounds", found, [second, smad, climb], relative=1e-4, absolute=1e-5)
        agree("drift.topology_rounds", own.roughness, rough, relative=1e-4)
    assert several > 1, "planes with one minimum and no pass compare nothing"


@reference("drift.basin_rounds", by="cells counted, distances and lowest maxima of all paths")
def test_basins_over_rounds(run):
    samples = numbers(run.task.split("test"))
    ds = drift.basin_rounds(run, rounds=[1, 2], points=11, margin=5.0, rise=0.1, reach=1, folds=FOLDS)
    for index in (1, 2):
        thetas, own = models(run.round(index)), ds.sel(round=index)
        axes, each, places = plane(thetas, lambda theta: sample_losses(theta, *samples), 11, 5)
        values = each.mean(2)
        mean = loss(thetas.mean(0), run.task.split("test"))
        lowest = min(values.min(), mean)
        cells = [np.ravel_multi_index(nearest(axes, at), values.shape) for at in places]
        flat, paths = values.ravel(), bottlenecks(values)
        level = max(paths[i, j] for i, j in itertools.product(cells, repeat=2))
        edge = np.ones(values.shape, bool)
        edge[1:-1, 1:-1] = False
        gaps = np.stack(np.meshgrid(*axes, indexing="ij"), -1) - places[3]
        border = min(min(at - axis[0], axis[-1] - at) for at, axis in zip(places[3], axes, strict=True))
        high = np.linalg.norm(gaps, axis=2)[values > lowest + 0.1]
        _, _, distance, uncertain = located(axes, each, places)
        place = np.unravel_index(values.argmin(), values.shape)
        expected = {
            "minimum": lowest,
            "level": level,
            "climb": level - flat[cells[:3]].max(),
            "excess": mean - lowest,
            "offset": distance,
            "offset_error": uncertain,
            "located": 1,
            "width": max(np.linalg.norm(a - b) for a, b in itertools.combinations(thetas, 2)),
            "area": (values <= lowest + 0.1).sum() * np.prod([axis[1] - axis[0] for axis in axes]),
            "radius": 0 if mean > lowest + 0.1 else min(border, high.min()),
            "open": float((paths[cells[0]] <= level)[edge.ravel()].any()),
            "curvature": np.linalg.eigvalsh(fit(axes, values, place, 1)[1])[::-1],
        }
        for name, value in expected.items():
            agree("drift.basin_rounds", own[name], value, relative=1e-3, absolute=1e-6)
