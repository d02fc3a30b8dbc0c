"""Signal, data, drift and noise: expectations of the estimators are the quantities themselves, and intervals cover."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import torch
from oracles import quadratic
from torch import nn

from drift.analyses.counterfactual.noise_replays import products_of, replay_clients
from drift.analyses.counterfactual.noise_terms import CAUSES, MEAN, NAMES, PAIRS, SHARE, SQUARE, crossing, equal_steps
from drift.config.experiment import Local
from drift.methods.fedavg import FedAvg
from drift.training.client import Client
from landscape.model.samples import Samples
from landscape.model.task import Task

CLOSED = [*range(4), *range(8, 13)]
"""Entries that are no ratio of two estimates: mean squares, parts of the mean update, scale."""


def replays(frozen, updates, shares, number, cohort=2):
    vectors = np.concatenate([frozen, updates.reshape(-1, updates.shape[-1])])
    return products_of(torch.from_numpy(vectors), shares, number, cohort)


def truth(frozen, means, noise, q):
    """Written out from the vectors; noise (K,) is the mean square of each client's."""
    K = len(q)
    scale = sum(q * (means * frozen).sum(1)) / sum(q * (frozen**2).sum(1))
    signal, mean = scale * q @ frozen, q @ means
    rows = {
        "signal": signal @ signal,
        "data": q @ ((scale * frozen - signal) ** 2).sum(1),
        "drift": q @ ((means - scale * frozen) ** 2).sum(1),
        "noise": q @ noise,
        "mean signal": signal @ signal,
        "mean drift": (mean - signal) @ (mean - signal),
        "mean sampling": K**2 / (K - 1) * sum(q**2 * ((means - mean) ** 2).sum(1)),
        "mean noise": K * q**2 @ noise,
        "scale": scale,
    }
    return np.array([rows[NAMES[entry]] for entry in CLOSED])


@pytest.mark.parametrize("R", [2, 3])
def test_no_estimate_of_all_clients_is_biased_with_two_or_three_replays(R):
    """All outcomes of noise with two values per client in turn; weights are unequal, and one client has no noise."""
    draw = np.random.default_rng(0)
    frozen = draw.normal(size=(3, 4))
    means = 0.5 * frozen + 0.1 * draw.normal(size=(3, 4))
    vectors, q = draw.normal(size=(3, 4)) * np.array([[1.0], [0.0], [3.0]]), np.array([0.5, 0.1, 0.4])
    found = []
    for signs in product([-1, 1], repeat=2 * R):
        noise = np.zeros((3, R, 4))
        noise[[0, 2]] = np.array(signs).reshape(2, R, 1) * vectors[[0, 2], None]
        found.append(replays(frozen, means[:, None] + noise, q, 3).estimate()[CLOSED])
    exact = truth(frozen, means, (vectors**2).sum(1), q)
    np.testing.assert_allclose(np.mean(found, axis=0), exact, rtol=1e-10)
    assert np.min(found, axis=0)[2] < 0, "drift is estimated without bias, so that some outcomes are negative"
    naive = np.mean([one[:4].sum() for one in found])
    assert exact[:4].sum() == pytest.approx(naive), "the parts sum to the mean square of the updates"


def test_no_estimate_of_a_random_cohort_is_biased_but_for_the_ratio_of_the_scale():
    draw = np.random.default_rng(1)
    frozen = draw.normal(size=(5, 6))
    means = 0.7 * frozen  # one scale in every cohort
    for q in (np.full(5, 0.2), np.array([0.4, 0.1, 0.2, 0.05, 0.25])):
        exact = truth(frozen, means, np.zeros(5), q)
        rows = []
        for cohort in map(list, combinations(range(5), 3)):
            rows.append(replays(frozen[cohort], np.repeat(means[cohort, None], 2, 1), q[cohort], 5).estimate()[CLOSED])
        found = dict(zip([NAMES[entry] for entry in CLOSED], np.mean(rows, axis=0) - exact, strict=True))
        unequal = ("mean sampling",) if len(set(q)) > 1 else ()  # exact to first order only
        assert max(abs(error) for name, error in found.items() if name not in unequal) < 1e-12, found


