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


def spread(run, index: int, samples=slice(None), split="train") -> tuple[np.ndarray, np.ndarray]:
    """The Hessian (36, 36) of the mean cross-entropy at the model after a round, and outputs' inputs with a 1."""
    theta, data = run.round(index).end.double().numpy(), run.task.split(split)[samples]
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


def values_at(theta, rows, labels):
    """Mean cross-entropy () of softmax regression, and its gradient (36,)."""
    outputs = rows @ np.c_[theta[:32].reshape(4, 8), theta[32:]].T
    shares = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    slopes = (shares - np.eye(4)[labels]).T @ rows / len(rows)
    return -np.log(shares[np.arange(len(rows)), labels]).mean(), np.r_[slopes[:, :8].ravel(), slopes[:, 8]]


@reference("drift.drift_curvature", by="Hessian of softmax regression written out, numpy.linalg.eigh")
@reference("drift.client_span", by="Hessian of softmax regression written out, numpy.linalg.svd")
@reference("drift.averaging_gap", by="losses and gradients of softmax regression written out")
def test_drift_in_the_coordinates_of_curvature(run):
    record, labels = run.round(2), run.task.split("test").targets.numpy()
    matrix, rows = spread(run, 2, split="test")
    p = (record.sizes / record.sizes.sum()).double().numpy()
    start, models = record.start.double().numpy(), record.clients.double().numpy()
    mean = p @ models  # FedAvg: the end, to rounding
    drifts, (loss, gradient) = models - mean, values_at(mean, rows, labels)
    values, vectors = np.linalg.eigh(matrix)
    top = vectors[:, ::-1][:, :3].T
    moves = {"client": (drifts, p), "step": ((record.end.double().numpy() - start)[None], np.ones(1))}
    ds = drift.drift_curvature(run, rounds=[2], k=3).isel(round=0)
    for kind, (displaced, weights) in moves.items():
        own = ds.sel(kind=kind)
        squares, inside = (displaced**2).sum(1), ((displaced @ top.T) ** 2).sum(1)
        cost = np.array([values_at(mean + one, rows, labels)[0] - loss for one in displaced])
        quadratic = displaced @ gradient + np.einsum("ki,ij,kj->k", displaced, matrix, displaced) / 2
        agree("drift.drift_curvature", own.cost, weights @ cost, relative=1e-3)
        agree("drift.drift_curvature", own.quadratic, weights @ quadratic, relative=1e-3)
        agree("drift.drift_curvature", own.share, weights @ (inside / squares), relative=1e-3)
        agree("drift.drift_curvature", own.sharp, weights @ inside**0.5, relative=1e-3)
        agree("drift.drift_curvature", own.broken, weights @ (abs(quadratic - cost) > 0.2 * abs(cost)), relative=1e-6)
        by_layer = [(displaced[:, part] ** 2).sum(1) / squares for part in (slice(32), slice(32, 36))]
        agree("drift.drift_curvature", own.layer_share, [weights @ one for one in by_layer], relative=1e-4)
    agree("drift.drift_curvature", ds.cut.sel(kind="client"), 1 - values[-4] / values[-3], relative=1e-3)

    span = drift.client_span(run, rounds=[2], k=3).isel(round=0)
    basis = np.linalg.svd(p[:, None] ** 0.5 * drifts)[2][:2]
    ritz = np.linalg.eigvalsh(basis @ matrix @ basis.T)[::-1]
    cosines = np.linalg.svd(basis @ top.T)[1]
    agree("drift.client_span", span.cosine, [*cosines, np.nan], relative=1e-3)
    agree("drift.client_span", span.ritz, [*ritz, np.nan], relative=1e-3)
    agree("drift.client_span", span.eigenvalue, values[::-1][:3], relative=1e-4)
    agree("drift.client_span", span.captured, (cosines**2).sum() / 3, relative=1e-3)
    agree("drift.client_span", span.sharpness, ritz.sum() / values[-2:].sum(), relative=1e-3)
    share = ((basis @ gradient) ** 2).sum() / (gradient**2).sum()
    agree("drift.client_span", span.gradient_share, share, relative=1e-3)
    assert span.directions == 2

    gap = drift.averaging_gap(run, rounds=[2], k=3).isel(round=0)
    losses = np.array([values_at(model, rows, labels)[0] for model in models])
    bends = np.array(
        [
            [one @ matrix @ one]
            + [(values_at(mean + t * one, rows, labels)[1] - gradient) @ one / t for t in (0.25, 0.5, 0.75, 1.0)]
            for one in drifts
        ]
    )
    wanted = {"gap": loss - p @ losses, "quadratic": -p @ bends[:, 0] / 2}
    wanted |= {"low": -p @ bends.max(1) / 2, "high": -p @ bends.min(1) / 2}
    squares = [(p @ one**2, p @ (one @ top.T) ** 2) for one in (drifts, models - start)]
    (whole, inside), (updates, updates_inside) = [(a.sum(), b.sum()) for a, b in squares]
    wanted |= {"removed": whole / updates, "removed_sharp": inside / updates_inside, "spread": whole}
    wanted |= {"removed_rest": (whole - inside) / (updates - updates_inside)}
    for name, value in wanted.items():
        agree("drift.averaging_gap", gap[name], value, relative=2e-3)
    assert gap.holds == 1
