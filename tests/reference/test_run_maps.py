"""Maps of a run's models and clients: weights, classes, pools, outliers; float64 numpy, softmax written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tiny
import torch
from reference.linear_model import FULL, error, loss, models, numbers, outputs, part, sample_losses
from reference.registry import agree, reference
from reference.test_run_planes import compare, on_plane

import drift


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three rounds of three of four unequal clients, a linear model."""
    return tiny.trained(tmp_path_factory.mktemp("maps"), *FULL)


def class_errors(theta, samples):
    """Error of each of four classes, NaN for one without samples."""
    inputs, labels = numbers(samples)
    wrong = outputs(theta, inputs).argmax(1) != labels
    return [wrong[labels == c].mean() if (labels == c).any() else np.nan for c in range(4)]


def cells(ds, points=2):
    """Every second cell of a plane along each axis."""
    for i, j in itertools.product(range(0, ds.sizes["alpha"], points), range(0, ds.sizes["beta"], points)):
        yield ds.isel(alpha=i, beta=j)


@reference("drift.best_weights", by="every average on the grid, the lowest")
@pytest.mark.parametrize("per_round", [3, 4])
def test_the_best_weights_of_three_clients(tmp_path, per_round):
    run = tiny.trained(tmp_path, *FULL, f"clients.per_round={per_round}")
    held, cohorts = run.task.split("test"), [set(run.round(index).ids.tolist()) for index in range(3)]
    clients = sorted(cohorts[-1])[:3]
    ds = drift.best_weights(run, rounds=[0, 1, 2], clients=clients, step=0.1, extend=0.2)
    grid = [
        np.array([a, b, 10 - a - b]) / 10 for a, b in itertools.product(range(-2, 15), repeat=2) if 10 - a - b >= -2
    ]
    best = np.full((3, 3), np.nan)
    for index in range(3):
        record, own = run.round(index), ds.isel(round=index)
        if not set(clients) <= cohorts[index]:
            assert np.isnan(own.best_weight).all() and np.isnan(own.size_loss)
            continue
        place = [record.ids.tolist().index(client) for client in clients]
        thetas, sizes = models(record)[place], record.sizes.double().numpy()[place]
        losses = [loss(row @ thetas, held) for row in grid]
        best[index] = grid[int(np.argmin(losses))]
        agree("drift.best_weights", own.best_loss, min(losses), relative=1e-5)
        agree("drift.best_weights", own.size_weight, sizes / sizes.sum(), relative=1e-9)
        agree("drift.best_weights", own.size_loss, loss(sizes / sizes.sum() @ thetas, held), relative=1e-5)
    agree("drift.best_weights", ds.best_weight, best, relative=1e-9, absolute=1e-12)
    found = best[np.isfinite(best).all(1)]
    centred = found - found.mean(0)
    agree("drift.best_weights", ds["mean"], found.mean(0), relative=1e-9)
    if len(found) > 1:
        agree(
            "drift.best_weights", ds.covariance, centred.T @ centred / (len(found) - 1), relative=1e-9, absolute=1e-15
        )


@reference("drift.round_weights", by="aggregates by hand")
def test_aggregates_of_given_weights(run):
    record, held = run.round(-1), run.task.split("test")
    order = np.argsort(record.ids.numpy())
    thetas, sizes = models(record)[order], record.sizes.double().numpy()[order]
    given = np.array([3.0, -1.0, 2.0])
    ds = drift.round_weights(run, weights=given.tolist(), gamma=0.8)
    rows = np.array([given / given.sum(), sizes / sizes.sum(), np.full(3, 1 / 3)])
    agree("drift.round_weights", ds.weight, [*rows, np.full(3, np.nan)], relative=1e-9)
    agree("drift.round_weights", ds.gamma, [0.8, 1, 1, np.nan], relative=1e-9)
    named = [*(np.array([[0.8], [1], [1]]) * rows @ thetas), record.end]
    agree("drift.round_weights", ds.loss, [loss(theta, held) for theta in named], relative=1e-5)
    agree("drift.round_weights", ds.error, [error(theta, held) for theta in named], relative=1e-6)
    agree("drift.round_weights", ds.class_error, [class_errors(theta, held) for theta in named], relative=1e-6)


