"""The updates of papers and of released code, written anew, against `like = "paper"` and `like = "code"`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from drift.config.random_keys import generator
from tests.drift.by_hand import (
    BODY,
    CLASSES,
    CLIENTS,
    LR,
    PROXY,
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
    mean,
    played,
    softmax,
    trained,
)


def cohort(w: Array) -> list[Array]:
    """Both clients after plain local training."""
    return [trained(w, part) for part in CLIENTS]


@pytest.mark.parametrize("like", ["paper", "code"])
def test_fedavg(like):
    found = played({"name": "fedavg", "like": like}).ends
    w = found[0]
    for end in found[1:]:
        w = mean(cohort(w))
        close(end, w)


@pytest.mark.parametrize("like", ["paper", "code"])
def test_ima(like):
    """Eight rounds, t_s = 6; the paper's mean takes effect one round before, as algorithm 1 prints it."""
    found = played({"name": "ima", "like": like, "start": 0.75, "late": "exp"}, rounds=8, lr_decay=0.99).ends
    w, window = found[0], []
    for t, end in enumerate(found[1:]):
        rate = LR * 0.99**t if t < 6 else LR * 0.99**6 * 0.97 ** (t - 6)
        window.append(mean([trained(w, part, lr=rate) for part in CLIENTS]))
        w = sum(window[-5:]) / 5 if t >= (5 if like == "paper" else 6) else window[-1]
        close(end, w)


