"""Trees, diagrams, sharpness, noise, curves and aligned models against naive computations in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import xarray as xr
from reference.registry import agree, reference
from torch import nn

import landscape
from landscape.model.samples import Samples
from landscape.model.task import Task

GRIDS = {
    "random": np.random.default_rng(0).normal(size=(5, 7)),
    "repeated values": np.random.default_rng(1).integers(4, size=(6, 5)).astype(float),
    "flat": np.full((3, 4), 2.0),
    "with missing cells": np.where(
        np.random.default_rng(2).random((6, 6)) < 0.2, np.nan, GRID := np.sin(np.arange(36.0) * 7).reshape(6, 6)
    ),
    "one row": np.random.default_rng(3).normal(size=(1, 9)),
}


def surface(values):
    coords = {"alpha": np.linspace(-1, 2, values.shape[0]), "beta": np.linspace(0, 1, values.shape[1])}
    return xr.Dataset({"loss": (("alpha", "beta"), values)}, coords=coords)


def components(below):
    """Sets of cells that touch along edges, by flood filling."""
    left, found = set(map(tuple, np.argwhere(below))), []
    while left:
        front = [left.pop()]
        group = set(front)
        while front:
            i, j = front.pop()
            for cell in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                if cell in left:
                    left.remove(cell)
                    group.add(cell)
                    front.append(cell)
        found.append(group)
    return found


def lifetimes(values):
    """Minimum and end (n, 2) of every basin that lives: flood filling at every level anew."""
    living, pairs = [], []
    for level in np.unique(values[np.isfinite(values)]):
        now = components(values <= level)
        for group in now:
            inside = sorted((low for low, cell in living if cell in group), reverse=True)
            pairs += [(low, level) for low in inside[:-1]]
        births = {}
        for group in now:
            old = [(low, cell) for low, cell in living if cell in group]
            births[min(group)] = min(old) if old else (level, next(cell for cell in group if values[cell] == level))
        living = list(births.values())
    top = np.nanmax(values)
    return np.array(sorted(pairs + [(low, top) for low, _ in living if low < top])).reshape(-1, 2)


@pytest.mark.parametrize("name", GRIDS)
@reference("landscape.merge_tree", by="flood filling at every level anew")
def test_basins_live_as_long_as_by_flood_filling(name):
    values = GRIDS[name]
    tree = landscape.merge_tree(surface(values))
    found = np.stack([tree.minimum, tree.minimum + tree.persistence], 1)
    lived = found[tree.persistence.values > 0]
    expected = lifetimes(values)
    assert len(lived) == len(expected)
    if len(expected):
        agree("landscape.merge_tree", np.array(sorted(map(tuple, lived))), expected, relative=1e-12)


def ring_lives(values):
    """Births and ends of rings (n, 2): rings of cells at or below a level are basins of the negative, corners touch."""
    padded = np.pad(-values, 1, constant_values=-np.inf)
    cells = [(i, j) for i in range(padded.shape[0]) for j in range(padded.shape[1])]
    order, root, low, pairs = sorted(cells, key=lambda cell: (padded[cell], cell)), {}, {}, []

    def find(cell):
        while root[cell] != cell:
            cell = root[cell]
        return cell

    for cell in order:
        root[cell], low[cell] = cell, padded[cell]
        for di, dj in itertools.product((-1, 0, 1), repeat=2):
            other = (cell[0] + di, cell[1] + dj)
            if other in root and (a := find(cell)) != (b := find(other)):
                old, young = (a, b) if low[a] <= low[b] else (b, a)
                if low[young] < padded[cell]:
                    pairs.append((-padded[cell], -low[young]))
                root[young] = old
    return np.array(sorted(pairs)).reshape(-1, 2)


@pytest.mark.parametrize("name", ["random", "repeated values", "one row"])
@reference("landscape.persistence", by="flood filling at every level; rings as basins of the negative")
def test_persistence_is_that_of_flood_filling(name):
    pytest.importorskip("gudhi")
    values = GRIDS[name]
    ds = landscape.persistence(surface(values))
    for dimension, expected in ((0, lifetimes(values)), (1, ring_lives(values))):
        own = (ds.dimension.values == dimension) & (ds.persistence.values > 0)
        found = np.array(sorted(zip(ds.birth.values[own], ds.death.values[own], strict=True))).reshape(-1, 2)
        assert found.shape == expected.shape
        if len(expected):
            agree("landscape.persistence", found, expected, relative=1e-12)


def matchings(first, second):
    """Lists of moves of all ways to pair two diagrams, those not paired moving to the diagonal."""
    for count in range(min(len(first), len(second)) + 1):
        for left in itertools.combinations(range(len(first)), count):
            for right in itertools.permutations(range(len(second)), count):
                moves = [np.abs(first[i] - second[j]).max() for i, j in zip(left, right, strict=True)]
                moves += [(first[i, 1] - first[i, 0]) / 2 for i in range(len(first)) if i not in left]
                moves += [(second[j, 1] - second[j, 0]) / 2 for j in range(len(second)) if j not in right]
                yield moves


@reference("landscape.surface_distances", by="all matchings of the basins, one by one; a plane turned by hand")
def test_distances_of_surfaces_are_those_of_the_best_of_all_matchings():
    rng = np.random.default_rng(5)
    centre = xr.Dataset({"mark_alpha": ("mark", [0.5]), "mark_beta": ("mark", [0.5])}, {"mark": ["mean"]})
    planes = {name: surface(rng.normal(size=(4, 3))).merge(centre) for name in "ab"}
    ds, (first, second) = (
        landscape.surface_distances(planes),
        (lifetimes(plane.loss.values) for plane in planes.values()),
    )
    ways = list(matchings(first, second))
    agree("landscape.surface_distances", ds.wasserstein[0, 1], min(map(sum, ways)), relative=1e-12)
    if np.isfinite(ds.bottleneck[0, 1]):
        agree("landscape.surface_distances", ds.bottleneck[0, 1], min(map(max, ways)), relative=1e-12)
    side = np.linspace(-1, 1, 21)
    x, y = np.meshgrid(side, side, indexing="ij")
    plane = xr.Dataset({"loss": (("alpha", "beta"), x + 3 * y)}, {"alpha": side, "beta": side})
    plane = plane.assign_coords(mark=["mean"]).assign(mark_alpha=("mark", [0.0]), mark_beta=("mark", [0.0]))
    turned, higher = plane.assign(loss=plane.loss.transpose("beta", "alpha").values * -1 + 0 * plane.loss), plane + 0
    higher["loss"] = plane.loss + 0.5
    aligned = landscape.surface_distances({"plain": plane, "turned": turned, "higher": higher}).aligned
    agree("landscape.surface_distances", aligned[0], [0.0, 0.0, 0.5], relative=0.0, absolute=1e-12)


def posed(samples=11, inputs=4, dtype=torch.float64):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(inputs, 5), nn.Tanh(), nn.Linear(5, 3)).to(dtype)
    generator = torch.Generator().manual_seed(1)
    held = Samples(torch.rand(samples, inputs, generator=generator, dtype=dtype), torch.arange(samples) % 3)
    return Task(model, {"train": held, "test": held})


def parts(theta):
    return theta[:20].reshape(5, 4), theta[20:25], theta[25:40].reshape(3, 5), theta[40:]


def outputs(theta, inputs):
    weight, bias, head, last = parts(theta)
    return np.tanh(inputs @ weight.T + bias) @ head.T + last


def loss(theta, samples):
    z, labels = outputs(theta, samples.inputs.numpy()), samples.targets.numpy()
    top = z.max(1)
    return float((top + np.log(np.exp(z - top[:, None]).sum(1)) - z[np.arange(len(z)), labels]).mean())


def gradient(theta, samples, step=1e-6):
    """By central differences."""
    rows = step * np.eye(len(theta))
    return np.array([loss(theta + row, samples) - loss(theta - row, samples) for row in rows]) / (2 * step)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("samples", [1, 11])
@reference("landscape.ball_sharpness", by="the ascent written out in numpy, gradients by differences, float64")
def test_sharpness_in_a_ball(samples, adaptive):
    task, radius = posed(samples), 0.3
    held, theta = task.split("train"), task.theta.numpy()
    ds = landscape.ball_sharpness(task, task.theta, radius=radius, steps=4, directions=3, adaptive=adaptive)
    scale = np.ones(43)
    if adaptive:
        scale[:20], scale[25:40] = np.abs(theta[:20]) + 0.01, np.abs(theta[25:40]) + 0.01
    upward = scale * gradient(theta, held)
    v, met = radius * upward / np.linalg.norm(upward), []
    for step in range(1, 5):
        met.append(loss(theta + scale * v, held))
        upward = scale * gradient(theta + scale * v, held)
        v = v + 2 * radius * (1 - step / 4) * upward / np.linalg.norm(upward)
        v *= min(1, radius / np.linalg.norm(v))
    generator, rises = torch.Generator().manual_seed(0), []
    for _ in range(3):
        direction = torch.randn(43, generator=generator, dtype=torch.float64).numpy()
        length = float(torch.rand((), generator=generator, dtype=torch.float64)) ** (1 / 43)
        move = radius * scale * length * direction / np.linalg.norm(direction)
        rises.append((loss(theta + move, held) + loss(theta - move, held)) / 2 - loss(theta, held))
    here = loss(theta, held)
    expected = [here, max(met) - here, met[0] - here, np.mean(rises), np.std(rises, ddof=1)]
    found = [float(ds[name]) for name in ("loss", "worst", "one_step", "mean", "spread")]
    for actual, wanted in zip(found, expected, strict=True):
        agree("landscape.ball_sharpness", actual, wanted, relative=1e-5)


@reference("landscape.noise_robustness", by="the same noise added, clipped and classified one sample at a time")
def test_robustness_to_noise():
    task, mean, std = posed(40), 0.05, 0.9
    held, model = task.split("test"), 6 * task.theta - 1
    theta = model.numpy()
    ds = landscape.noise_robustness(task, model, mean=(mean,), std=(std,), levels=(0.1, 0.7), draws=2)

    def accuracy(inputs):
        return np.mean(
            [outputs(theta, row[None]).argmax() == y for row, y in zip(inputs, held.targets.tolist(), strict=True)]
        )

    clean, noisy = accuracy(held.inputs.numpy()), np.zeros((2, 2))
    for (row, level), draw in itertools.product(enumerate((0.1, 0.7)), range(2)):
        uniform = torch.rand(40, 4, generator=torch.Generator().manual_seed(draw), dtype=torch.float64).numpy()
        seen = np.clip(held.inputs.numpy() * std + mean + level * (2 * uniform - 1), 0, 1)
        noisy[row, draw] = accuracy((seen - mean) / std)
    agree("landscape.noise_robustness", ds.accuracy, clean, relative=1e-12)
    agree("landscape.noise_robustness", ds.noisy, noisy, relative=1e-12)
    assert len(np.unique(noisy)) > 1
    agree("landscape.noise_robustness", ds["drop"], clean - noisy.mean(1), relative=1e-12, absolute=1e-15)


@pytest.mark.parametrize("kind", ["bezier", "polygon"])
@reference("landscape.connecting_curve", "landscape.along", by="Adam and the curve written out in numpy, float64")
def test_a_curve_is_trained_as_written_out(kind):
    task, steps, rate = posed(), 6, 0.05
    held, a = task.split("train"), task.theta
    b = a + 0.5 * torch.randn(43, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    curve = landscape.connecting_curve(task, a, b, kind=kind, steps=steps, lr=rate, batch=4)
    ends, bend = (a.numpy(), b.numpy()), (a.numpy() + b.numpy()) / 2

    def shares(t):
        if kind == "bezier":
            return np.array([(1 - t) ** 2, 2 * t * (1 - t), t**2])
        return np.array([max(0, 1 - 2 * t), 1 - abs(2 * t - 1), max(0, 2 * t - 1)])

    def at(t):
        return shares(t) @ np.stack([ends[0], bend, ends[1]])

    generator, first, second = torch.Generator().manual_seed(0), 0.0, 0.0
    for step in range(steps):
        t = float(torch.rand((), generator=generator, dtype=torch.float64))
        batch = held[torch.randperm(11, generator=generator)[:4]]
        slope = shares(t)[1] * gradient(at(t), batch)
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        now = rate * min(1, max(0.01, 1 - 0.99 * (step / steps - 0.5) / 0.4))
        move = first / (1 - 0.9 ** (step + 1)) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8)
        bend = bend - now * move
    agree("landscape.connecting_curve", curve.points[1], bend, relative=1e-4)
    bend = curve.points[1].numpy()
    ds, places = landscape.along(task, curve, points=5), np.linspace(0, 1, 5)
    bent, straight = (
        [loss(theta, held) for theta in path]
        for path in ([at(t) for t in places], [(1 - t) * ends[0] + t * ends[1] for t in places])
    )
    for prefix, values in (("", bent), ("straight_", straight)):
        agree("landscape.along", ds[f"{prefix}loss"], values, relative=1e-12)
        height = max(0, *(v - (1 - t) * values[0] - t * values[-1] for v, t in zip(values, places, strict=True)))
        agree("landscape.along", ds[f"{prefix}barrier"], height, relative=1e-10, absolute=1e-14)
    legs = [np.linalg.norm(at(t) - at(s)) for s, t in itertools.pairwise(places)]
    agree("landscape.along", [ds.length, ds.distance], [sum(legs), np.linalg.norm(ends[1] - ends[0])], relative=1e-9)


@reference("landscape.aligned_barrier", by="all 120 orders of the hidden units, losses written out, float64")
def test_aligned_models_are_the_nearest_of_all_orders():
    task = posed()
    held, a = task.split("test"), task.theta
    b = a + 0.9 * torch.randn(43, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    weight, bias, head, last = parts(b.numpy())
    orders = (list(order) for order in itertools.permutations(range(5)))
    moved = [np.concatenate([weight[o].ravel(), bias[o], head[:, o].ravel(), last]) for o in orders]
    nearest = min(moved, key=lambda theta: np.linalg.norm(theta - a.numpy()))
    agree("landscape.aligned_barrier", landscape.align(task, a, b), nearest, relative=0.0)
    ds = landscape.aligned_barrier(task, a, b, points=5)
    for prefix, other in (("", b.numpy()), ("aligned_", nearest)):
        places = np.linspace(0, 1, 5)
        line = [loss((1 - t) * a.numpy() + t * other, held) for t in places]
        height = max(value - (1 - t) * line[0] - t * line[-1] for value, t in zip(line, places, strict=True))
        agree("landscape.aligned_barrier", ds[f"{prefix}loss"], line, relative=1e-12)
        agree("landscape.aligned_barrier", ds[f"{prefix}barrier"], height, relative=1e-9, absolute=1e-14)
        agree("landscape.aligned_barrier", ds[f"{prefix}distance"], np.linalg.norm(a.numpy() - other), relative=1e-12)


@reference("landscape.step_cost", by="multiply-accumulates and bytes counted by hand")
def test_the_cost_of_a_step_is_that_counted_by_hand():
    for batch in (1, 4, 50):
        ds = landscape.step_cost(posed(), posed().theta, batch=batch, repeats=3)
        agree("landscape.step_cost", [ds.macs, ds.transfer], [4 * 5 + 5 * 3, 43 * 8], relative=0.0)
        assert 0 < ds.step_low <= ds.step <= ds.step_high and 0 < ds.forward_low <= ds.forward <= ds.forward_high
        assert ds.memory >= 2 * 43 * 8, "theta and its gradient"
