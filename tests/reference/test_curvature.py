"""Curvature against dense float64 Hessians and `numpy.linalg.eigvalsh`, on hostile spectra and models."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference.registry import agree, reference
from torch import Tensor, nn
from torch.func import functional_call

import landscape
from landscape.curvature.gauss_newton import gauss_newton_graph
from landscape.curvature.hessian_products import linearise
from landscape.curvature.krylov import WHICH
from landscape.model.samples import Samples
from landscape.model.task import Task

CE = nn.functional.cross_entropy


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def picked(values: np.ndarray, k: int, which: str) -> np.ndarray:
    """The k of rising values that are asked for, in their order."""
    if which == "magnitude":
        return np.array(sorted(values, key=abs, reverse=True)[:k])
    if which == "smallest":
        return np.sort(values)[:k]
    falling = np.sort(values)[::-1]
    return falling[:k] if which == "largest" else np.r_[falling[: k - k // 2], falling[len(falling) - k // 2 :]]


class Last(nn.Module):
    """The last output of an LSTM, as classes."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.head = nn.Linear(4, 12), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(nn.functional.scaled_dot_product_attention(*self.project(x).chunk(3, -1)).mean(1))


class Embedded(nn.Module):
    """An embedding with a row that no sample uses."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(7, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.embedding(x)).mean(1))


class Odd(nn.Module):
    """A layer used twice, one that is frozen, one whose units are dead, one without use."""

    def __init__(self) -> None:
        super().__init__()
        self.tied, self.frozen, self.dead = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 4)
        self.head, self.unused = nn.Linear(9, 3), nn.Linear(3, 2)
        self.frozen.requires_grad_(False)
        nn.init.constant_(self.dead.bias, -100)

    def forward(self, x: Tensor) -> Tensor:
        moved = torch.tanh(self.frozen(self.tied(torch.tanh(self.tied(x)))))
        return self.head(torch.cat([moved, torch.relu(self.dead(x))], 1))


def cnn(norm: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3), norm, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3))


MODELS = {
    "linear": (lambda: nn.Linear(5, 3), (5,)),
    "mlp": (lambda: nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)), (5,)),
    "batch norm": (lambda: cnn(nn.BatchNorm2d(4)), (2, 6, 6)),
    "group norm": (lambda: cnn(nn.GroupNorm(2, 4)), (2, 6, 6)),
    "lstm": (Last, (6, 4)),
    "attention": (Attending, (5, 4)),
    "embedding": (Embedded, (4,)),
    "tied, frozen, dead, unused": (Odd, (5,)),
}

SCALED = ("mlp",)
"""Model whose loss is also scaled, which does not depend on the kind of model."""


def posed(name: str, count: int = 21, scale: float = 1.0) -> Task:
    """A float32 task of `count` samples; its loss is `scale` times the cross-entropy."""
    build, shape = MODELS[name]
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = build().eval()
        for buffer, values in model.named_buffers():
            if values.is_floating_point():
                values.copy_(torch.rand_like(values) + (0.5 if "var" in buffer else 0.0))
    draw = generator(5)
    inputs = torch.randn(count, *shape, generator=draw)
    if name == "embedding":
        inputs = torch.randint(6, (count, *shape), generator=draw)
    loss = None if scale == 1 else lambda outputs, targets: scale * CE(outputs, targets, reduction="none")
    samples = Samples(inputs, torch.randint(3, (count,), generator=draw))
    return Task(model, {"train": samples}, **({} if loss is None else {"loss": loss}))


def wide(task: Task, samples: Samples | None = None):
    """The float64 parameters, and functions of them: outputs (n, C) and the mean loss, without the library."""
    samples = task.split("train") if samples is None else samples
    theta, places = task.theta.double(), task.layout.slices()
    shapes, module = dict(task.layout.parameters), task.model
    still = {name: value.double() for name, value in module.state_dict().items() if value.is_floating_point()}
    inputs = samples.inputs.double() if samples.inputs.is_floating_point() else samples.inputs

    def outputs(vector: Tensor) -> Tensor:
        state = {**still, **{name: vector[place].view(shapes[name]) for name, place in places.items()}}
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return functional_call(module, state, (inputs,))

    return theta, outputs, lambda vector: task.loss(outputs(vector), samples.targets).mean()


def dense(task: Task, samples: Samples | None = None) -> np.ndarray:
    theta, _, loss = wide(task, samples)
    matrix = torch.autograd.functional.hessian(loss, theta).numpy()
    return (matrix + matrix.T) / 2


def dense_gauss_newton(task: Task) -> np.ndarray:
    """Mean of J^T (diag p - p p^T) J over samples."""
    theta, outputs, _ = wide(task)
    jacobian = torch.autograd.functional.jacobian(outputs, theta).numpy()
    shares = outputs(theta).softmax(1).detach().numpy()
    middle = np.einsum("nc,cd->ncd", shares, np.eye(3)) - shares[:, :, None] * shares[:, None]
    return np.einsum("ncp,ncd,ndq->pq", jacobian, middle, jacobian) / len(shares)


@pytest.mark.parametrize("name", MODELS)
@reference("landscape.top_eigenvalues", "landscape.hessian", by="dense float64 Hessian, numpy.linalg.eigvalsh")
def test_eigenvalues(name):
    scales = ((1.0, 21), (1e6, 21), (1e-6, 1)) if name in SCALED else ((1.0, 21),)
    for scale, count in scales:
        task = posed(name, count, scale)
        true = np.linalg.eigvalsh(dense(task))
        for which in WHICH:
            ds = landscape.hessian(task, task.theta, k=3, which=which, block=8)
            assert ds.converged.all() and ds.eigenvalue.attrs["long_name"]
            wanted, found = picked(true, 3, which), ds.eigenvalue.values
            if which == "magnitude":
                wanted, found = np.abs(wanted), np.abs(found)
            norm = np.abs(true).max()
            assert np.abs(found - wanted).max() <= 4e-5 * norm
            agree("landscape.hessian", found / norm, wanted / norm, relative=1.0, absolute=4e-5)
            gap = np.abs(true[:, None] - ds.eigenvalue.values).min(0)
            assert (gap <= ds.residual.values + 3e-6 * norm).all()
        ours = landscape.top_eigenvalues(task, task.theta, 1).eigenvalue.values
        agree("landscape.top_eigenvalues", ours, picked(true, 1, "magnitude"), relative=1e-5)


def close() -> tuple[Task, np.ndarray]:
    """A task whose largest eigenvalues lie close together, and the eigenvalues of its dense Hessian."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, x, y = nn.Linear(64, 10), torch.randn(2000, 64), torch.randint(0, 10, (2000,))
    task = landscape.make_task(model, nn.CrossEntropyLoss(), (x, y))
    outputs = functional_call(model.double(), {}, (x.double(),)).softmax(1).detach().numpy()
    rows = np.c_[x.double().numpy(), np.ones(2000)]
    matrix = np.zeros((10, 65, 10, 65))
    for a in range(10):
        for b in range(10):
            part = outputs[:, a] * ((a == b) - outputs[:, b])
            matrix[a, :, b] = (rows * part[:, None]).T @ rows / 2000
    model.float()
    return task, np.linalg.eigvalsh(matrix.reshape(650, 650))