def coverage(draw_replays, exact, number=200):
    """Shares of draws whose intervals hold the exact values, of CLOSED and then of the four shares."""
    exact = np.concatenate([exact, exact[:4] / exact[:4].sum()])
    hits = []
    for _ in range(number):
        one = draw_replays().estimated()
        error = np.abs(np.concatenate([one.values[CLOSED], one.values[SHARE]]) - exact)
        hits.append(error <= np.concatenate([one.half[CLOSED], one.half[SHARE]]) + 1e-12)
    return np.mean(hits, axis=0)


@pytest.mark.parametrize("R", [2, 3])
@pytest.mark.parametrize("unequal", [False, True])
def test_intervals_of_all_clients_cover_exact_values_in_95_percent_of_draws(R, unequal):
    """Between 90 and 99 %: with halved intervals some entry is below 85 %, with doubled ones the mean is above 99 %."""
    draw = np.random.default_rng(3)
    K, d = 10, 12
    frozen = 1 + draw.normal(size=(K, d))
    means = frozen * np.linspace(0.9, 0.4, d) + 0.1 * draw.normal(size=(K, d))
    size, q = draw.uniform(0.2, 1.0, K), draw.dirichlet(np.full(K, 3.0)) if unequal else np.full(K, 1 / K)

    def outcome():
        return replays(frozen, means[:, None] + size[:, None, None] * draw.normal(size=(K, R, d)), q, K)

    hits = coverage(outcome, truth(frozen, means, size**2 * d, q))
    assert hits.min() > 0.9
    assert 0.93 < hits.mean() < (0.99 if R > 2 else 1.0), "wider with two replays, which have no jackknife of their own"


def test_intervals_of_a_cohort_cover_and_a_dominating_client_widens_them():
    draw = np.random.default_rng(2)
    K, m, d = 30, 8, 12
    frozen = 1 + draw.normal(size=(K, d))
    means = frozen * np.linspace(0.9, 0.4, d) + 0.1 * draw.normal(size=(K, d))
    size, q = draw.uniform(0.5, 1.5, K), np.full(K, 1 / K)

    def outcome():
        cohort = draw.choice(K, m, replace=False)
        noise = size[cohort, None, None] * draw.normal(size=(m, 3, d))
        return replays(frozen[cohort], means[cohort, None] + noise, q[cohort], K)

    hits = coverage(outcome, truth(frozen, means, size**2 * d, q))
    assert hits.min() > 0.86  # 0.95 but for chance and skewness
    assert hits.mean() < 0.99
    noise = np.zeros((8, 3, d))
    noise[0] = draw.normal(size=(3, d))
    one = replays(frozen[:8], means[:8, None] + noise, np.full(8, 1 / 8), 8).estimated()
    spread = np.sqrt(one.covariances.sum(0)[3, 3])
    assert one.half[3] == pytest.approx(4.3027 * spread, rel=1e-3), "two degrees of freedom: three replays of one"


@pytest.mark.parametrize("R", [2, 10])
def test_signal_and_data_vary_as_the_squared_updates_over_the_root_of_the_replays(R):
    """Noise is Gaussian where no frozen update points, so that Var |U|^2 = 2 d s^4 and no other term varies."""
    draw, K, d = np.random.default_rng(5), 6, 5
    frozen = np.hstack([1 + draw.normal(size=(K, d)), np.zeros((K, d))])
    size, q = np.array([0.3, 0.3, 0.3, 0.3, 0.3, 1.2]), np.full(K, 1 / K)
    rows = []
    for _ in range(400):
        noise = np.concatenate([np.zeros((K, R, d)), size[:, None, None] * draw.normal(size=(K, R, d))], axis=2)
        rows.append(replays(frozen, 0.8 * frozen[:, None] + noise, q, K).estimate()[SHARE])
    total = q @ (0.64 * (frozen**2).sum(1) + d * size**2)
    share, spread = (0.64 * q @ (frozen**2).sum(1)) / total, np.sqrt(q**2 @ (2 * d * size**4)) / total
    np.testing.assert_allclose(np.sum(rows, axis=1).std(), 0, atol=1e-9)
    np.testing.assert_allclose((np.array(rows)[:, 0] + np.array(rows)[:, 1]).std(), share * spread / R**0.5, rtol=0.15)


