"""Published updates written anew from the formulas where they are no defaults here; docs/agreement.md lists them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.config.random_keys import generator
from drift.methods.swad import valley
from drift.training.client import ForkedSeed
from tests.drift import hand
from tests.drift.by_hand import (
    CLIENTS,
    LR,
    STEPS,
    Array,
    Part,
    close,
    descend,
    gradient,
    loss,
    mean,
    played,
    trained,
)


def test_scaffold_of_the_fedeve_author_s_code():
    """c is the weighted mean of the new controls, clients keep c - c_k', tau is E (floor(n / B) + 1)."""
    run = played({"name": "scaffold", "like": "code"}, rounds=3, batch=7)

    def slope(v: Array, part: Part, own: Array, c: Array) -> Array:
        return gradient(v, part) - own + c

    taus = [STEPS * (len(part.y) // 7 + 1) for part in CLIENTS]
    assert taus == [STEPS, 2 * STEPS]
    w, c, own = run.ends[0], np.zeros(13), [np.zeros(13)] * 2
    for index, end in enumerate(run.ends[1:]):
        models = [descend(w, slope, part, mine, c) for part, mine in zip(CLIENTS, own, strict=True)]
        fresh = [mine - c + (w - v) / (tau * LR) for mine, v, tau in zip(own, models, taus, strict=True)]
        own = [c - one for one in fresh]
        w, c = mean(models), mean(fresh)
        close(end, w)
        close(run.servers[index + 1].state["control"].numpy(), c)


@pytest.mark.parametrize("name", ["fedadam", "fedyogi"])
def test_ima_over_adaptive_servers_as_released(name):
    """In round t_s the window's mean meets fresh moments; in the round after, those from before t_s are back."""
    base = {"name": name, "server_lr": 0.1, "beta1": 0.7, "beta2": 0.6, "tau": 0.01}
    options = {"window": 2, "start": 2, "late": "na", "reset": "one_round", "base": base}
    found = played({"name": "ima", **options}, rounds=5).ends
    w, m, v, window = found[0], np.zeros(13), np.zeros(13), []
    for index, end in enumerate(found[1:]):
        window.append(mean([trained(w, part) for part in CLIENTS]))
        middle = window[-1] if index < 2 else (window[-1] + window[-2]) / 2
        fresh = index == 2
        one, two = (np.zeros(13), np.zeros(13)) if fresh else (m, v)
        d = middle - w
        one = 0.7 * one + 0.3 * d
        two = 0.6 * two + 0.4 * d**2 if name == "fedadam" else two - 0.4 * d**2 * np.sign(two - d**2)
        w = w + 0.1 * one / (np.sqrt(two) + 0.01)
        if not fresh:
            m, v = one, two
        close(end, w)


def test_ima_s_three_resets_differ_where_they_should():
    def ends(reset: bool | str) -> list[Array]:
        base = {"name": "fedadam", "beta1": 0.7, "beta2": 0.6}
        options = {"window": 2, "start": 2, "late": "na", "reset": reset, "base": base}
        return played({"name": "ima", **options}, rounds=4).ends

    never, always, once = ends(False), ends(True), ends("one_round")
    for index in range(3):
        np.testing.assert_array_equal(always[index], never[index])
        np.testing.assert_array_equal(always[index + 1], once[index + 1])
    assert not np.allclose(never[3], once[3])
    assert not np.allclose(always[4], once[4])


def test_lss_as_released():
    """Three candidates, none frozen; the first steps on every minibatch with affinity alone, others on every third."""
    options = {"like": "code", "affinity": 0.03, "diversity_weight": 0.02, "step_every": 3}
    found = played({"name": "lss", **options}, batch=1).ends
    w = found[0]
    for index, end in enumerate(found[1:]):
        w = mean([_souped(w, index, client) for client in (0, 1)])
        close(end, w)


def _souped(received: Array, index: int, client: int) -> Array:
    part, pool = CLIENTS[client], []
    mixing, order = generator(0, index, client, "pool"), generator(0, index, client, "batches")
    for number in range(3):
        f, count = sum(pool) / len(pool) if pool else received, 0
        for _ in range(1 if number else STEPS):
            for row in torch.randperm(len(part.y), generator=order).tolist():
                count += 1
                if number and count % 3:
                    continue
                batch, slope = Part(part.x[[row]], part.y[[row]]), 2 * 0.03 * (f - received)
                for _ in range(2):
                    drawn = torch.empty(number + 1, dtype=torch.float64).exponential_(generator=mixing).numpy()
                    alpha = drawn / drawn.sum()
                    slope = slope + alpha[-1] * gradient(alpha @ np.stack([*pool, f]), batch) / 2
                f = f - LR * (slope - 0.02 * _volume_slope(f, pool))
        pool.append(f)
    return sum(pool) / 3


def _volume_slope(f: Array, pool: list[Array]) -> Array | float:
    """Of the squared distance to one other member; of the squared area of the triangle with two, |e|^2 |h|^2 / 4."""
    if len(pool) < 2:
        return 2 * (f - pool[0]) if pool else 0.0
    e, reach = pool[1] - pool[0], f - pool[0]
    return (e @ e) / 2 * (reach - (reach @ e) / (e @ e) * e)


def algorithm_1(losses: list[float], n_s: int, n_e: int, r: float) -> tuple[int, int] | None:
    """t_s and t_e, both included, as the SWAD paper's algorithm 1 prints the loop; epochs count from 0."""
    start, threshold = None, 0.0
    for i in range(len(losses)):
        if start is None:
            window = losses[i - n_s + 1 : i + 1]
            if i >= n_s - 1 and window[0] == min(window):
                start, threshold = i - n_s + 1, r / n_s * sum(window)
        elif i >= n_e - 1 and threshold < min(losses[i - n_e + 1 : i + 1]):
            return start, i - n_e
    return None if start is None else (start, len(losses) - 1)


def test_swad_s_valley_is_that_of_algorithm_1_on_random_curves():
    """Patience at the start above, at and below that at the end; steep, flat and noisy curves."""
    dice, ended = np.random.default_rng(3), 0
    for _ in range(1500):
        n_s, n_e, r = int(dice.integers(1, 5)), int(dice.integers(1, 8)), float(dice.choice([1.0, 1.1, 1.3]))
        turn, length = int(dice.integers(2, 12)), int(dice.integers(1, 30))
        epochs = np.arange(length)
        curve = 1 + 0.2 * np.abs(epochs - turn) + dice.choice([0.0, 0.3]) * dice.random(length)
        found, expected = valley(curve.tolist(), n_s, n_e, r), algorithm_1(curve.tolist(), n_s, n_e, r)
        assert found == (None if expected is None else slice(expected[0], expected[1] + 1))
        ended += expected is not None and expected[1] < length - 1
    assert ended > 300


def test_ima_over_feddyn_records_feddyn_s_own_models():
    """aggregate is the model that FedDyn makes of the cohort, the dual included; records = "averaged" leaves it out."""
    updates = hand.random(4, 2, 3, seed=3)
    for records in ("model", "averaged"):
        options = {"window": 2, "start": 2, "late": "na", "records": records, "base": {"name": "feddyn", "alpha": 0.5}}
        setting = hand.setting({"name": "ima", **options}, rounds=4)
        run = hand.play(setting.experiment.method, setting, hand.random(3, seed=4), updates)
        dual = torch.zeros(3, dtype=torch.float64)
        for group, outcome in zip(run.groups, run.outcomes, strict=True):
            dual = dual - 0.5 / 4 * group.deltas.sum(0)
            average = group.clients.mean(0)
            model = average - dual / 0.5
            if group.index < 2:
                torch.testing.assert_close(outcome.end, model)
            else:
                expected = model if records == "model" else average
                torch.testing.assert_close(outcome.extras["aggregate"], expected)


@pytest.mark.parametrize("models", [1, 2])
def test_fedfomo_of_the_lss_code(models):
    """v is what the last training began from, both models are candidates, those of the largest affinity come first."""
    run = played({"name": "fedfomo", "like": "code", "models": models}, rounds=5)
    w, near = run.ends[0], np.eye(2)
    begun, last, others = [w, w], [w, w], 0
    for index, end in enumerate(run.ends[1:]):
        starts = list(last)
        for client, part in enumerate(CLIENTS) if index else ():
            received = np.argsort(-near[client], kind="stable")[:models]
            others += 1 - client in received
            v = begun[client]
            gains = [(loss(v, part) - loss(last[j], part)) / (np.linalg.norm(last[j] - v) + 1e-5) for j in received]
            near[client, received] += gains
            shares = np.maximum(gains, 0)
            if shares.any():
                starts[client] = mean([last[j] for j in received], shares / shares.sum())
        begun = starts
        last = [trained(v, part) for v, part in zip(starts, CLIENTS, strict=True)]
        w = mean(last)
        close(end, w)
        np.testing.assert_allclose(run.servers[index + 1].state["affinity"].numpy(), near, rtol=1e-6)
    assert others > 0 or models == 1


def test_soups_share_one_dropout_stream_or_have_one_for_each_candidate(monkeypatch):
    """Two candidates of one setting differ in the order of their samples and, where asked for, in what they drop."""
    seen: list[int] = []

    class Watched(ForkedSeed):
        def __enter__(self) -> None:
            super().__enter__()
            seen.append(torch.initial_seed())

    monkeypatch.setattr("drift.training.client.ForkedSeed", Watched)
    ranges = {"lrs": (0.1,), "batches": (3,), "dropouts": (0.3,), "weight_decays": (0.0,)}
    for name in ("soups", "diwa"):
        for stream, count in (("shared", 1), ("own", 3)):
            seen.clear()
            played({"name": name, "candidates": 3, "dropout_stream": stream, **ranges}, rounds=1, held=True)
            assert len(seen) == 6
            assert len(set(seen)) == 2 * count


def test_diwa_is_greedy_soups():
    ranges = {"lrs": (0.2, 0.9), "batches": (3,), "dropouts": (0.0, 0.3), "weight_decays": (0.0, 0.1)}
    diwa = played({"name": "diwa", "candidates": 3, **ranges}, held=True).ends
    soups = played({"name": "soups", "candidates": 3, "selection": "greedy", **ranges}, held=True).ends
    np.testing.assert_array_equal(diwa[-1], soups[-1])