@reference("landscape.hessian", by="dense float64 Hessian, numpy.linalg.eigvalsh")
def test_close_eigenvalues_of_a_linear_model():
    task, true = close()
    for which in WHICH:
        for k in (1, 3):
            if which == "both" and k == 1:
                continue
            ds = landscape.hessian(task, task.theta, k=k, which=which)
            assert ds.converged.all()
            absolute = 3e-5 * true[-1] if which in ("smallest", "both") else 0.0
            wanted = picked(true, k, which)
            agree("landscape.hessian", ds.eigenvalue.values, wanted, relative=3e-6, absolute=absolute)
    spread = landscape.density(task, task.theta)
    assert spread.value.min() > -0.1 * true[-1] and spread.value.max() < 1.1 * true[-1]


@pytest.mark.parametrize("name", ["mlp", "group norm", "tied, frozen, dead, unused"])
@reference("landscape.layer_eigenvalues", by="blocks of the dense float64 Hessian, numpy.linalg.eigvalsh")
def test_blocks_of_layers(name):
    for scale in (1.0, 1e6, 1e-6) if name in SCALED else (1.0,):
        task = posed(name, scale=scale)
        matrix = dense(task)
        for which in ("magnitude", "smallest"):
            ds = landscape.layer_eigenvalues(task, task.theta, which=which, tolerance=1e-3)
            blocks = [np.linalg.eigvalsh(matrix[place, place]) for place in task.layout.slices().values()]
            wanted = [picked(true, 1, which).item() for true in blocks]
            assert ds.converged.all()
            norm = max(np.abs(true).max() for true in blocks)
            agree("landscape.layer_eigenvalues", ds.eigenvalue.values, wanted, relative=1e-5, absolute=2e-5 * norm)


@pytest.mark.parametrize("name", ["linear", "batch norm", pytest.param("lstm", marks=pytest.mark.slow)])
@reference("landscape.minibatch_sharpness", by="dense float64 Hessian of each batch, numpy.linalg.eigvalsh")
def test_batches(name):
    task = posed(name)
    ds = landscape.minibatch_sharpness(task, task.theta, batch=8, full=True, tolerance=1e-3, seed=1)
    pieces = torch.randperm(21, generator=generator(1)).split(8)
    samples = task.split("train")
    wanted = [picked(np.linalg.eigvalsh(dense(task, samples[piece])), 1, "magnitude").item() for piece in pieces]
    assert [len(piece) for piece in pieces] == [8, 8, 5] and ds.converged.all()
    agree("landscape.minibatch_sharpness", ds.eigenvalue.values, wanted, relative=1e-5)
    agree("landscape.minibatch_sharpness", ds["median"].item(), np.median(wanted), relative=1e-5)
    whole = picked(np.linalg.eigvalsh(dense(task)), 1, "magnitude").item()
    agree("landscape.minibatch_sharpness", ds.full.item(), whole, relative=1e-5)


