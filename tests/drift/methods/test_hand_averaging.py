"""Two clients, two rounds, every number written out: methods that average models on the clients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.config.random_keys import generator, rng
from tests.drift.by_hand import CLIENTS, HELD, LR, P_HELD, Array, Part, close, gradient, loss, mean, played, wrong


def iterates(w: Array, part: Part, steps: int, *, lr: float = LR, momentum: float = 0.0, decay: float = 0.0):
    """Models after 1, 2, .. steps of SGD from w."""
    v, buffer, found = w, np.zeros_like(w), []
    for _ in range(steps):
        buffer = momentum * buffer + gradient(v, part) + decay * v
        v = v - lr * buffer
        found.append(v)
    return found


def test_swa():
    """Three cycles of two steps, momentum carried on; the mean of the models after steps 2, 4 and 6."""
    found = played({"name": "swa", "cycles": 3}, momentum=0.5).ends
    w = found[0]
    for end in found[1:]:
        w = mean([sum(iterates(w, part, 6, momentum=0.5)[1::2]) / 3 for part in CLIENTS])
        close(end, w)


def test_swad():
    """Eight epochs of one step; the valley is read off the validation losses by the words of papers.md 2.5."""
    options = {"cycles": 4, "patience_start": 3, "patience_end": 2, "tolerance": 0.99}
    found = played({"name": "swad", **options}, held=True, lr=1.0, momentum=0.5).ends
    w, valleys = found[0], []
    for end in found[1:]:
        models = []
        for part, held in zip(CLIENTS, HELD, strict=True):
            path = iterates(w, part, 8, lr=1.0, momentum=0.5)
            losses = np.array([loss(v, held) for v in path])
            starts = [i for i in range(6) if losses[i] == losses[i : i + 3].min()]
            if not starts:
                models.append(path[-1])
                valleys.append(None)
                continue
            begin, high = starts[0], 0.99 * losses[starts[0] : starts[0] + 3].mean()
            ends = [i for i in range(begin + 3, 8) if losses[i - 1 : i + 1].min() > high]
            last = ends[0] - 2 if ends else 7
            models.append(sum(path[begin : last + 1]) / (last + 1 - begin))
            valleys.append((begin, last))
        w = mean(models, P_HELD)
        close(end, w)
    assert any(valley is not None and valley[0] > 0 and valley[1] < 7 for valley in valleys)


RATES, DECAYS = (0.2, 0.9, 1.5), (0.0, 0.3)


def candidates(w: Array, index: int, client: int) -> list[tuple[Array, float]]:
    """Three models at their best epochs of four, and their validation errors; settings are the client's own draws."""
    part, held, found = CLIENTS[client], HELD[client], []
    for number in range(3):
        dice = rng(0, index, client, "soup", number)
        rate, _, decay, _ = dice.choice(RATES), dice.choice((50,)), dice.choice(DECAYS), dice.choice((0.0,))
        path = iterates(w, part, 4, lr=rate, decay=decay)
        found.append(min(((v, wrong(v, held)) for v in path), key=lambda one: one[1]))
    return found


def soup(w: Array, index: int, client: int, selection: str) -> tuple[Array, int]:
    """Mean of all candidates; greedy: of those that leave the mean's error no larger, best first. And how many."""
    found = candidates(w, index, client)
    if selection == "uniform":
        return sum(v for v, _ in found) / 3, 3
    chosen: list[Array] = []
    least = np.inf
    for v, _ in sorted(found, key=lambda one: one[1]):
        error = wrong(sum([*chosen, v]) / (len(chosen) + 1), HELD[client])
        if error <= least:
            chosen, least = [*chosen, v], error
    return sum(chosen) / len(chosen), len(chosen)


def souped(name: str, selection: str, **options: str) -> list[int]:
    """Rounds of a soup as expected; how many candidates each client took."""
    drawn = {"lrs": RATES, "batches": (50,), "dropouts": (0.0,), "weight_decays": DECAYS}
    found = played({"name": name, "candidates": 3, **drawn, **options}, held=True, epochs=4).ends
    w, taken = found[0], []
    for index, end in enumerate(found[1:]):
        made = [soup(w, index, client, selection) for client in (0, 1)]
        w = mean([v for v, _ in made], P_HELD)
        taken += [count for _, count in made]
        close(end, w)
    return taken


def test_soups():
    assert souped("soups", "uniform") == [3] * 4


def test_diwa():
    assert souped("diwa", "greedy") != [3] * 4


@pytest.mark.parametrize("pool_init", ["frozen", "trained"])
def test_lss(pool_init):
    """Two candidates of two steps; the mixtures are exponentials that the client drew, scaled to sum 1."""
    options = {"candidates": 2, "affinity": 0.3, "diversity_weight": 0.2, "pool_init": pool_init}
    found = played({"name": "lss", **options}).ends
    w = found[0]
    for index, end in enumerate(found[1:]):
        means = []
        for client, part in enumerate(CLIENTS):
            dice, received = generator(0, index, client, "pool"), w
            pool = [received] if pool_init == "frozen" else []
            for _ in range(2):
                f = sum(pool) / len(pool) if pool else received
                for _ in range(2):
                    drawn = torch.empty(len(pool) + 1, dtype=torch.float64).exponential_(generator=dice).numpy()
                    alpha = drawn / drawn.sum()
                    slope = alpha[-1] * gradient(alpha @ np.stack([*pool, f]), part)
                    slope = slope + 0.3 * unit(f - received)
                    if pool:
                        slope = slope - 0.2 * sum(unit(f - other) for other in pool) / len(pool)
                    f = f - LR * slope
                pool.append(f)
            means.append(sum(pool) / len(pool))
        w = mean(means)
        close(end, w)


def unit(u: Array) -> Array:
    """Gradient of sqrt(|u|^2 + 1e-16)."""
    return u / np.sqrt(u @ u + 1e-16)
