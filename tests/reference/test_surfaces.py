"""Surfaces, lines and their measures against loops in float64: one model, one sample, one cell at a time."""

from __future__ import annotations

import copy
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


class _Tied(nn.Module):
    """An embedding whose matrix is the output layer too, and a parameter that does nothing."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(7, 3)
        self.dead = nn.Parameter(torch.ones(4))

    def forward(self, inputs):
        return self.words(inputs).mean(1) @ self.words.weight.T


class _LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, inputs):
        return self.head(self.cells(inputs)[0][:, -1])


class _Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(4, 3)

    def forward(self, inputs):
        return self.head(self.attention(inputs, inputs, inputs, need_weights=False)[0].mean(1))


def _cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)
    )


def _dead_units():
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    with torch.no_grad():
        model[0].bias.fill_(-100.0)
    return model


MODELS = {
    "linear": (lambda: nn.Linear(4, 3), (4,)),
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)), (4,)),
    "dead units": (_dead_units, (4,)),
    "cnn with group norm": (_cnn, (1, 6, 6)),
    "lstm": (_LSTM, (5, 3)),
    "attention": (_Attention, (5, 4)),
    "tied embedding": (_Tied, None),
}


def _task(name, *, samples=23, scale=1.0, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    build, shape = MODELS[name]
    model, classes = build().to(dtype), 7 if shape is None else 3
    inputs = torch.randint(7, (samples, 4)) if shape is None else torch.randn(samples, *shape, dtype=dtype)
    held = Samples(inputs, torch.randint(classes, (samples,)))

    def loss(outputs, targets):
        return scale * nn.functional.cross_entropy(outputs, targets, reduction="none")

    return Task(model, {"train": held, "test": held}, loss=loss)


def _naive(task, theta, scale=1.0):
    """Mean loss and error of a model (d,) in float64, sample by sample, with the sums written out."""
    model = copy.deepcopy(task.model).double().eval()
    torch.nn.utils.vector_to_parameters(torch.as_tensor(theta).double(), model.parameters())
    losses, wrong, samples = [], [], task.split("test")
    for inputs, target in zip(samples.inputs, samples.targets.tolist(), strict=True):
        one = inputs[None].double() if inputs.is_floating_point() else inputs[None]
        with torch.no_grad():
            outputs = model(one)[0].numpy()
        top = outputs.max()
        losses.append(scale * (top + np.log(np.exp(outputs - top).sum()) - outputs[target]))
        wrong.append(float(outputs.argmax() != target))
    return np.mean(losses), np.mean(wrong)


def _three(task, spread=0.3, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return [
        task.theta + spread * torch.randn(task.layout.size, generator=generator, dtype=torch.float64).to(task.theta)
        for _ in range(3)
    ]


def _double(models):
    return [model.double().numpy() for model in models]


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
@pytest.mark.parametrize("samples", [1, 23])
@pytest.mark.parametrize("name", MODELS)
@reference("landscape.evaluate", "landscape.barrier", by="float64 loop over points and samples")
def test_losses_at_combinations_are_those_of_a_loop(name, samples, scale):
    task = _task(name, samples=samples, scale=scale)
    models = _three(task)
    rows = torch.tensor([[1.0, 0, 0], [0.2, 0.3, 0.5], [-0.5, 1.5, 0], [1 / 3, 1 / 3, 1 / 3]], dtype=torch.float64)
    points = rows.numpy() @ np.stack(_double(models))
    expected = np.array([_naive(task, point, scale) for point in points])
    found = landscape.evaluate(task, torch.stack(models), rows)
    agree("landscape.evaluate", found["loss"], expected[:, 0], relative=2e-6)
    assert np.abs(found["error"].numpy() - expected[:, 1]).max() <= 1 / samples * (name != "linear") + 1e-9
    a, b = _double(models)[:2]
    line = [_naive(task, (1 - t) * a + t * b, scale)[0] for t in np.linspace(0, 1, 7)]
    chord = [(1 - t) * line[0] + t * line[-1] for t in np.linspace(0, 1, 7)]
    barrier = max(height - low for height, low in zip(line, chord, strict=True))
    found = landscape.barrier(task, *models[:2], points=7)
    agree("landscape.barrier", float(found.barrier), barrier, relative=1e-4, absolute=1e-5 * scale)


@reference(
    "landscape.surface",
    "landscape.plane",
    "landscape.line",
    "landscape.project",
    "landscape.simplex",
    by="models by hand in float64, loop over points and samples",
)
@pytest.mark.parametrize("name", ["mlp", "cnn with group norm", "tied embedding"])
def test_planes_lines_and_triangles_have_the_losses_of_their_models(name):
    task = _task(name, dtype=torch.float64)
    models = _three(task)
    w1, w2, w3 = _double(models)
    u = (w2 - w1) / np.linalg.norm(w2 - w1)
    v = (w3 - w1) - ((w3 - w1) @ u) * u
    v /= np.linalg.norm(v)
    sweep = landscape.plane(*models, points=(3, 4))
    ds = landscape.surface(task, sweep)
    expected = [[_naive(task, w1 + a * u + b * v)[0] for b in ds.beta.values] for a in ds.alpha.values]
    agree("landscape.surface", ds.loss.values, expected, relative=1e-10)
    places = [((w - w1) @ u, (w - w1) @ v) for w in (w1, w2, w3, (w1 + w2 + w3) / 3)]
    agree("landscape.plane", np.stack([ds.mark_alpha, ds.mark_beta], 1), places, relative=1e-10, absolute=1e-12)
    other = _three(task, seed=5)[0]
    found, away = landscape.project([other], sweep), other.double().numpy() - w1
    agree("landscape.project", [found.mark_alpha[0], found.mark_beta[0]], [away @ u, away @ v], relative=1e-9)
    rest = away - (away @ u) * u - (away @ v) * v
    agree("landscape.project", found.distance, [np.linalg.norm(rest)], relative=1e-9)
    ds = landscape.surface(task, landscape.line(*models[:2], points=5))
    agree(
        "landscape.line",
        ds.loss,
        [_naive(task, (1 - t) * w1 + t * w2)[0] for t in np.linspace(-0.5, 1.5, 5)],
        relative=1e-10,
    )
    ds = landscape.surface(task, landscape.simplex(models, step=0.25))
    for a, b in itertools.product(ds.alpha.values, ds.beta.values):
        value = float(ds.loss.sel(alpha=a, beta=b))
        if a + b > 1 + 1e-9:
            assert np.isnan(value)
        else:
            agree("landscape.simplex", value, _naive(task, a * w1 + b * w2 + (1 - a - b) * w3)[0], relative=1e-10)


@reference("landscape.pairwise_barriers", "landscape.simplex_losses", by="loop over pairs, points and samples")
def test_barriers_of_pairs_and_losses_of_averages():
    task = _task("mlp", dtype=torch.float64)
    models = _three(task)
    plain, found = _double(models), landscape.pairwise_barriers(task, models, points=5)
    barriers, middles, distances = (np.zeros((3, 3)) for _ in range(3))
    for i, j in itertools.permutations(range(3), 2):
        line = [_naive(task, (1 - t) * plain[i] + t * plain[j])[0] for t in np.linspace(0, 1, 5)]
        chord = [(1 - t) * line[0] + t * line[-1] for t in np.linspace(0, 1, 5)]
        barriers[i, j] = max(height - low for height, low in zip(line, chord, strict=True))
        middles[i, j] = line[2] - (line[0] + line[-1]) / 2
        distances[i, j] = np.sqrt(sum((plain[i] - plain[j]) ** 2))
    agree("landscape.pairwise_barriers", found.barrier, barriers, relative=1e-9, absolute=1e-12)
    agree("landscape.pairwise_barriers", found.midpoint, middles, relative=1e-9, absolute=1e-12)
    agree("landscape.pairwise_barriers", found.distance, distances, relative=1e-9)
    found = landscape.simplex_losses(task, models, count=100, metrics=("loss",))
    weights = np.random.default_rng(3).dirichlet(np.ones(3), 100)
    losses = np.array([_naive(task, row @ np.stack(plain))[0] for row in weights])
    error = 4 * losses.std() * (2 / 100) ** 0.5  # two means of 100 independent averages
    agree("landscape.simplex_losses", float(found.loss_mean), losses.mean(), relative=0.0, absolute=error)
    agree("landscape.simplex_losses", float(found.loss_max), float(found.loss.max()), relative=0.0)


@reference("landscape.scaling", "landscape.slice_along", by="loop over points and samples")
def test_scaled_and_moved_models():
    task = _task("cnn with group norm", dtype=torch.float64)
    theta, direction = _three(task)[:2]
    ds = landscape.surface(task, landscape.scaling(theta, points=4))
    agree("landscape.scaling", ds.loss, [_naive(task, t * theta)[0] for t in np.linspace(0.5, 1.2, 4)], relative=1e-10)
    ds = landscape.surface(task, landscape.slice_along(theta, direction, points=5))
    unit = direction / direction.norm()
    expected = [_naive(task, theta + t * unit)[0] for t in np.linspace(-0.5, 0.5, 5)]
    agree("landscape.slice_along", ds.loss, expected, relative=1e-10)


@reference("landscape.random_directions", "landscape.random_plane", by="norms filter by filter")
@pytest.mark.parametrize("kind", ["random_directions", "random_plane"])
def test_random_directions_have_the_norms_of_the_filters(kind):
    task = _task("cnn with group norm", dtype=torch.float64)
    sweep = getattr(landscape, kind)(task, task.theta, points=3)
    for axis in range(len(sweep.coords)):
        direction = torch.from_numpy(sweep.axes[axis]) @ sweep.basis.double()
        for name, part in task.layout.named(direction).items():
            own = task.layout.named(task.theta)[name]
            norms = [float(filter_.norm()) for filter_ in part] if part.ndim > 1 else [float(part.norm())]
            expected = [float(filter_.norm()) for filter_ in own] if own.ndim > 1 else [0.0]
            agree(f"landscape.{kind}", norms, expected, relative=1e-12)


@reference("landscape.principal_plane", by="dense covariance, numpy.linalg.eigh")
def test_principal_planes_are_those_of_the_covariance():
    torch.manual_seed(0)
    models = torch.randn(6, 9, dtype=torch.float64) * torch.linspace(3, 0.1, 9, dtype=torch.float64)
    sweep, plain = landscape.principal_plane(models), models.numpy()
    centred = plain - plain.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    shares = [values[-1] / values.sum(), values[-2] / values.sum()]
    found = [sweep.attrs["explained_alpha"], sweep.attrs["explained_beta"]]
    agree("landscape.principal_plane", found, shares, relative=1e-10)
    places = np.abs([mark.at for mark in sweep.marks[:6]])
    agree("landscape.principal_plane", places, np.abs(centred @ vectors[:, [-1, -2]]), relative=1e-9)


@reference("landscape.interpolated_surface", "landscape.sampled_surface", by="all points, float64 loop over samples")
def test_interpolated_surfaces_are_as_near_as_they_state():
    task = _task("mlp", samples=60, dtype=torch.float64)
    models = _three(task)
    sweep = landscape.plane(*models, points=15)
    w1, w2, w3 = _double(models)
    u = (w2 - w1) / np.linalg.norm(w2 - w1)
    v = (w3 - w1) - ((w3 - w1) @ u) * u
    v /= np.linalg.norm(v)
    exact = np.array(
        [[_naive(task, w1 + a * u + b * v)[0] for b in sweep.coords["beta"]] for a in sweep.coords["alpha"]]
    )
    ds = landscape.interpolated_surface(task, sweep)
    agree("landscape.interpolated_surface", ds.loss, exact, relative=0.0, absolute=float(ds.loss_interpolation_worst))
    ds = landscape.sampled_surface(task, sweep, samples=40)
    bound = float(ds.loss_interpolation_worst) + 4 * float(ds.loss_subset_error.max())
    agree("landscape.sampled_surface", ds.loss, exact, relative=0.0, absolute=bound)


def _hills(seed):
    """A surface with several minima, some cells without a value, and marks on its grid."""
    rng = np.random.default_rng(seed)
    values = rng.random((6, 5))
    values[2, 3] = np.nan
    ds = xr.Dataset(coords={"alpha": np.arange(6.0), "beta": np.arange(5.0), "mark": ["a", "b", "c"]})
    ds["loss"] = (("alpha", "beta"), values, {"long_name": "loss", "units": "nats"})
    ds["mark_alpha"], ds["mark_beta"] = ("mark", [0.0, 5.0, 1.0]), ("mark", [0.0, 4.0, 3.0])
    return ds


def _within(values, level, start):
    """Cells at or below a level that a walk over the sides of cells reaches."""
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    reached, waiting = set(), [start]
    while waiting:
        cell = waiting.pop()
        inside = all(0 <= at < count for at, count in zip(cell, values.shape, strict=True))
        if cell in reached or not inside or not values[cell] <= level:
            continue
        reached.add(cell)
        waiting += [tuple(np.add(cell, step)) for step in steps]
    return reached


@pytest.mark.parametrize("seed", range(5))
@reference("landscape.passes", "landscape.basin", by="flood fill at every level")
def test_passes_and_basins_are_those_of_a_flood(seed):
    ds = _hills(seed)
    values, cells = ds.loss.values, [(0, 0), (5, 4), (1, 3)]
    levels = np.sort(values[np.isfinite(values)])
    found = landscape.passes(ds)
    for i, j in itertools.permutations(range(3), 2):
        level = next(level for level in levels if cells[j] in _within(values, level, cells[i]))
        agree("landscape.passes", float(found.level[i, j]), level, relative=0.0)
        climb = level - max(values[cells[i]], values[cells[j]])
        agree("landscape.passes", float(found.climb[i, j]), climb, relative=1e-12, absolute=1e-15)
    level = float(found.level.max())
    component = np.zeros(values.shape)
    for cell in _within(values, level, cells[0]):
        component[cell] = 1
    agree("landscape.basin", landscape.basin(ds, level).component, component, relative=0.0)
    agree("landscape.basin", float(landscape.basin(ds, level).area), component.sum(), relative=1e-12)
