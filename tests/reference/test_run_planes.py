"""Planes, lines and measures of a run's models: recorded models combined in float64, softmax written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tiny
import torch
from reference.linear_model import FULL, error, loss, models, outputs
from reference.registry import agree, reference

import drift
import landscape


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three rounds of three of four unequal clients, a linear model."""
    return tiny.trained(tmp_path_factory.mktemp("planes"), *FULL)


def compare(name, ds, run, theta_at, points=2):
    """The loss and error of every cell (every second along each axis) against theta_at(coordinates)."""
    held, dims = run.task.split("test"), ds.loss.dims
    for place in itertools.product(*(range(0, ds.sizes[dim], points) for dim in dims)):
        cell = ds.isel(dict(zip(dims, place, strict=True)))
        if np.isnan(cell.loss):
            continue
        theta = theta_at(*(float(cell[dim]) for dim in dims))
        agree(name, cell.loss, loss(theta, held), relative=1e-5)
        agree(name, cell.error, error(theta, held), relative=1e-5, absolute=1.01 / len(held))


def on_plane(w1, w2, w3):
    u = (w2 - w1) / np.linalg.norm(w2 - w1)
    v = (w3 - w1) - ((w3 - w1) @ u) * u
    v /= np.linalg.norm(v)
    return lambda a, b: w1 + a * u + b * v


def ends(run):
    return [run.round(index).end.double().numpy() for index in range(3)]


@reference("drift.round_plane", "drift.models_plane", "drift.global_plane", by="Gram-Schmidt by hand, every model")
def test_planes_through_recorded_models(run):
    clients = on_plane(*models(run.round(-1)))
    compare("drift.round_plane", drift.round_plane(run, points=5), run, clients)
    compare("drift.models_plane", drift.models_plane(run, points=5), run, clients)
    compare("drift.global_plane", drift.global_plane(run, points=5), run, on_plane(*ends(run)))


@reference("drift.global_line", "drift.average_line", "drift.models_line", "drift.scale_curve", by="models by hand")
def test_lines_through_recorded_models(run):
    first, second, third = ends(run)
    compare("drift.global_line", drift.global_line(run, points=5), run, lambda t: (1 - t) * second + t * third)
    mean = (first + second + third) / 3
    compare("drift.average_line", drift.average_line(run, points=5), run, lambda t: (1 - t) * third + t * mean)
    start = run.round(-1).start.double().numpy()
    ds = drift.models_line(run, models=["start", "end"], points=5)
    compare("drift.models_line", ds, run, lambda t: (1 - t) * start + t * third)
    compare("drift.scale_curve", drift.scale_curve(run, points=5), run, lambda t: t * third)


@reference("drift.weight_simplex", by="averages by hand")
def test_the_triangle_of_weights(run):
    w1, w2, w3 = models(run.round(-1))
    compare("drift.weight_simplex", drift.weight_simplex(run), run, lambda a, b: a * w1 + b * w2 + (1 - a - b) * w3)


@reference("drift.random_plane", by="normal directions, their rows scaled to those of the model by hand")
def test_the_random_plane(run):
    end = ends(run)[-1]
    ds, bare = drift.random_plane(run, points=3, seed=4), []
    sweep = landscape.random_plane(run.task, run.round(-1).end, points=3, seed=4)
    for rows in sweep.axes @ sweep.basis.double().numpy():
        norms = np.linalg.norm(rows[:32].reshape(4, 8), axis=1) / np.linalg.norm(end[:32].reshape(4, 8), axis=1)
        np.testing.assert_allclose(norms, 1, rtol=1e-5)
        bare.append(rows)
    compare("drift.random_plane", ds, run, lambda a, b: end + a * bare[0] + b * bare[1], points=1)


