"""Maps of models: every number again in float64 numpy, sample by sample, with equal, diverged and normalised models."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tiny
import torch
from reference.normalised_models import TASK, A, B, C, at, carried, loss
from reference.registry import agree, reference

import drift
import landscape
from drift.analyses.landscapes import model_map as module
from drift.analyses.landscapes.named_models import named_models


def excess(losses):
    """Losses on a line above their interpolation between its ends."""
    t = np.linspace(0, 1, len(losses))
    return losses - (1 - t) * losses[0] - t * losses[-1]


@reference("landscape.bounded_barriers", by="every point of every line with statistics of its own, sample by sample")
@pytest.mark.parametrize("margin", [0.02, 0.5])
def test_bounds_of_barriers_between_normalised_models(margin):
    models = [carried(module) for module in (A, B, C, A)]
    models.append(landscape.Model(models[0].theta * torch.nan, models[0].buffers))
    ds, modules = landscape.bounded_barriers(TASK, models, margin=margin), (A, B, C, A)
    agree("landscape.bounded_barriers", ds.mark_loss, [*map(loss, modules), np.nan], relative=1e-9)
    assert ds.isel(mark=4).barrier.isnull().all()
    for i, j in itertools.combinations(range(4), 2):
        pair, (a, b) = ds.isel(mark=i, mark_other=j), (models[i].theta, models[j].theta)
        agree("landscape.bounded_barriers", pair.distance, np.linalg.norm(a - b), relative=1e-9)
        if (points := int(pair.points)) == 0:
            assert (i, j) == (0, 3) and float(pair.barrier) == 0
            continue
        between = [loss(at(torch.lerp(a, b, float(t)), None)) for t in np.linspace(0, 1, 33)[1:-1]]
        e = excess(np.array([loss(modules[i]), *between, loss(modules[j])]))
        agree("landscape.bounded_barriers", pair.midpoint, e[16], relative=1e-9)
        seen = e[:: 32 // (points + 1)]
        agree("landscape.bounded_barriers", pair.barrier, max(seen.max(), 0), relative=1e-9)
        assert e.max() <= float(pair.barrier_high) + 1e-9
        assert bool(pair.joined) == (e.max() <= margin)


@reference("landscape.model_soup", by="the loss of every mean with statistics of its own")
def test_soups_of_normalised_models():
    modules = (A, B, C, A)
    models = [carried(module) for module in modules]

    def mean_loss(rows):
        return loss(at(torch.stack([models[row].theta for row in rows]).mean(0), None))

    soup, least = [], np.inf
    for row in sorted(range(4), key=lambda row: loss(modules[row])):
        value = mean_loss([*soup, row]) if soup else loss(modules[row])
        if value <= least:
            soup, least = [*soup, row], value
    agree("landscape.model_soup", landscape.model_soup(TASK, models), sorted(soup), relative=0)
    rest = list(range(4))
    while len(rest) > 1:
        values = [mean_loss([other for other in rest if other != row]) for row in rest]
        if len(rest) == 2:
            values = [loss(modules[rest[1]]), loss(modules[rest[0]])]
        if min(values) >= mean_loss(rest):
            break
        rest.pop(int(np.argmin(values)))
    agree("landscape.model_soup", landscape.model_soup(TASK, models, kind="pruned"), rest, relative=0)


def network(run, theta):
    """Weights and biases of an MLP, float64."""
    parts = list(run.task.layout.named(torch.as_tensor(theta)).values())
    return [part.double().numpy() for part in parts]


def layers(run, theta, inputs):
    """What the head receives, and the logits."""
    parts, hidden = network(run, theta), inputs.reshape(len(inputs), -1)
    for weight, bias in zip(parts[:-2:2], parts[1:-2:2], strict=True):
        hidden = np.maximum(hidden @ weight.T + bias, 0)
    return hidden, hidden @ parts[-2].T + parts[-1]


def dense_loss(run, theta, samples):
    logits, labels = layers(run, theta, samples.inputs.double().numpy())[1], samples.targets.numpy()
    top = logits.max(1)
    return float((np.log(np.exp(logits - top[:, None]).sum(1)) + top - logits[np.arange(len(labels)), labels]).mean())


def dense_cka(x, y):
    """From kernel matrices, centred by H = I - 11'/n."""
    centring = np.eye(len(x)) - 1 / len(x)
    k, other = centring @ x @ x.T @ centring, centring @ y @ y.T @ centring
    return (k * other).sum() / np.sqrt((k * k).sum() * (other * other).sum())