@pytest.mark.parametrize(("like", "epochs"), [("paper", 100), ("code", 20)])
def test_fedlaw(like, epochs):
    """Adam on s and x at 0.005 (blobs are not CIFAR-10), halved every 20 epochs, from gamma = 1 and data sizes."""
    found = played({"name": "fedlaw", "like": like}).ends
    w = found[0]
    for end in found[1:]:
        models, s, x = cohort(w), np.zeros(1), np.log(P)
        shrink, shares = Adam(0.005, (0.5, 0.999)), Adam(0.005, (0.5, 0.999))
        for epoch in range(epochs):
            shrink.lr = shares.lr = 0.005 * 0.5 ** (epoch // 20)
            weights = np.exp(x) / np.exp(x).sum()
            middle = mean(models, weights)
            q = gradient(np.exp(s) * middle, PROXY)
            slope = np.exp(s) * weights * np.array([q @ (v - middle) for v in models])
            s, x = shrink.step(s, np.exp(s) * (q @ middle)), shares.step(x, slope)
        w = np.exp(s) * mean(models, np.exp(x) / np.exp(x).sum())
        close(end, w)


@pytest.mark.parametrize("like", ["paper", "code"])
def test_fedeve(like):
    """The code takes |D|^2 for |M - D|^2, and the spread around the unweighted mean."""
    run = played({"name": "fedeve", "like": like}, rounds=4)
    w, momentum, variance = run.ends[0], np.zeros(13), 0.0
    for end in run.ends[1:]:
        b = w - momentum
        deltas = [b - v for v in cohort(b)]
        observed = mean(deltas)
        centre = observed if like == "paper" else sum(deltas) / 2
        period = momentum - observed if like == "paper" else observed
        q, r = period @ period / (2 * 13), sum((d - centre) @ (d - centre) for d in deltas) / (4 * 13)
        gain = (variance + q) / (variance + q + r)
        momentum, variance = momentum + gain * (observed - momentum), (1 - gain) * (variance + q)
        w = w - momentum
        close(end, w)


def test_lss_of_the_paper():
    """Four candidates beside the frozen model, U_j / sum U mixtures, l2 distances with 3, their mean over the pool."""
    found = played({"name": "lss", "like": "paper"}, lr=0.05).ends
    w = found[0]
    for index, end in enumerate(found[1:]):
        means = []
        for client, part in enumerate(CLIENTS):
            dice, pool = generator(0, index, client, "pool"), [w]
            for _ in range(4):
                f = sum(pool) / len(pool)
                for _ in range(STEPS):
                    drawn = torch.empty(len(pool) + 1, dtype=torch.float64).uniform_(generator=dice).numpy()
                    alpha = drawn / drawn.sum()
                    slope = alpha[-1] * gradient(alpha @ np.stack([*pool, f]), part) + 3 * unit(f - w)
                    f = f - 0.05 * (slope - 3 * sum(unit(f - other) for other in pool) / (len(pool) + 1))
                pool.append(f)
            means.append(sum(pool) / len(pool))
        w = mean(means)
        close(end, w)


def unit(u: Array) -> Array:
    """Gradient of sqrt(|u|^2 + 1e-16)."""
    return u / np.sqrt(u @ u + 1e-16)


@pytest.mark.parametrize("like", ["paper", "code"])
def test_fedprox(like):
    found = played({"name": "fedprox", "like": like}).ends

    def slope(v: Array, part: Part, b: Array) -> Array:
        return gradient(v, part) + 0.001 * (v - b)

    w = found[0]
    for end in found[1:]:
        w = mean([descend(w, slope, part, w) for part in CLIENTS])
        close(end, w)


@pytest.mark.parametrize(("like", "beta"), [("paper", 0.9), ("code", 0.5)])
def test_fedfa(like, beta):
    """Minibatches of three; a class mean is over those that hold the class, in the code over all of them."""
    run = played({"name": "fedfa", "like": like}, rounds=3, batch=3)
    w, anchors = run.ends[0], run.servers[0].state["anchors"].numpy()
    for index, end in enumerate(run.ends[1:]):
        models, moved = [], []
        for client, part in enumerate(CLIENTS):
            dice, v, a, adam = (
                generator(0, index, client, "batches"),
                w.copy(),
                anchors.copy(),
                Adam(1e-3, (0.9, 0.999)),
            )
            for _ in range(STEPS):
                order, sums, present, batches = (
                    torch.randperm(len(part.y), generator=dice).numpy(),
                    0 * a,
                    np.zeros(3),
                    0,
                )
                for rows in np.split(order, range(3, len(order), 3)):
                    batch = Part(part.x[rows], part.y[rows])
                    counts, h = np.bincount(batch.y, minlength=CLASSES), features(v, batch.x)
                    for label in np.flatnonzero(counts):
                        sums[label] += h[batch.y == label].mean(0)
                    present, batches = present + (counts > 0), batches + 1
                    near = h - anchors[batch.y]
                    pull = 2 * 0.1 / CLASSES * near / counts[batch.y][:, None] if index > 0 else 0.0
                    v = v - LR * back(v, batch.x, errors(v, batch), pull)
                    if index > 3 * 0.25:
                        head = v[BODY:-CLASSES].reshape(CLASSES, 2)
                        e = (softmax(anchors @ head.T + v[-CLASSES:]) - np.eye(CLASSES)) / CLASSES
                        v[BODY:] = adam.step(v[BODY:], np.concatenate([(e.T @ anchors).ravel(), e.sum(0)]))
                for label in np.flatnonzero(present):
                    over = present[label] if like == "paper" else batches
                    a[label] = beta * a[label] + (1 - beta) * sums[label] / over
            models.append(v)
            moved.append(a)
        w, anchors = mean(models), P[0] * moved[0] + P[1] * moved[1]
        close(end, w)
        close(run.servers[index + 1].state["anchors"].numpy(), anchors)


@pytest.mark.parametrize("like", ["paper", "code"])
def test_feddyn(like):
    """The code: alpha 0.001, mu/2 |w - b| without the square, weighted means, h by the cohort's mean; clipped at 10."""
    run = played({"name": "feddyn", "like": like}, rounds=3)
    alpha = 0.01 if like == "paper" else 0.001

    def slope(v: Array, part: Part, dual: Array, b: Array) -> Array:
        away = v - b
        pull = away if like == "paper" else away / (2 * max(np.linalg.norm(away), 1e-12))
        found = gradient(v, part) - dual + alpha * pull
        assert np.linalg.norm(found) < 10
        return found

    w, h, own = run.ends[0], np.zeros(13), [np.zeros(13)] * 2
    weights = np.array([0.5, 0.5]) if like == "paper" else P
    for end in run.ends[1:]:
        models = [descend(w, slope, part, dual, w) for part, dual in zip(CLIENTS, own, strict=True)]
        own = [dual - alpha * (v - w) for dual, v in zip(own, models, strict=True)]
        h = h - alpha * (mean(models, weights) - w)
        w = mean(models, weights) - h / alpha
        close(end, w)


@pytest.mark.parametrize("like", ["paper", "code"])
def test_fedavgm(like):
    found = played({"name": "fedavgm", "like": like}, rounds=3).ends
    w, momentum = found[0], np.zeros(13)
    for end in found[1:]:
        momentum = 0.9 * momentum + (1.0 if like == "paper" else 0.1) * (w - mean(cohort(w)))
        w = w - momentum
        close(end, w)


@pytest.mark.parametrize(
    ("name", "like"),
    [(name, like) for name in ("fedadam", "fedyogi") for like in ("paper", "code")] + [("fedadagrad", "paper")],
)
def test_adaptive_servers(name, like):
    """V_0 = tau^2 in the paper, 0 in the code; Adagrad has beta1 = 0."""
    found = played({"name": name, "like": like}, rounds=3).ends
    w, m, v = found[0], np.zeros(13), np.full(13, 1e-6 if like == "paper" else 0.0)
    beta = 0.0 if name == "fedadagrad" else 0.9
    for end in found[1:]:
        d = mean(cohort(w)) - w
        m = beta * m + (1 - beta) * d
        v = {
            "fedadam": 0.99 * v + 0.01 * d**2,
            "fedyogi": v - 0.01 * d**2 * np.sign(v - d**2),
            "fedadagrad": v + d**2,
        }[name]
        w = w + 0.01 * m / (np.sqrt(v) + 1e-3)
        close(end, w)


def test_fedgma_of_fedima_s_code_is_fedavg():
    found, plain = played({"name": "fedgma", "like": "code"}).ends, played("fedavg").ends
    close(found[-1], plain[-1])


@pytest.mark.parametrize("name", ["server_ft", "feddf", "fedbe"])
def test_servers_with_a_proxy_set_in_fedlaw_s_code(name):
    """SGD at 0.08; FedBE has the mean, both clients and one drawn model as teachers, whose logits are averaged."""
    options: dict[str, Any] = {"name": name, "like": "code"}
    found = played(options).ends
    w = found[0]
    for index, end in enumerate(found[1:]):
        models, epochs = cohort(w), 2 if name == "server_ft" else 100
        theta = mean(models)
        if name == "server_ft":
            teacher = np.eye(CLASSES)[PROXY.y]
        elif name == "feddf":
            teacher = softmax(sum(logits(v, PROXY.x) for v in models) / 2)
        else:
            teacher = softmax(sum(logits(v, PROXY.x) for v in [theta, *models, _drawn(w, models, index)]) / 4)
        for _ in range(epochs):
            e = (softmax(logits(theta, PROXY.x)) - teacher) / len(teacher)
            theta = theta - 0.08 * back(theta, PROXY.x, e)
        w = theta
        close(end, w)


def _drawn(w: Array, models: list[Array], index: int) -> Array:
    found, dice = w.copy(), generator(0, index, "fedbe")
    for part in (slice(0, 4), slice(4, 10), slice(10, 13)):
        moves = np.stack([(v - w)[part] for v in models])
        sizes = np.linalg.norm(moves, axis=1)
        directions = moves / sizes[:, None]
        spread = np.sqrt(np.maximum((directions**2).mean(0) - directions.mean(0) ** 2, 1e-5))
        noise = torch.randn(part.stop - part.start, generator=dice, dtype=torch.float64).numpy()
        found[part] += sizes.mean() * (directions.mean(0) + 0.1 * spread * noise)
    return found
