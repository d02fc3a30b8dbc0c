"""Two clients, two rounds, every number written out: methods that change what clients do."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tests.drift.by_hand import (
    BODY,
    CLASSES,
    CLIENTS,
    HELD,
    LR,
    P_HELD,
    STEPS,
    Adam,
    Array,
    P,
    Part,
    back,
    close,
    descend,
    errors,
    features,
    gradient,
    logits,
    loss,
    mean,
    played,
    softmax,
    trained,
)


def test_fedavg():
    found = played({"name": "fedavg", "server_lr": 0.8}).ends
    w = found[0]
    for end in found[1:]:
        w = w + 0.8 * (mean([trained(w, part) for part in CLIENTS]) - w)
        close(end, w)


def test_fedprox():
    found = played({"name": "fedprox", "mu": 0.4}).ends

    def slope(v: Array, part: Part, b: Array) -> Array:
        return gradient(v, part) + 0.4 * (v - b)

    w = found[0]
    for end in found[1:]:
        w = mean([descend(w, slope, part, w) for part in CLIENTS])
        close(end, w)


def test_fedsam():
    found = played({"name": "fedsam", "rho": 0.3}).ends

    def slope(v: Array, part: Part) -> Array:
        g = gradient(v, part)
        return gradient(v + 0.3 * g / np.linalg.norm(g), part)

    w = found[0]
    for end in found[1:]:
        w = mean([descend(w, slope, part) for part in CLIENTS])
        close(end, w)


def test_fedasam():
    found = played({"name": "fedasam", "rho": 0.3, "eta": 0.2}).ends

    def slope(v: Array, part: Part) -> Array:
        g, t = gradient(v, part), np.abs(v) + 0.2
        t[-CLASSES:] = 1  # the bias
        return gradient(v + 0.3 * t**2 * g / np.linalg.norm(t * g), part)

    w = found[0]
    for end in found[1:]:
        w = mean([descend(w, slope, part) for part in CLIENTS])
        close(end, w)


def test_moon():
    """d cos(h, g) / dh = g / (|h| |g|) - cos(h, g) h / |h|^2; the loss falls in cos(h, h_g) - cos(h, h_p)."""
    found = played({"name": "moon", "mu": 2.0, "temperature": 0.7}).ends

    def cosine(h: Array, g: Array) -> tuple[Array, Array]:
        sizes = np.linalg.norm(h, axis=1) * np.linalg.norm(g, axis=1)
        cos = (h * g).sum(1) / sizes
        return cos, g / sizes[:, None] - (cos / (h * h).sum(1))[:, None] * h

    def slope(v: Array, part: Part, received: Array, before: Array) -> Array:
        h = features(v, part.x)
        (near, d_near), (far, d_far) = (cosine(h, features(model, part.x)) for model in (received, before))
        e_near, e_far = np.exp(near / 0.7), np.exp(far / 0.7)
        pull = 2.0 / 0.7 / len(h) * (e_far / (e_near + e_far))[:, None] * (d_far - d_near)
        return back(v, part.x, errors(v, part), pull)

    w, last = found[0], [found[0], found[0]]
    for end in found[1:]:
        last = [descend(w, slope, part, w, own) for part, own in zip(CLIENTS, last, strict=True)]
        w = mean(last)
        close(end, w)


def test_fedfa():
    """Round 0 without anchors; in round 1 features are pulled, and one Adam step of the head follows each batch.

    Both take the anchors as received; the copy to be sent moves.
    """
    options = {"weight": 0.6, "beta": 0.7, "calibration_lr": 0.05, "calibration_start": 0.0}
    run = played({"name": "fedfa", **options})
    w, anchors = run.ends[0], run.servers[0].state["anchors"].numpy()
    for index, end in enumerate(run.ends[1:]):
        models, moved = [], []
        for part in CLIENTS:
            v, a, adam = w.copy(), anchors.copy(), Adam(0.05, (0.9, 0.999))
            counts = np.bincount(part.y, minlength=CLASSES)
            for _ in range(STEPS):
                h = features(v, part.x)
                pull = 2 * 0.6 / CLASSES * (h - anchors[part.y]) / counts[part.y][:, None] if index > 0 else 0.0
                v = v - LR * back(v, part.x, errors(v, part), pull)
                if index > 0:
                    head = v[BODY:-CLASSES].reshape(CLASSES, 2)
                    e = (softmax(anchors @ head.T + v[-CLASSES:]) - np.eye(CLASSES)) / CLASSES
                    v[BODY:] = adam.step(v[BODY:], np.concatenate([(e.T @ anchors).ravel(), e.sum(0)]))
                for label in np.flatnonzero(counts):
                    a[label] = 0.7 * a[label] + 0.3 * h[part.y == label].mean(0)
            models.append(v)
            moved.append(a)
        w, anchors = mean(models), P[0] * moved[0] + P[1] * moved[1]
        close(end, w)
        close(run.servers[index + 1].state["anchors"].numpy(), anchors)


def test_scaffold():
    run = played("scaffold")

    def slope(v: Array, part: Part, own: Array, c: Array) -> Array:
        return gradient(v, part) - own + c

    w, c, own = run.ends[0], np.zeros(13), [np.zeros(13)] * 2
    for index, end in enumerate(run.ends[1:]):
        models = [descend(w, slope, part, mine, c) for part, mine in zip(CLIENTS, own, strict=True)]
        fresh = [mine - c + (w - v) / (STEPS * LR) for mine, v in zip(own, models, strict=True)]
        c = c + sum(new - old for new, old in zip(fresh, own, strict=True)) / 2
        w, own = (models[0] + models[1]) / 2, fresh
        close(end, w)
        close(run.servers[index + 1].state["control"].numpy(), c)


def test_feddyn():
    run = played({"name": "feddyn", "alpha": 0.5, "clip": None})

    def slope(v: Array, part: Part, dual: Array, b: Array) -> Array:
        return gradient(v, part) - dual + 0.5 * (v - b)

    w, h, own = run.ends[0], np.zeros(13), [np.zeros(13)] * 2
    for end in run.ends[1:]:
        models = [descend(w, slope, part, dual, w) for part, dual in zip(CLIENTS, own, strict=True)]
        own = [dual - 0.5 * (v - w) for dual, v in zip(own, models, strict=True)]
        h = h - 0.5 / 2 * (models[0] + models[1] - 2 * w)
        w = (models[0] + models[1]) / 2 - h / 0.5
        close(end, w)


def test_fedrep():
    """One step on the head alone, then two on the body alone, from the client's own head."""
    found = played("fedrep").ends

    def slope(v: Array, part: Part, moves: NDArray[np.bool_]) -> Array:
        return np.where(moves, gradient(v, part), 0)

    body = np.arange(13) < BODY
    w, heads = found[0], [found[0][BODY:]] * 2
    for end in found[1:]:
        models = []
        for part, head in zip(CLIENTS, heads, strict=True):
            v = np.concatenate([w[:BODY], head])
            v = descend(v, slope, part, ~body, steps=1)
            models.append(descend(v, slope, part, body))
        heads = [v[BODY:] for v in models]
        w = mean(models)
        close(end, w)