def test_crossings_are_those_of_the_formula_and_absent_outside_one_to_k():
    frozen = np.eye(4)[:, :3] + 1
    means = frozen + np.array([0.5, -0.5, 0.2])
    one = replays(frozen, np.repeat(means[:, None], 3, 1), np.full(4, 0.25), 4).estimated()
    _, drift, sampling, _ = one.values[MEAN]
    sizes = dict(zip(PAIRS, one.equal_cohorts(), strict=True))
    expected = 1 / (drift / sampling + 1 / 4)
    np.testing.assert_allclose(sizes["drift=sampling"], expected, rtol=1e-12)
    assert np.isnan(sizes["signal=drift"]).all()
    places = np.linspace(1, 3, 201)
    where, low, high = crossing(places, places - 2.003, np.full(201, 0.5))
    assert (where, low, high) == pytest.approx((2.003, 1.503, 2.503), rel=1e-12)
    assert np.isnan(crossing(places, places, np.full(201, 0.5))).all()
    undecided = crossing(places, places, np.full(201, 2.0))
    assert np.isnan(undecided[0])
    assert undecided[1:] == pytest.approx((1, 2))
    alone = crossing(places, places - 2.996, np.where(places < 1.495, 5.0, 1e-3))  # in its own interval, between places
    assert alone == pytest.approx((2.996, 1, 2.997), rel=1e-12)
    for values in (places - 2, -(places - 2)):  # zero at a place
        assert crossing(places, values, np.zeros(201)) == pytest.approx((2, 2, 2), rel=1e-12)
    assert np.isnan(crossing(places, np.zeros(201), np.zeros(201))[0])
    values = np.array([3.0, 1.0, 0.0, -4.0])  # exactly zero at a place, where the slope changes
    assert crossing(np.arange(4.0), values, np.zeros(4)) == (2, 2, 2)
    assert crossing(np.arange(4.0), values.clip(0), np.zeros(4)) == (2, 2, 3), "nothing changes its sign"


def test_cohorts_at_which_parts_are_equal_are_exact_and_their_bounds_are_those_of_the_intervals():
    draw, K, m = np.random.default_rng(3), 1000, 6
    frozen = draw.normal(size=(m, 5)) + 2
    updates = 0.8 * frozen[:, None] + 0.3 * draw.normal(size=(m, 1, 5)) + 0.3 * draw.normal(size=(m, 3, 5))
    one = replays(frozen, updates, np.full(m, 1 / K), K).estimated()
    signal, drift, sampling, noise = one.values[MEAN]
    exact = {
        "signal=sampling": 1 / (signal / sampling + 1 / K),
        "signal=noise": noise / signal,
        "drift=sampling": 1 / (drift / sampling + 1 / K),
        "drift=noise": noise / drift,
        "sampling=noise": K * (1 - noise / sampling),
    }
    found = dict(zip(PAIRS, one.equal_cohorts(), strict=True))
    assert np.isnan(found["signal=drift"][0])
    seen = 0
    for pair, wanted in exact.items():
        where, *ends = found[pair]
        if not 1 <= wanted <= K:
            assert np.isnan(where), pair
            continue
        np.testing.assert_allclose(where, wanted, rtol=1e-10, err_msg=pair)
        for end in (end for end in ends if 1.002 < end < 0.998 * K):
            around = np.array([0.999, 1.001]) * end
            different, error, _ = one.differences(around)[:, PAIRS.index(pair)]
            assert np.diff(np.abs(different) <= error).all(), f"{pair}: the interval ends within 0.1 % of {end}"
            seen += 1
    assert seen


