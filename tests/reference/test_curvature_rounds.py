"""Curvature over rounds against the Hessian of a linear model written out in float64."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch
from reference.registry import agree, reference

import drift


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "keep.globals=all")


def spread(run, index: int, samples=slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """The Hessian (36, 36) of the mean cross-entropy at the model after a round, and outputs' inputs with a 1."""
    theta, data = run.round(index).end.double().numpy(), run.task.split("train")[samples]
    rows = np.c_[data.inputs.double().numpy(), np.ones(len(data))]
    weights = np.c_[theta[:32].reshape(4, 8), theta[32:]]
    shares = np.exp(rows @ weights.T)
    shares /= shares.sum(1, keepdims=True)
    middle = np.einsum("nc,cd->ncd", shares, np.eye(4)) - shares[:, :, None] * shares[:, None]
    matrix = np.einsum("ncd,ni,nj->cidj", middle, rows, rows) / len(rows)
    order = np.r_[[9 * c + i for c in range(4) for i in range(8)], [9 * c + 8 for c in range(4)]]
    return matrix.reshape(36, 36)[np.ix_(order, order)], rows


@reference("drift.eigen_rounds", by="Hessian of softmax regression written out, numpy.linalg.eigvalsh")
def test_eigenvalues_over_rounds(run):
    true = np.array([np.linalg.eigvalsh(spread(run, index)[0])[::-1] for index in (0, 2)])
    ds = drift.eigen_rounds(run, rounds=[0, 2], k=3)
    assert ds.converged.all()
    agree("drift.eigen_rounds", ds.eigenvalue.values, true[:, :3], relative=1e-5)
    agree("drift.eigen_rounds", ds.ratio.values, true[:, 0] / true[:, 2], relative=1e-5)
    low = drift.eigen_rounds(run, rounds=[0, 2], k=2, which="smallest")
    agree("drift.eigen_rounds", low.eigenvalue.values / true[0, 0], np.zeros((2, 2)), relative=0, absolute=1e-5)


@reference("drift.eigen_slice", by="losses along the eigenvector of numpy.linalg.eigh")
def test_a_slice_along_the_sharpest_direction(run):
    ds = drift.eigen_slice(run, round=1, points=5, radius=0.4)
    matrix, rows = spread(run, 1)
    values, vectors = np.linalg.eigh(matrix)
    labels, theta = run.task.split("train").targets.numpy(), run.round(1).end.double().numpy()
    vector = vectors[:, -1] * np.sign(vectors[np.abs(vectors[:, -1]).argmax(), -1])
    losses, errors = [], []
    for t in np.linspace(-0.4, 0.4, 5):
        moved = theta + t * vector
        outputs = rows @ np.c_[moved[:32].reshape(4, 8), moved[32:]].T
        losses.append((np.log(np.exp(outputs).sum(1)) - outputs[np.arange(len(rows)), labels]).mean())
        errors.append((outputs.argmax(1) != labels).mean())
    agree("drift.eigen_slice", ds.loss.values, losses, relative=1e-5)
    agree("drift.eigen_slice", ds.error.values, errors, relative=1e-6)
    agree("drift.eigen_slice", ds.eigenvalue.item(), values[-1], relative=1e-5)


@reference("drift.layer_rounds", by="blocks of the Hessian of softmax regression written out")
def test_layers_over_rounds(run):
    ds = drift.layer_rounds(run, rounds=[0, 2], tolerance=1e-3)
    blocks = [[matrix[:32, :32], matrix[32:, 32:]] for matrix in (spread(run, index)[0] for index in (0, 2))]
    wanted = [[np.linalg.eigvalsh(block)[-1] for block in row] for row in blocks]
    agree("drift.layer_rounds", ds.eigenvalue.values, wanted, relative=1e-5)


@reference("drift.trace_rounds", by="trace and norm of the Hessian of softmax regression written out")
def test_traces_over_rounds(run):
    ds = drift.trace_rounds(run, rounds=[0, 2])
    for prefix in ("", "gauss_newton_"):  # equal: the outputs are linear in the parameters
        wanted = [spread(run, index)[0] for index in (0, 2)]
        agree("drift.trace_rounds", ds[f"{prefix}trace"].values, [np.trace(part) for part in wanted], relative=1e-5)
        norms = [np.linalg.norm(part) for part in wanted]
        agree("drift.trace_rounds", ds[f"{prefix}frobenius"].values, norms, relative=1e-5)


@reference("drift.hessian_density", "drift.density_rounds", by="quadrature by the eigenvectors of numpy.linalg.eigh")
def test_densities_over_rounds(run):
    ds = drift.hessian_density(run, round=1, steps=36, probes=2, points=101)
    values, vectors = np.linalg.eigh(spread(run, 1)[0])
    random = 2 * torch.randint(2, (2, 36), generator=torch.Generator().manual_seed(1)).double().numpy() - 1
    weights = ((random @ vectors) ** 2).mean(0) / 36
    sigma, grid = ds.attrs["sigma"], ds.value.values
    shape = np.exp(-0.5 * ((grid[:, None] - values) / sigma) ** 2) @ weights / (sigma * (2 * np.pi) ** 0.5)
    agree("drift.hessian_density", ds.density.values, shape / np.trapezoid(shape, grid), relative=2e-3)
    agree("drift.hessian_density", ds["mean"].item(), weights @ values, relative=1e-5)
    several = drift.density_rounds(run, rounds=[1, 2], steps=36, probes=2, points=101)
    agree("drift.density_rounds", several.density[0].values, shape / np.trapezoid(shape, grid), relative=2e-3)


@reference("drift.sharpness_rounds", "drift.round_sharpness", by="Hessian of each batch written out")
def test_sharpness_over_rounds(run):
    ds = drift.sharpness_rounds(run, rounds=[0, 2], batch=7, batches=3)
    count = len(run.task.split("train"))
    pieces = torch.randperm(count, generator=torch.Generator().manual_seed(0)).split(7)[:3]
    wanted = np.array([[np.linalg.eigvalsh(spread(run, index, piece)[0])[-1] for piece in pieces] for index in (0, 2)])
    agree("drift.sharpness_rounds", ds.eigenvalue.values, wanted, relative=1e-4)
    agree("drift.sharpness_rounds", ds["median"].values, np.median(wanted, axis=1), relative=1e-4)
    whole = [np.linalg.eigvalsh(spread(run, index)[0])[-1] for index in (0, 2)]
    agree("drift.sharpness_rounds", ds.full.values, whole, relative=1e-4)
    single = drift.round_sharpness(run, round=2, batch=7, batches=3)
    agree("drift.round_sharpness", single.eigenvalue.values, wanted[1], relative=1e-4)
