"""Two clients, two rounds, every number written out: methods that change what the server does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.config.random_keys import generator
from tests.drift.by_hand import (
    CLASSES,
    CLIENTS,
    LR,
    PROXY,
    Adam,
    Array,
    P,
    Part,
    back,
    close,
    errors,
    gradient,
    logits,
    mean,
    played,
    softmax,
    trained,
)

TENSORS = (slice(0, 4), slice(4, 10), slice(10, 13))
"""Where the tensors of theta lie."""


def clients(w: Array) -> list[Array]:
    """Both clients' models after plain local training from w."""
    return [trained(w, part) for part in CLIENTS]


def test_ima():
    """v_0, then the mean of v_0 and v_1, then that of v_1 and v_2; the rate falls by 0.9 a round from round 1 on."""
    found = played({"name": "ima", "window": 2, "start": 1, "late_factor": 0.9}, rounds=3).ends
    w, window = found[0], []
    for index, end in enumerate(found[1:]):
        window.append(mean([trained(w, part, lr=LR * 0.9 ** max(0, index - 1)) for part in CLIENTS]))
        w = window[0] if index == 0 else (window[-1] + window[-2]) / 2
        close(end, w)


def test_ima_over_fedprox():
    found = played({"name": "ima", "base": {"name": "fedprox", "mu": 0.4}, "window": 2, "start": 1, "late": "na"})
    plain = played({"name": "fedprox", "mu": 0.4}, rounds=1).ends[1]
    close(found.ends[1], plain)
    second = []
    for part in CLIENTS:
        v = plain
        for _ in range(2):
            v = v - LR * (gradient(v, part) + 0.4 * (v - plain))
        second.append(v)
    close(found.ends[2], (plain + mean(second)) / 2)


def test_fedavgm():
    found = played({"name": "fedavgm", "beta": 0.8, "server_lr": 1.5}).ends
    w, momentum = found[0], np.zeros(13)
    for end in found[1:]:
        momentum = 0.8 * momentum + 0.2 * (w - mean(clients(w)))
        w = w - 1.5 * momentum
        close(end, w)


def adaptive(name: str, variance, **options: float) -> None:
    """Rounds of an adaptive server: M' = 0.7 M + 0.3 d, w' = w + 0.1 M' / (sqrt(V') + 0.01), V_0 = 0.02."""
    settings = {"server_lr": 0.1, "beta1": 0.7, "tau": 0.01, "initial_variance": 0.02, **options}
    found = played({"name": name, **settings}).ends
    w, m, v = found[0], np.zeros(13), np.full(13, 0.02)
    for end in found[1:]:
        d = mean(clients(w)) - w
        m, v = 0.7 * m + 0.3 * d, variance(v, d)
        w = w + 0.1 * m / (np.sqrt(v) + 0.01)
        close(end, w)


def test_fedadam():
    adaptive("fedadam", lambda v, d: 0.6 * v + 0.4 * d**2, beta2=0.6)


def test_fedyogi():
    adaptive("fedyogi", lambda v, d: v - 0.4 * d**2 * np.sign(v - d**2), beta2=0.6)


def test_fedadagrad():
    adaptive("fedadagrad", lambda v, d: v + d**2)


def test_fednova():
    """Batches of two: 2 and 8 steps with momentum 0.5; the order of the samples is the client's own draw."""
    found = played("fednova", batch=2, momentum=0.5).ends
    w = found[0]
    for index, end in enumerate(found[1:]):
        deltas, lengths = [], []
        for client, part in enumerate(CLIENTS):
            dice, v, buffer, steps = generator(0, index, client, "batches"), w, np.zeros(13), 0
            for _ in range(2):
                order = torch.randperm(len(part.y), generator=dice).numpy()
                for rows in np.split(order, range(2, len(order), 2)):
                    buffer = 0.5 * buffer + gradient(v, Part(part.x[rows], part.y[rows]))
                    v, steps = v - LR * buffer, steps + 1
            deltas.append(w - v)
            lengths.append((steps - 0.5 * (1 - 0.5**steps) / 0.5) / 0.5)
        a = np.array(lengths)
        assert a[0] != a[1]
        w = w - (P @ a) * mean([d / length for d, length in zip(deltas, a, strict=True)])
        close(end, w)


@pytest.mark.parametrize("mask", ["soft", "and"])
def test_fedgma(mask):
    """Two clients agree on a sign, A = 1, or not, A = 0; one that does not move an entry leaves A = 1/2."""
    found = played({"name": "fedgma", "threshold": 0.8, "mask": mask, "server_lr": 0.9}).ends
    w = found[0]
    for end in found[1:]:
        deltas = [w - v for v in clients(w)]
        agreement = np.abs(np.sign(deltas[0]) + np.sign(deltas[1])) / 2
        assert 0 < agreement.sum() < 13
        w = w - 0.9 * np.where(agreement >= 0.8, 1, agreement if mask == "soft" else 0) * mean(deltas)
        close(end, w)