def test_steps_at_which_parts_are_equal_lie_between_the_fractions():
    frozen = np.eye(4)[:, :3] + 1

    def after(steps):
        means = steps * frozen + 0.05 * steps**2 * np.array([1, -1, 0.3])
        return replays(frozen, np.repeat(means[:, None], 3, 1), np.full(4, 0.25), 4).estimated()

    steps = np.array([1.0, 2, 4, 8, 16])
    rows = dict(zip(PAIRS, equal_steps([after(step) for step in steps], steps), strict=True))
    difference, _, size = np.transpose(
        [after(step).differences(np.array([2.0]))[:, PAIRS.index("drift=sampling"), 0] for step in steps]
    )
    turn = np.flatnonzero(np.diff(np.sign(difference)))[0]
    assert steps[turn] < rows["drift=sampling"][0] < steps[turn + 1]
    here = np.interp(np.log(rows["drift=sampling"][0]), np.log(steps), difference / size)
    assert here == pytest.approx(0, abs=1e-12)
    assert np.isnan(equal_steps([after(2.0)], np.array([2.0]))).all()
    assert set(CAUSES) >= set("=".join(PAIRS).split("="))
    assert after(1.0).values[SQUARE][3] == pytest.approx(0, abs=1e-12)


VALUES = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64)
"""Eigenvalues of the loss of every sample, so that minibatches differ in their centre alone."""


def trainee(task, samples, number, **local):
    start = torch.ones(task.theta.numel(), dtype=torch.float64)
    settings = Local(**{"lr": 0.1, "epochs": 2, "batch": 3, "momentum": 0.0, **local})
    return Client(number, 0, 7, samples, start, torch.zeros(0), settings, task.flat(start))


def around(centres, number, **local):
    """A client whose sample i has the loss (theta - c_i)^T diag(VALUES) (theta - c_i) / 2."""
    samples = Samples(torch.ones(len(centres), 1, dtype=torch.float64), centres)
    model = nn.Linear(1, 3, bias=False, dtype=torch.float64)
    task = Task(
        model, {"train": samples}, loss=lambda out, wanted: ((out - wanted).square() * VALUES).sum(1) / 2, metrics={}
    )
    return trainee(task, samples, number, **local)


def path(pulls, steps, lr, momentum):
    """End of SGD whose gradient at step s is VALUES theta - pulls[s], from theta = 0; pulls (s, 3)."""
    theta, velocity = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for step in range(steps):
        velocity = momentum * velocity + VALUES * theta - pulls[step]
        theta = theta - lr * velocity
    return theta


def closed_form(client):
    """Frozen update, expected update (3,), and mean square of the noise ().

    Sums of samples that an epoch draws without replacement have covariance S (n - b) / (b (n - 1)) within a minibatch
    of b, and -S / (n - 1) between two, where S is that of the samples.
    """
    local, centres = client.local, client.samples.targets
    n, sizes = len(centres), [len(part) for part in torch.arange(len(centres)).split(local.batch)]
    tau, middle = local.epochs * len(sizes), centres.mean(0) - client.start
    variance = ((centres - centres.mean(0)) ** 2).mean(0)
    unit = torch.eye(tau, dtype=torch.float64)[:, :, None] * VALUES
    response = torch.stack([path(one, tau, local.lr, local.momentum) for one in unit])
    covariance = torch.zeros(tau, tau, dtype=torch.float64)
    for epoch in range(local.epochs if n > 1 else 0):
        block = slice(epoch * len(sizes), (epoch + 1) * len(sizes))
        covariance[block, block] = -1 / (n - 1)
        own = [(n - b) / (b * (n - 1)) for b in sizes]
        covariance[block, block].diagonal().copy_(torch.tensor(own, dtype=torch.float64))
    noise = torch.einsum("sj,st,tj,j->", response, covariance, response, variance)
    mean = path((VALUES * middle).expand(tau, 3), tau, local.lr, local.momentum)
    lengths = sum((1 - local.momentum ** (tau - s)) / (1 - local.momentum) for s in range(tau))
    return (local.lr * lengths * VALUES * middle).numpy(), mean.numpy(), float(noise)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_one_training_passes_the_models_of_shorter_ones(momentum):
    generator = torch.Generator().manual_seed(2)
    centres = [torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (7, 1, 10)]
    clients = [around(one, k, momentum=momentum, lr=0.02) for k, one in enumerate(centres)]
    twice, fractions = dict.fromkeys(range(3), range(1, 3)), (0.1, 0.5, 1.0)
    passed, trained = (replay_clients(engine, FedAvg(), clients, twice, fractions) for engine in ("serial", "batched"))
    for one, other in zip(passed, trained, strict=True):
        assert one.steps == other.steps
        assert one.updates.shape == (2, 3, 3)
        np.testing.assert_allclose(one.updates, other.updates, rtol=1e-10)