@reference("drift.models_plane", by="errors counted class by class")
def test_errors_of_classes_on_the_plane(run):
    ds, theta_at = drift.models_plane(run, points=5), on_plane(*models(run.round(-1)))
    compare("drift.models_plane", ds, run, theta_at)
    held = run.task.split("test")
    for cell in cells(ds):
        wanted = class_errors(theta_at(float(cell.alpha), float(cell.beta)), held)
        agree("drift.models_plane", cell.class_error, wanted, relative=1e-6)
    marks = [*models(run.round(-1)), models(run.round(-1)).mean(0)]
    agree("drift.models_plane", ds.mark_class_error[:4], [class_errors(theta, held) for theta in marks], relative=1e-6)


@reference("drift.overlay_plane", by="losses on each client's own data")
def test_losses_of_own_data_on_the_plane(run):
    record = run.round(-1)
    thetas, ids = models(record), record.ids.tolist()
    ds, theta_at = drift.overlay_plane(run, points=5), on_plane(*thetas)
    compare("drift.overlay_plane", ds, run, theta_at)
    agree("drift.overlay_plane", ds.client, ids, relative=0)
    agree("drift.overlay_plane", ds.client_samples, [len(run.parts[client]) for client in ids], relative=0)
    for cell in cells(ds):
        theta = theta_at(float(cell.alpha), float(cell.beta))
        wanted = [sample_losses(theta, *part(run, client)).mean() for client in ids]
        agree("drift.overlay_plane", cell.client_loss, wanted, relative=1e-5)
    wanted = [[sample_losses(theta, *part(run, client)).mean() for theta in thetas] for client in ids]
    agree("drift.overlay_plane", ds.mark_client_loss[:, :3], wanted, relative=1e-5)


@reference("drift.projected_plane", by="numpy.linalg.lstsq on the sides of the triangle")
def test_models_projected_on_a_plane(tmp_path):
    run = tiny.trained(tmp_path, *FULL, "clients.per_round=4")
    record, held = run.round(-1), run.task.split("test")
    thetas = models(record)
    chosen = [int(record.ids[row]) for row in (3, 0, 2)]
    theta_at = on_plane(*thetas[[3, 0, 2]])
    ds = drift.projected_plane(run, clients=chosen, points=5)
    compare("drift.projected_plane", ds, run, theta_at)
    own = np.stack([*thetas, record.start.double().numpy(), record.end.double().numpy()])
    sides = np.stack([thetas[0] - thetas[3], thetas[2] - thetas[3]], 1)
    feet = np.stack([thetas[3] + sides @ np.linalg.lstsq(sides, theta - thetas[3], rcond=None)[0] for theta in own])
    places = [theta_at(float(a), float(b)) for a, b in zip(ds.mark_alpha, ds.mark_beta, strict=True)]
    agree("drift.projected_plane", places, feet, relative=1e-5)
    away = np.linalg.norm(own - feet, axis=1)
    agree("drift.projected_plane", ds.distance, away, relative=1e-4)
    agree("drift.projected_plane", ds.in_plane, [1, 0, 1, 1, 0, 0], relative=0)
    agree("drift.projected_plane", ds.mark_loss, [loss(theta, held) for theta in own], relative=1e-5)
    agree("drift.projected_plane", ds.foot_loss, [loss(theta, held) for theta in feet], relative=1e-5)
    agree("drift.projected_plane", ds.foot_error, [error(theta, held) for theta in feet], relative=1e-6)


