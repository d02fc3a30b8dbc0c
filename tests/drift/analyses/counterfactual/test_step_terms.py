"""The exact split of a step, in float64: sums, two clients on quadratics by hand, frozen updates step by step."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from drift.analyses.counterfactual.all_clients import frozen_update, full_gradient
from drift.analyses.counterfactual.step_terms import TERMS, expected_sampling, step_terms
from drift.config.experiment import Local
from drift.training.client import Client, steps
from tests.drift import hand
from tests.oracles import cnn_task, mlp_task, quadratic

K, D = 5, 7
SHARES = hand.vector(2, 7, 4, 1, 6) / 20
WEIGHTS = hand.vector(0, 7, 0, 1, 0) / 8


def split(weights=WEIGHTS, shares=SHARES, **options):
    start, end = hand.random(D, seed=1), hand.random(D, seed=2)
    models, frozen = start + hand.random(K, D, seed=3), hand.random(K, D, seed=4)
    return start, end, models, frozen, step_terms(start, end, models, frozen, shares, weights, **options)


@pytest.mark.parametrize("fit", [True, False])
def test_parts_sum_to_the_step(fit):
    start, end, models, _, parts = split(fit=fit)
    same = {"rtol": 0, "atol": 1e-14}
    torch.testing.assert_close(parts["full"] + parts["sampling"] + parts["server"], end - start, **same)
    torch.testing.assert_close(parts["gradient"] + parts["gradient_sampling"] + parts["local"], parts["mean"], **same)
    torch.testing.assert_close(parts["mean"], WEIGHTS @ (models - start), **same)
    torch.testing.assert_close(parts["full"], SHARES @ (models - start), **same)
    assert parts.vectors.shape == (len(TERMS), D)


def test_float32_models_are_summed_in_float64():
    start, models = hand.random(D, seed=1).float(), hand.random(K, D, seed=3).float()
    parts = step_terms(start, models[0], models, models, SHARES, WEIGHTS)
    torch.testing.assert_close(parts["mean"], WEIGHTS @ (models.double() - start.double()), rtol=0, atol=1e-14)
    torch.testing.assert_close(parts["full"] + parts["sampling"] + parts["server"], models[0].double() - start.double())


def test_a_clients_drift_is_its_data_part_and_its_local_part():
    start, _, models, frozen, parts = split()
    drift = models - start - parts["mean"]
    data = parts.scale * (frozen - WEIGHTS @ frozen)
    for name, rows in {"client_drift": drift, "client_data": data, "client_local": drift - data}.items():
        assert torch.isnan(parts.clients[name]).tolist() == [True, False, True, False, True]
        torch.testing.assert_close(parts.clients[name][[1, 3]], rows.norm(dim=1)[[1, 3]])
    assert float((WEIGHTS @ drift).norm()) < 1e-14


def test_the_fitted_factor_leaves_the_shortest_local_parts():
    start, _, models, frozen, parts = split()
    updates = models - start

    def rest(factor):
        return float(SHARES @ (updates - factor * frozen).square().sum(1))

    assert parts.local_share == pytest.approx(rest(parts.scale) / float(SHARES @ updates.square().sum(1)))
    assert rest(parts.scale) < min(rest(parts.scale + 0.01), rest(parts.scale - 0.01))
    assert split(fit=False)[-1].scale == 1


def test_full_participation_has_no_sampling_drift_and_one_client_no_client_drift():
    whole = split(weights=SHARES)[-1]
    assert float(whole["sampling"].norm()) == float(whole["gradient_sampling"].norm()) == 0
    alone = split(weights=hand.vector(0, 0, 1, 0, 0))[-1]
    assert float(alone.clients["client_drift"][2]) < 1e-14


def test_two_clients_on_quadratics_by_hand():
    """Losses |theta - c_k|^2 / 2 in one dimension from 0: D_k = (1 - (1 - h)^tau) c_k, U_k = tau h c_k."""
    h, tau, centres = 0.1, 3, hand.vector(1, -4)[:, None]
    moved, straight = 1 - 0.9**3, tau * h
    shares, weights, zero = hand.vector(0.75, 0.25), hand.vector(1, 0), hand.vector(0)
    arguments = (zero, hand.vector(0.5), moved * centres, straight * centres, shares, weights)
    fitted, plain = step_terms(*arguments), step_terms(*arguments, fit=False)
    expected = {
        "step": 0.5,
        "mean": moved,
        "full": -0.25 * moved,
        "sampling": 1.25 * moved,
        "server": 0.5 - moved,
        "gradient": -0.25 * moved,
        "gradient_sampling": 1.25 * moved,
        "local": 0.0,
    }
    for name, value in expected.items():
        assert float(fitted[name]) == pytest.approx(value, abs=1e-15), name
    assert fitted.scale == pytest.approx(moved / straight)
    assert fitted.local_share == pytest.approx(0, abs=1e-15)
    assert float(plain["local"]) == pytest.approx(moved - straight)
    assert float(plain["gradient_sampling"]) == pytest.approx(1.25 * straight)
    assert plain.local_share == pytest.approx((1 - straight / moved) ** 2)
    assert fitted.clients["alignment"].tolist() == pytest.approx([-1, 1])


def test_cosines_of_parts_that_are_rounding_alone_are_missing():
    parts = split(weights=SHARES)[-1]
    cosines = parts.cosines(1e-12)
    assert bool(torch.isnan(cosines[TERMS.index("sampling")]).all())
    known = [TERMS.index(name) for name in ("step", "full", "local")]
    found = torch.nn.functional.cosine_similarity(parts.vectors[known[0]], parts.vectors[known[1]], dim=0)
    assert float(cosines[known[0], known[1]]) == pytest.approx(float(found))


def test_expected_sampling_is_the_mean_over_all_cohorts():
    updates, equal = hand.random(K, D), torch.full((K,), 1 / K, dtype=torch.float64)
    full = updates.mean(0)
    squares = [float((updates[list(some)].mean(0) - full).square().sum()) for some in combinations(range(K), 2)]
    assert expected_sampling((updates - full).norm(dim=1), equal, 2) == pytest.approx(np.mean(squares) ** 0.5)
    assert expected_sampling(hand.vector(1, 2, 3, 4, 5), equal, K) == 0


def client(task, samples, **local):
    options = {"lr": 0.03, "momentum": 0.0, "epochs": 1, "batch": 50, **local}
    start = task.theta + 0.1
    given = {"start": start, "buffers": task.buffers, "flat": task.flat(start), "local": Local(**options)}
    return Client(id=0, index=0, seed=1, samples=samples, **given)


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"weight_decay": 0.1}, {"optimizer": "adam", "lr": 0.01}])
def test_one_full_batch_step_is_the_frozen_update(options):
    task = mlp_task()
    one = client(task, task.samples["train"], **options)
    torch.testing.assert_close(frozen_update(one), one.train().theta - one.start, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{"momentum": 0.5}, {"momentum": 0.9, "weight_decay": 0.1}, {"optimizer": "adam", "weight_decay": 0.1}]
)
def test_the_frozen_update_is_what_the_optimiser_does_with_a_constant_gradient(options):
    task = mlp_task()
    made = client(task, task.samples["train"], steps=6, **options)
    gradient = full_gradient(made) + made.local.weight_decay * made.start
    theta = torch.nn.Parameter(made.start.clone())
    local = made.local
    optimizer = (
        torch.optim.Adam([theta], lr=local.lr)
        if local.optimizer == "adam"
        else torch.optim.SGD([theta], lr=local.lr, momentum=local.momentum)
    )
    for _ in range(6):
        theta.grad = gradient
        optimizer.step()
    torch.testing.assert_close(frozen_update(made), theta.detach() - made.start, rtol=1e-9, atol=1e-12)


def test_full_gradient_is_that_of_the_mean_loss():
    found = quadratic(5, samples=700)
    made = client(found.task, found.task.samples["train"])
    torch.testing.assert_close(full_gradient(made), found.gradient(made.start))


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"steps": 5}, {"batch": 1}, {"batch": 4, "epochs": 2}])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 9, 16])
def test_steps_are_the_batches_of_plain_training(norm, options, n):
    task = cnn_task(norm=norm)
    samples = task.samples["train"][:n]
    made = client(task, samples, **{"batch": 8, "epochs": 3, **options})
    assert steps(made) == sum(1 for _ in made.batches())
    update = frozen_update(made)
    assert bool(torch.isfinite(update).all())
    assert bool(update.any()) == (steps(made) > 0)