@pytest.mark.parametrize(("momentum", "R", "engine"), [(0.0, 2, "serial"), (0.9, 2, "batched"), (0.9, 3, "serial")])
def test_estimates_on_quadratic_losses_are_those_of_the_closed_form(momentum, R, engine):
    """Clients of 7, 1, 2 and 10 samples: the second has one sample, the third less than a batch, and no noise."""
    generator, sizes, groups = torch.Generator().manual_seed(1), (7, 1, 2, 10), 60
    spread = [torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in sizes]
    centres = [2 * torch.randn(3, generator=generator, dtype=torch.float64) + one for one in spread]
    clients = [around(one, k, momentum=momentum, lr=0.02) for k, one in enumerate(centres)]
    frozen, means, noise = map(np.array, zip(*map(closed_form, clients), strict=True))
    assert noise[0] > 0 < noise[3]
    assert abs(noise[1:3]).max() < 1e-15
    done = replay_clients(engine, FedAvg(), clients, dict.fromkeys(range(4), range(groups * R)))
    np.testing.assert_allclose([one.frozen[0] for one in done], frozen, rtol=1e-12)
    updates = torch.stack([one.updates[:, 0] for one in done]).numpy()
    np.testing.assert_allclose(updates[1:3], np.repeat(means[1:3, None], groups * R, 1), rtol=1e-12)
    q = np.array(sizes) / sum(sizes)
    exact = truth(frozen, means, noise, q)
    three = [replays(frozen, part, q, 4) for part in np.split(updates, groups, axis=1)]
    found = np.array([one.estimate()[CLOSED] for one in three])
    error = found.std(0, ddof=1) / groups**0.5
    assert (abs(found.mean(0) - exact) < 4 * error + 1e-12).all()
    assert (error[:4] < 0.1 * exact[:4].sum()).all(), "else nothing is tested"
    turns = iter(three)
    least = 0.8 if R > 2 else 0.65  # of two replays; two clients have all the noise
    assert coverage(lambda: next(turns), exact, groups).min() > least


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_full_batches_of_quadratic_tasks_drift_by_the_powers_of_the_hessian(momentum):
    """Without noise U = ((1 - lr H)^s - 1) (start - centre), and s lr H (centre - start) with the frozen gradient."""
    steps, lr, clients, frozen, means = 6, 0.05, [], [], []
    for seed in range(4):
        oracle = quadratic(4, samples=9 + seed, seed=seed)
        local = {"lr": lr, "epochs": steps, "batch": 50, "momentum": momentum}
        clients.append(trainee(oracle.task, oracle.task.samples["train"], seed, **local))
        apart, power = (clients[-1].start - oracle.centre).numpy(), oracle.matrix.numpy()
        # of z' = z - lr v', v' = momentum v + H z
        one = np.eye(4)
        whole = np.block([[one - lr * power, -lr * momentum * one], [power, momentum * one]])
        means.append((np.linalg.matrix_power(whole, steps)[:4, :4] - np.eye(4)) @ apart)
        lengths = sum((1 - momentum**s) / (1 - momentum) for s in range(1, steps + 1))
        frozen.append(-lr * lengths * power @ apart)
    frozen, means, q = np.array(frozen), np.array(means), np.array([0.4, 0.1, 0.2, 0.3])
    done = replay_clients("serial", FedAvg(), clients, dict.fromkeys(range(4), range(2)))
    found = replays(
        np.array([one.frozen[0] for one in done]), torch.stack([one.updates[:, 0] for one in done]).numpy(), q, 4
    )
    np.testing.assert_allclose(found.estimate()[CLOSED], truth(frozen, means, np.zeros(4), q), rtol=1e-9, atol=1e-12)
    assert found.estimate()[2] > 1e-3, "there is drift"