@reference("drift.pool_barriers", by="members from the recorded mean of a pool of two; line and averages by hand")
def test_barriers_in_a_pool(tmp_path):
    run = tiny.trained(tmp_path, *FULL, "method=lss", "method.candidates=1")
    record, held = run.round(-1), run.task.split("test")
    row = next(row for row, client in enumerate(record.ids.tolist()) if len(run.parts[client]))
    start = record.start.double().numpy()
    members = np.stack([start, 2 * models(record)[row] - start])
    ds = drift.pool_barriers(run, client=int(record.ids[row]), points=5, count=9)
    ts = np.linspace(0, 1, 5)
    line = np.array([loss((1 - t) * members[0] + t * members[1], held) for t in ts])
    above = line - (1 - ts) * line[0] - ts * line[-1]
    across = np.array([[0, 1], [1, 0]])
    agree("drift.pool_barriers", ds.barrier, across * above.max(), relative=1e-3, absolute=2e-6)
    agree("drift.pool_barriers", ds.midpoint, across * above[2], relative=1e-3, absolute=2e-6)
    agree("drift.pool_barriers", ds.distance, across * np.linalg.norm(members[0] - members[1]), relative=1e-5)
    agree("drift.pool_barriers", ds.mark_loss, line[[0, -1]], relative=1e-5)
    draws = torch.rand(9, 2, generator=torch.Generator().manual_seed(record.index), dtype=torch.float64).numpy()
    averages = np.log(draws) / np.log(draws).sum(1, keepdims=True) @ members
    losses, errors = ([measure(theta, held) for theta in averages] for measure in (loss, error))
    agree("drift.pool_barriers", ds.loss, losses, relative=1e-5)
    agree("drift.pool_barriers", ds.error, errors, relative=1e-6)
    agree("drift.pool_barriers", [ds.loss_mean, ds.loss_max], [np.mean(losses), max(losses)], relative=1e-5)


def robust(values):
    """Distance from the median over 1.4826 median distances."""
    away = values - np.nanmedian(values)
    return away / (1.4826 * np.nanmedian(np.abs(away)))


@reference("drift.client_deviations", by="updates and losses client by client, numpy.median")
@pytest.mark.parametrize("per_round", [3, 4])
def test_how_far_clients_are_apart(tmp_path, per_round):
    run = tiny.trained(tmp_path, *FULL, f"clients.per_round={per_round}", "clients.partition.concentration=1.0")
    ds, table = drift.client_deviations(run), {name: [[] for _ in range(4)] for name in ("cosine", "length", "weight")}
    for index in range(3):
        record = run.round(index)
        updates, sizes = models(record) - record.start.double().numpy(), record.sizes.double().numpy()
        norms = np.linalg.norm(updates, axis=1)
        for row, client in enumerate(record.ids.tolist()):
            others = np.delete(sizes, row) @ np.delete(updates, row, 0)
            table["cosine"][client].append(updates[row] @ others / norms[row] / np.linalg.norm(others))
            table["length"][client].append(norms[row] / np.median(norms))
            table["weight"][client].append(sizes[row] / sizes.sum())
    means = {name: np.array([np.mean(own) if own else np.nan for own in rows]) for name, rows in table.items()}
    for name, values in means.items():
        agree("drift.client_deviations", ds[name], values, relative=1e-4)
    agree("drift.client_deviations", ds["rounds"], [len(own) for own in table["cosine"]], relative=0)
    sizes = np.array([len(run.parts[client]) for client in range(4)])
    counts = np.array([np.bincount(part(run, client)[1], minlength=4) for client in range(4)])
    q, whole = counts / sizes[:, None], counts.sum(0) / sizes.sum()
    half = [sum(p[p > 0] @ np.log(p[p > 0] / ((row + whole) / 2)[p > 0]) for p in (row, whole)) / 2 for row in q]
    agree("drift.client_deviations", ds.divergence, half, relative=1e-9)
    excess, ratio = np.zeros((2, 4))
    for client in range(4):
        inputs, labels = (np.concatenate(rows) for rows in zip(*(part(run, k) for k in range(4)), strict=True))
        owner = np.repeat(np.arange(4), sizes)
        mean = np.mean([sample_losses(run.round(index).end, inputs, labels) for index in range(3)], 0)
        own = [c for c in range(4) if counts[client, c] and counts[:, c].sum() > counts[client, c]]
        share = counts[client, own] / counts[client, own].sum()
        pairs = [[mean[(labels == c) & ((owner == client) == side)].mean() for c in own] for side in (True, False)]
        excess[client] = share @ np.subtract(*pairs)
        ratio[client] = share @ pairs[0] / (share @ pairs[1])
    agree("drift.client_deviations", ds.excess, excess, relative=1e-5)
    agree("drift.client_deviations", ds.ratio, ratio, relative=1e-5)
    agree("drift.client_deviations", ds.cosine_z, robust(means["cosine"]), relative=1e-3)
    agree("drift.client_deviations", ds.length_z, robust(np.log(means["length"])), relative=1e-3)
    agree("drift.client_deviations", ds.excess_z, robust(excess * np.sqrt(sizes)), relative=1e-3)