def test_fedbabu():
    found = played("fedbabu", weight_decay=0.1).ends

    def slope(v: Array, part: Part) -> Array:
        return (np.arange(13) < BODY) * (gradient(v, part) + 0.1 * v)

    w = found[0]
    for end in found[1:]:
        w = mean([descend(w, slope, part) for part in CLIENTS])
        close(end, w)
        np.testing.assert_array_equal(end[BODY:], found[0][BODY:])


def test_fedbn():
    """h = g (x - mean) / sqrt(var + eps) + c by the batch; g, c and the running statistics stay with each client."""
    model = nn.Sequential()
    model.add_module("body", nn.BatchNorm1d(2, dtype=torch.float64))
    model.add_module("head", nn.Linear(2, CLASSES, dtype=torch.float64))
    drawn = np.random.default_rng(1).normal(size=13)
    torch.nn.utils.vector_to_parameters(torch.from_numpy(drawn), model.parameters())
    run = played("fedbn", model=model)

    def slope(v: Array, part: Part) -> Array:
        z = (part.x - part.x.mean(0)) / np.sqrt(part.x.var(0) + 1e-5)
        h, head = v[:2] * z + v[2:4], v[4:10].reshape(CLASSES, 2)
        e = (softmax(h @ head.T + v[10:]) - np.eye(CLASSES)[part.y]) / len(part.y)
        return np.concatenate([(e @ head * z).sum(0), (e @ head).sum(0), (e.T @ h).ravel(), e.sum(0)])

    w, norms, statistics = run.ends[0], [run.ends[0][:4]] * 2, [np.array([0.0, 0, 1, 1])] * 2
    for end, buffers in zip(run.ends[1:], run.buffers[1:], strict=True):
        starts = [np.concatenate([norm, w[4:]]) for norm in norms]
        models = [descend(v, slope, part) for part, v in zip(CLIENTS, starts, strict=True)]
        for client, part in enumerate(CLIENTS):
            seen = np.concatenate([part.x.mean(0), part.x.var(0, ddof=1)])
            statistics[client] = 0.9**STEPS * statistics[client] + (1 - 0.9**STEPS) * seen
        norms = [v[:4] for v in models]
        w = mean(models)
        close(end, w)
        close(buffers, mean(statistics))


def test_fedfomo():
    """The one other model gets the share 1 where it beats the client's own last one on what the client holds out."""
    found = played("fedfomo", rounds=3, held=True).ends
    w, models, taken = found[0], [found[0]] * 2, []
    for index, end in enumerate(found[1:]):
        starts = list(models)
        for client in (0, 1) if index else ():
            own, other = models[client], models[1 - client]
            taken.append(loss(other, HELD[client]) < loss(own, HELD[client]))
            starts[client] = other if taken[-1] else own
        models = [trained(v, part) for v, part in zip(starts, CLIENTS, strict=True)]
        w = mean(models, P_HELD)
        close(end, w)
    assert True in taken
    assert False in taken


def test_the_oracle_s_gradient_is_that_of_its_loss():
    theta, part = played("fedavg", rounds=1).ends[1], CLIENTS[1]
    steps = 1e-6 * np.eye(13)
    slopes = [(loss(theta + step, part) - loss(theta - step, part)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient(theta, part), slopes, atol=1e-9)
    assert logits(theta, part.x).shape == (7, CLASSES)