@reference("drift.trajectory_plane", "drift.trajectory_points", by="numpy.linalg.svd of the global models")
def test_the_trajectory(run):
    path = np.stack(ends(run))
    ds, places = drift.trajectory_plane(run, points=5), drift.trajectory_points(run)
    mark = np.stack([ds.mark_alpha, ds.mark_beta], 1)
    centred = path - path.mean(0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    shares = sizes**2 / (sizes**2).sum()
    agree("drift.trajectory_plane", [ds.explained_alpha, ds.explained_beta], shares[:2], relative=1e-5)
    far = centred - centred[-1]
    agree("drift.trajectory_plane", np.abs(mark - mark[-1]), np.abs(far @ axes[:2].T), relative=1e-4)
    agree("drift.trajectory_points", places.mark_alpha, ds.mark_alpha, relative=1e-6)
    agree("drift.trajectory_points", places.mark_beta, ds.mark_beta, relative=1e-6)
    losses = [loss(theta, run.task.split("test")) for theta in path]
    agree("drift.trajectory_points", places.mark_loss, losses, relative=1e-5)
    agree("drift.trajectory_plane", ds.mark_loss, losses, relative=1e-5)
    basis = np.linalg.lstsq(mark - mark.mean(0), centred, rcond=None)[0]
    compare("drift.trajectory_plane", ds, run, lambda a, b: path.mean(0) + (np.array([a, b]) - mark.mean(0)) @ basis)


@reference("drift.client_barriers", "drift.mode_curve", by="loop over pairs and points")
def test_barriers_between_clients(run):
    held = run.task.split("test")
    thetas = [*models(run.round(-1)), ends(run)[-1]]
    ds, heights = drift.client_barriers(run, points=5), np.zeros((4, 4))
    for i, j in itertools.permutations(range(4), 2):
        line = [loss((1 - t) * thetas[i] + t * thetas[j], held) for t in np.linspace(0, 1, 5)]
        heights[i, j] = max(
            0, *(v - (1 - t) * line[0] - t * line[-1] for v, t in zip(line, np.linspace(0, 1, 5), strict=True))
        )
    agree("drift.client_barriers", ds.barrier, heights, relative=1e-3, absolute=2e-6)
    agree("drift.client_barriers", ds.mark_loss, [loss(theta, held) for theta in thetas], relative=1e-5)
    ds = drift.mode_curve(run, points=5, steps=0)  # untrained, the curve is the line
    line = [loss((1 - t) * thetas[0] + t * thetas[1], held) for t in np.linspace(0, 1, 5)]
    agree("drift.mode_curve", ds.loss, line, relative=1e-5)
    agree("drift.mode_curve", ds.straight_loss, line, relative=1e-5)


@reference("drift.similarity_rounds", by="linear CKA of centred outputs, pair by pair")
def test_similarity_of_clients(run):
    inputs = run.task.split("test").inputs.double().numpy()
    for index, found in enumerate(drift.similarity_rounds(run).cka.values):
        held = [z - z.mean(0) for z in (outputs(theta, inputs) for theta in models(run.round(index)))]
        pairs = [
            np.linalg.norm(x.T @ y) ** 2 / np.linalg.norm(x.T @ x) / np.linalg.norm(y.T @ y)
            for x, y in itertools.combinations(held, 2)
        ]
        agree("drift.similarity_rounds", found, np.mean(pairs), relative=1e-4)


@reference("drift.weight_histograms", "drift.recorded_metrics", by="numpy.histogram; losses written out")
def test_histograms_and_recorded_numbers(run):
    paths, held = ends(run), run.task.split("test")
    ds = drift.weight_histograms(run, rounds=[0, 2], bins=11)
    reach = max(np.abs(paths[0]).max(), np.abs(paths[2]).max())
    for row, index in enumerate((0, 2)):
        count = np.histogram(paths[index], bins=11, range=(-reach, reach))[0]
        agree("drift.weight_histograms", ds["count"][row], count, relative=0.0)
        agree("drift.weight_histograms", ds.norm[row], np.linalg.norm(paths[index]), relative=1e-6)
    ds = drift.recorded_metrics(run)
    agree("drift.recorded_metrics", ds.loss, [loss(theta, held) for theta in paths], relative=1e-5)
    agree("drift.recorded_metrics", ds.error, [error(theta, held) for theta in paths], relative=1e-5)
    agree("drift.recorded_metrics", ds.accuracy, [1 - error(theta, held) for theta in paths], relative=1e-5)


@reference("drift.ball_sharpness", "drift.noise_robustness", by="outputs written out, the same noise in numpy")
def test_measures_of_the_global_model(run):
    end, train, test = ends(run)[-1], run.task.split("train"), run.task.split("test")
    ds = drift.ball_sharpness(run, radii=(0.1, 0.2), steps=2, directions=2)
    agree("drift.ball_sharpness", ds.loss, [loss(end, train)] * 2, relative=1e-5)
    rows = 1e-5 * np.eye(36)
    slope = np.array([loss(end + row, train) - loss(end - row, train) for row in rows])
    rises = [loss(end + radius * slope / np.linalg.norm(slope), train) - loss(end, train) for radius in (0.1, 0.2)]
    agree("drift.ball_sharpness", ds.one_step, rises, relative=1e-3)
    (mean,), (std,) = run.dataset.normalisation
    ds, inputs = drift.noise_robustness(run, levels=(0.2,), draws=1), test.inputs
    noise = torch.rand(inputs.shape, generator=torch.Generator().manual_seed(0), dtype=inputs.dtype).double().numpy()
    seen = np.clip(inputs.double().numpy() * std + mean + 0.2 * (2 * noise - 1), 0, 1)
    right = outputs(end, (seen - mean) / std).argmax(1) == test.targets.numpy()
    agree("drift.noise_robustness", ds.accuracy, 1 - error(end, test), relative=1e-5)
    agree("drift.noise_robustness", ds.noisy, [[right.mean()]], relative=0.0, absolute=1.01 / len(test))


@reference("drift.three_accuracies", "drift.error_averaged", by="means and counts, client by client")
def test_accuracies_of_clients_and_of_their_means(run):
    record, held = run.round(-1), run.task.split("test")
    thetas, ids = models(record), record.ids.tolist()
    ds, matrix = drift.three_accuracies(run, criterion="train"), np.zeros((3, 3))
    for (i, theta), (j, client) in itertools.product(enumerate(thetas), enumerate(ids)):
        matrix[i, j] = 1 - error(theta, run.client_samples(client, record.index))
    agree("drift.three_accuracies", ds.ood, matrix, relative=1e-6)
    agree("drift.three_accuracies", ds.local, [1 - error(theta, held) for theta in thetas], relative=1e-6)
    agree("drift.three_accuracies", ds.global_accuracy, 1 - error(record.end, held), relative=1e-6)
    others = np.where(np.eye(3, dtype=bool), np.inf, matrix)
    agree("drift.three_accuracies", ds.worst_ood, others.min(1).mean(), relative=1e-6)
    agree("drift.three_accuracies", ds.ood_min, others.min(), relative=1e-6)
    ds, sizes = drift.error_averaged(run, rounds=[2]).isel(round=0), record.sizes.double().numpy()
    for count in (1, 2, 3):
        means = [
            sizes[list(rows)] @ thetas[list(rows)] / sizes[list(rows)].sum()
            for rows in itertools.combinations(range(3), count)
        ]
        found = ds.loss.sel(models=count).values
        wanted = sorted(loss(theta, held) for theta in means)
        agree("drift.error_averaged", sorted(found[np.isfinite(found)]), wanted, relative=1e-5)


@reference("drift.aligned_barrier", by="all orders of four hidden units, losses written out")
def test_the_barrier_of_aligned_clients(tmp_path):
    run = tiny.trained(tmp_path, *FULL, "task.model=mlp", "task.model_options.hidden=[4]")
    a, b = models(run.round(-1))[:2]
    inputs, labels = (part.numpy() for part in (run.task.split("test").inputs.double(), run.task.split("test").targets))

    def parts(theta):
        return theta[:32].reshape(4, 8), theta[32:36], theta[36:52].reshape(4, 4), theta[52:]

    def mean_loss(theta):
        weight, bias, head, last = parts(theta)
        z = np.maximum(inputs @ weight.T + bias, 0) @ head.T + last
        z = z - z.max(1, keepdims=True)
        return float((np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), labels]).mean())

    weight, bias, head, last = parts(b)
    orders = [list(order) for order in itertools.permutations(range(4))]
    moved = [np.concatenate([weight[o].ravel(), bias[o], head[:, o].ravel(), last]) for o in orders]
    nearest, ds = min(moved, key=lambda theta: np.linalg.norm(theta - a)), drift.aligned_barrier(run, points=5)
    for prefix, other in (("", b), ("aligned_", nearest)):
        line = [mean_loss((1 - t) * a + t * other) for t in np.linspace(0, 1, 5)]
        agree("drift.aligned_barrier", ds[f"{prefix}loss"], line, relative=1e-5)
        agree("drift.aligned_barrier", ds[f"{prefix}distance"], np.linalg.norm(a - other), relative=1e-5)