@pytest.mark.parametrize("name", MODELS)
@reference("landscape.trace", by="trace and Frobenius norm of the dense float64 Hessian")
def test_traces(name):
    for scale in (1e6, 1e-6, 1.0) if name in SCALED else (1.0,):
        task = posed(name, scale=scale)
        matrix = dense(task)
        exact = landscape.trace(task, task.theta, products=task.layout.size)
        norm = np.linalg.norm(matrix)
        agree("landscape.trace", exact.trace.item(), np.trace(matrix), relative=1e-5, absolute=1e-6 * norm)
        agree("landscape.trace", exact.frobenius.item(), norm, relative=1e-5)
    found = landscape.trace(task, task.theta, products=30)
    off = abs(found.trace.item() - np.trace(matrix))
    assert off <= 6 * found.standard_error.item() + 1e-5 * norm
    assert abs(found.frobenius.item() - norm) <= 6 * found.frobenius_error.item() + 1e-5 * norm


@pytest.mark.parametrize("name", ["linear", "mlp", "embedding"])
@reference("landscape.density", by="quadrature v^T f(H) v by the dense float64 eigenvectors")
def test_densities(name):
    task = posed(name)
    values, vectors = np.linalg.eigh(dense(task))
    ds = landscape.density(task, task.theta, steps=len(values), probes=4, seed=3)
    random = 2 * torch.randint(2, (4, len(values)), generator=generator(3)).double().numpy() - 1
    weights = (random @ vectors) ** 2 / len(values)
    sigma, grid = ds.attrs["sigma"], ds.value.values
    heights = weights @ np.exp(-0.5 * ((grid - values[:, None]) / sigma) ** 2) / (sigma * (2 * np.pi) ** 0.5)
    agree("landscape.density", ds.density.values, heights.mean(0), relative=1e-3)
    agree("landscape.density", ds.density_error.values, heights.std(0, ddof=1) / 2, relative=1e-3)
    moments = weights @ np.c_[values, values**2]
    for name, column in (("mean", moments[:, 0]), ("mean_square", moments[:, 1])):
        agree("landscape.density", ds[name].item(), column.mean(), relative=1e-5)
        agree("landscape.density", ds[f"{name}_error"].item(), column.std(ddof=1) / 2, relative=1e-4)
    assert np.isnan(landscape.density(task, task.theta, probes=1).mean_error)


@pytest.mark.parametrize("name", MODELS)
def test_gauss_newton(name):
    task = posed(name)
    matrix, flat = dense_gauss_newton(task), task.flat(task.theta)
    product, _ = linearise(flat, task.theta, task.split("train"), block=8, graph=gauss_newton_graph)
    vector = torch.randn(task.layout.size, generator=generator(6))
    agree("landscape.top_eigenvalues", product(vector).numpy(), matrix @ vector.double().numpy(), relative=1e-5)
    ds = landscape.hessian(task, task.theta, k=3, curvature="gauss_newton", block=8)
    true = np.linalg.eigvalsh(matrix)
    agree("landscape.top_eigenvalues", ds.eigenvalue.values, true[::-1][:3], relative=1e-5)


@pytest.mark.parametrize("name", ["linear", "batch norm", "attention"])
@reference("landscape.ntk", by="Jacobians of every output in float64, one sample at a time")
def test_tangent_kernel(name):
    for count in (1, 7):
        task = posed(name, count)
        theta, outputs, _ = wide(task)
        jacobian = torch.autograd.functional.jacobian(outputs, theta).numpy()
        wanted = np.einsum("icp,jcp->ij", jacobian, jacobian) / 3
        found = landscape.ntk(task, task.theta, task.split("train"), memory=3 * theta.numel() * 8)
        agree("landscape.ntk", found.numpy(), wanted, relative=1e-5)


def test_a_search_that_is_cut_short_states_nothing():
    task = posed("mlp")
    ds = landscape.hessian(task, task.theta, k=5, max_products=5, vectors=True)
    lost = ~ds.converged.values
    assert lost.any() and np.isnan(ds.eigenvalue.values[lost]).all() and np.isnan(ds.eigenvector.values[lost]).all()
    assert np.isfinite(ds.residual).all()
    rest = landscape.minibatch_sharpness(task, task.theta, batch=8, max_products=1)
    assert np.isnan(rest["median"]) and np.isnan(rest.eigenvalue).all() and not rest.converged.any()
    assert np.isnan(landscape.layer_eigenvalues(task, task.theta, max_products=1).eigenvalue.sel(layer="0.weight"))