def test_shrink():
    found = played({"name": "shrink", "gamma": 0.9}).ends
    w = found[0]
    for end in found[1:]:
        w = 0.9 * mean(clients(w))
        close(end, w)


def test_fedeve():
    run = played({"name": "fedeve", "server_lr": 0.8})
    w, momentum, variance = run.ends[0], np.zeros(13), 0.0
    for end, server in zip(run.ends[1:], run.servers[1:], strict=True):
        b = w - 0.8 * momentum
        deltas = [b - v for v in clients(b)]
        observed = mean(deltas)
        q = np.sum((momentum - observed) ** 2) / (2 * 13)
        r = sum(np.sum((d - observed) ** 2) for d in deltas) / (4 * 13)
        gain = (variance + q) / (variance + q + r)
        momentum, variance = momentum + gain * (observed - momentum), (1 - gain) * (variance + q)
        w = w - 0.8 * momentum
        close(end, w)
        close(server.state["variance"].numpy(), variance)


@pytest.mark.parametrize("variant", ["joint", "gws", "attentive"])
def test_fedlaw(variant):
    """Three Adam steps on s and x, from dL/ds = gamma <q, wbar> and dL/dx_i = gamma lambda_i <q, w_i - wbar>."""
    options = {"variant": variant, "server_epochs": 3, "server_lr": 0.1, "server_betas": (0.5, 0.9)}
    found = played({"name": "fedlaw", **options}).ends
    w = found[0]
    for end in found[1:]:
        models, s, x = clients(w), np.zeros(1), np.log(P)
        shrink, shares = Adam(0.1, (0.5, 0.9)), Adam(0.1, (0.5, 0.9))
        for _ in range(3):
            weights = np.exp(x) / np.exp(x).sum()
            middle = mean(models, weights)
            q = gradient(np.exp(s) * middle, PROXY)
            slope_x = np.exp(s) * weights * np.array([q @ (v - middle) for v in models])
            s = s if variant == "attentive" else shrink.step(s, np.exp(s) * (q @ middle))
            x = x if variant == "gws" else shares.step(x, slope_x)
        w = np.exp(s) * mean(models, np.exp(x) / np.exp(x).sum())
        close(end, w)


def taught(theta: Array, teacher: Array, epochs: int = 3) -> Array:
    """The model after Adam steps on KL(teacher || student) over the proxy set; dL/dlogits = (student - teacher) / n."""
    adam = Adam(0.05, (0.5, 0.999))
    for _ in range(epochs):
        e = (softmax(logits(theta, PROXY.x)) - teacher) / len(teacher)
        theta = adam.step(theta, back(theta, PROXY.x, e))
    return theta


SERVER = {"server_epochs": 3, "server_lr": 0.05, "server_betas": (0.5, 0.999)}


def test_server_ft():
    found = played({"name": "server_ft", **SERVER}).ends
    w = found[0]
    for end in found[1:]:
        w = taught(mean(clients(w)), np.eye(CLASSES)[PROXY.y])
        close(end, w)
    assert errors(w, PROXY).shape == (5, CLASSES)


def test_feddf():
    found = played({"name": "feddf", **SERVER}).ends
    w = found[0]
    for end in found[1:]:
        models = clients(w)
        w = taught(mean(models), softmax((logits(models[0], PROXY.x) + logits(models[1], PROXY.x)) / 2))
        close(end, w)


def test_fedbe():
    """Four teachers: the mean, both clients, and one model drawn tensor by tensor; the noise is the server's draw."""
    found = played({"name": "fedbe", "spread": 0.5, **SERVER}).ends
    w = found[0]
    for index, end in enumerate(found[1:]):
        models, drawn, dice = clients(w), w.copy(), generator(0, index, "fedbe")
        for part in TENSORS:
            moves = np.stack([(v - w)[part] for v in models])
            sizes = np.linalg.norm(moves, axis=1)
            directions = moves / sizes[:, None]
            spread = np.sqrt(np.maximum((directions**2).mean(0) - directions.mean(0) ** 2, 1e-5))
            noise = torch.randn(part.stop - part.start, generator=dice, dtype=torch.float64).numpy()
            drawn[part] += sizes.mean() * (directions.mean(0) + 0.5 * spread * noise)
        teachers = [mean(models), *models, drawn]
        w = taught(mean(models), softmax(sum(logits(v, PROXY.x) for v in teachers) / 4))
        close(end, w)