def joined_groups(run, thetas, distances, margin, samples):
    """Groups by average linkage, merged while no barrier of 33 points separates their means."""
    groups = {frozenset([row]): True for row in range(len(thetas))}
    while len(groups) > 1:
        first, second = min(
            itertools.combinations(groups, 2), key=lambda pair: distances[np.ix_(list(pair[0]), list(pair[1]))].mean()
        )
        ends = [thetas[list(rows)].mean(0) for rows in (first, second)]
        line = [dense_loss(run, ends[0] + t * (ends[1] - ends[0]), samples) for t in np.linspace(0, 1, 33)]
        one = groups.pop(first) & groups.pop(second) & bool(excess(np.array(line)).max() <= margin)
        if not one:
            yield from (rows for rows in (first, second) if rows not in BROKEN)
        groups[first | second] = one
        BROKEN.update([] if one else [first | second])
    yield from (rows for rows, one in groups.items() if one)


BROKEN: set[frozenset[int]] = set()


@reference("drift.model_map", by="losses, CKA from kernel matrices, average linkage and soups, written out in float64")
def test_a_map_of_two_seeds(tmp_path):
    options = ("keep.clients=all", "keep.globals=all", "task.model=mlp", "task.dataset_options.samples=120")
    run, other = (tiny.trained(tmp_path, *options, f"seed={seed}", "local.epochs=4") for seed in (1, 2))
    ds = drift.model_map(run, others=[other.name], rounds=[1, 2], margin=0.05)
    names = ds.mark.values.tolist()
    thetas = named_models(run, -1, names).models.double().numpy()
    choosing, judging = module.halves(run, "test", 1000)
    distances = np.linalg.norm(thetas[:, None] - thetas, axis=2)
    agree("drift.model_map", ds.distance, distances, relative=1e-5, absolute=1e-9)
    losses = [dense_loss(run, theta, choosing) for theta in thetas]
    agree("drift.model_map", ds.mark_loss, losses, relative=1e-4)
    features = [layers(run, theta, choosing.inputs.double().numpy())[0] for theta in thetas]
    wanted = [[dense_cka(x, y) for y in features] for x in features]
    agree("drift.model_map", ds.cka, wanted, relative=1e-4)
    values, vectors = np.linalg.eigh((thetas - thetas.mean(0)) @ (thetas - thetas.mean(0)).T)
    for rank, name in enumerate(("mark_alpha", "mark_beta"), 1):
        place = vectors[:, -rank] * np.sqrt(values[-rank])
        agree("drift.model_map", ds[name] * np.sign(place @ ds[name].values), place, relative=1e-3, absolute=1e-5)
    BROKEN.clear()
    groups = {frozenset(rows) for rows in joined_groups(run, thetas, distances, 0.05, choosing)}
    own = {frozenset(np.flatnonzero(ds.mark_basin.values == number).tolist()) for number in ds.basin.values}
    assert own == groups
    members = {name: [] for name in ds.candidate.values.tolist()[:4]}
    best = min(groups, key=lambda rows: dense_loss(run, thetas[list(rows)].mean(0), choosing))
    names_of = list(members)
    members[names_of[0]], members[names_of[3]] = sorted(best), [int(np.argmin(losses))]
    for name in (names_of[0], names_of[3]):
        mean = thetas[members[name]].mean(0)
        for variable, samples in (("candidate_loss", choosing), ("judged_loss", judging)):
            agree("drift.model_map", ds[variable].sel(candidate=name), dense_loss(run, mean, samples), relative=1e-4)
    chosen = thetas[ds.mark_chosen.values == 1].mean(0)
    judged = ds.judged_loss.sel(candidate=ds.attrs["chosen"])
    agree("drift.model_map", judged, dense_loss(run, chosen, judging), relative=1e-4)
    last = run.round(-1)
    mean = run.experiment.cohort_weights(last.sizes).numpy() @ last.clients.double().numpy()
    aggregate = ds.judged_loss.sel(candidate=f"aggregate of round {last.index}")
    agree("drift.model_map", aggregate, dense_loss(run, mean, judging), relative=1e-4)
