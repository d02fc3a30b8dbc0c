"""FedLAW: starts at FedAvg, follows the right gradient, and finds what a grid search finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from drift.config.method_values import Cohort, Combined, Setting
from drift.methods._learned_weights import Aggregate, Base, Learner, Schedule, factor_and_shares, initial, slopes
from drift.methods.fedlaw import FedLAW, _balanced
from drift.store.column_blocks import Updates
from landscape.model.adam import Adam
from landscape.model.samples import Samples
from landscape.model.task import Task
from tests.drift import hand
from tests.oracles import cnn_task, mlp_task, thetas

BASES: list[Base] = ["exponential", "quadratic"]
VARIANTS: list[dict[str, Any]] = [
    {"variant": "joint"},
    {"variant": "gws"},
    {"variant": "attentive"},
    {"variant": "early_stopped", "stop_round": 3},
    {"variant": "swa"},
    {"variant": "swa", "swa_order": "gamma_first"},
]


def setting(method: FedLAW, task: Task | None = None) -> Setting:
    """A setting whose proxy set is the task's test split (11 samples)."""
    task = mlp_task() if task is None else task
    return Setting(task, hand.experiment(method, proxy={"per_class": 1}), task.samples["test"])


def group(task: Task | None = None, sizes: tuple[int, ...] = (2, 7, 4), index: int = 0) -> Cohort:
    """Clients of unequal size around the task's own model."""
    task = mlp_task() if task is None else task
    return hand.cohort(thetas(task, len(sizes)), start=task.theta, sizes=sizes, index=index)


def combined(method: FedLAW, cohort: Cohort | None = None) -> Combined:
    """What the method makes of a cohort."""
    return method.combine(setting(method), {}, group() if cohort is None else cohort)


def loss(task: Task, theta: Tensor) -> float:
    """Mean loss on the proxy set."""
    samples = task.samples["test"]
    return float(task.loss(task.outputs(theta, samples), samples.targets).mean())


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_server_epochs_is_fedavg_to_the_bit(base: Base, variant: dict[str, Any]) -> None:
    cohort = group()
    found = combined(FedLAW(base=base, server_epochs=0, **variant), cohort)
    assert torch.equal(found.theta, cohort.weighted_mean)
    assert torch.equal(found.weights, cohort.weights)


@pytest.mark.parametrize("base", BASES)
def test_learning_starts_at_fedavg(base: Base) -> None:
    shares = torch.tensor([2.0, 7, 4], dtype=torch.float64) / 13
    shrink, found = factor_and_shares(base, *initial(base, shares))
    assert float(shrink) == 1
    torch.testing.assert_close(found, shares, rtol=1e-14, atol=0)


@pytest.mark.parametrize("base", BASES)
def test_slopes_match_finite_differences(base: Base) -> None:
    task, cohort = mlp_task(), group()
    objective = Aggregate(task.flat(cohort.start), Updates(cohort.clients, cohort.start, cohort.sizes > 0))
    free = torch.tensor([0.9, 0.7, -0.4, 1.2], dtype=torch.float64)
    samples = task.samples["test"]

    def value(at: Tensor) -> float:
        return objective.gradient(*factor_and_shares(base, at[0], at[1:]), samples)[0]

    _, mean, each = objective.gradient(*factor_and_shares(base, free[0], free[1:]), samples)
    slope_s, slope_x = slopes(base, free[0], free[1:], mean, each)
    step = 1e-6 * torch.eye(4, dtype=torch.float64)
    expected = torch.tensor([(value(free + row) - value(free - row)) / 2e-6 for row in step], dtype=torch.float64)
    torch.testing.assert_close(torch.cat([slope_s[None], slope_x]), expected, rtol=1e-6, atol=1e-9)


def test_softmax_slopes_sum_to_zero() -> None:
    x, each = hand.random(5, seed=1), 100 * hand.random(5, seed=2)
    _, slope = slopes("exponential", hand.vector(0.3)[0], x, hand.vector(1.5)[0], each)
    assert abs(float(slope.sum())) < 1e-13


def test_slopes_ignore_what_all_clients_share() -> None:
    s, x, each = hand.vector(0.3)[0], hand.random(4, seed=1), hand.random(4, seed=2)
    for base in BASES:
        plain, moved = (slopes(base, s, x, s, each + shift)[1] for shift in (0.0, 17.0))
        torch.testing.assert_close(plain, moved, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_are_shrink_times_a_simplex_point(base: Base, variant: dict[str, Any]) -> None:
    cohort = group()
    found = combined(FedLAW(base=base, server_epochs=8, server_batch=4, **variant), cohort)
    shrink, shares = found.extras["gamma"], found.extras["lambda"]
    assert float(shrink) > 0
    assert bool((shares >= 0).all())
    assert float(shares.sum()) == pytest.approx(1, abs=1e-14)
    torch.testing.assert_close(found.weights, shrink * shares)
    torch.testing.assert_close(found.theta, found.weights @ cohort.clients)
    assert found.extras["gamma_epochs"].shape == (8,)
    assert found.extras["lambda_epochs"].shape == (8, 3)
    assert found.extras["proxy_loss_epochs"].shape == (8,)
    moves_shrink, moves_shares = variant["variant"] in ("joint", "gws", "swa"), variant["variant"] != "gws"
    assert (float(shrink) != 1) == moves_shrink
    assert torch.allclose(shares, cohort.weights, rtol=1e-12) != moves_shares


def test_learning_lowers_the_proxy_loss() -> None:
    task, cohort = mlp_task(), group()
    losses = {name: loss(task, combined(FedLAW(variant=name), cohort).theta) for name in ("joint", "gws", "attentive")}
    fedavg = loss(task, cohort.weighted_mean)
    assert losses["joint"] < losses["gws"] < fedavg
    assert losses["joint"] < losses["attentive"] < fedavg


def test_gws_agrees_with_a_grid_search() -> None:
    task, cohort = mlp_task(), group()
    inputs = task.samples["test"].inputs
    labels = task.outputs(cohort.weighted_mean, task.samples["test"]).argmax(1)
    labels[:4] = (labels[:4] + 1) % 3  # some wrong ones bound the confidence that is best
    task = replace(task, samples={"test": Samples(inputs, labels)})
    method = FedLAW(variant="gws", server_epochs=300, server_lr=0.05, halve_every=60)
    learned = float(method.combine(setting(method, task), {}, cohort).extras["gamma"])
    grid = torch.linspace(0.05, 3, 600, dtype=torch.float64)
    best = min(grid.tolist(), key=lambda shrink: loss(task, shrink * cohort.weighted_mean))
    assert best < 2.9
    assert abs(best - 1) > 0.1
    assert learned == pytest.approx(best, abs=0.01)


def test_one_client_leaves_only_the_shrinking() -> None:
    cohort = group(sizes=(7,))
    for base in BASES:
        found = combined(FedLAW(base=base, server_epochs=5), cohort)
        assert found.extras["lambda"].tolist() == [1]
        assert float(found.extras["gamma"]) != 1


def test_clients_without_samples_have_no_part() -> None:
    cohort, without = group(sizes=(2, 0, 7)), group(sizes=(2, 9, 7))
    without = hand.cohort(without.clients[[0, 2]], start=without.start, sizes=(2, 7))
    found, expected = (combined(FedLAW(server_epochs=5), some) for some in (cohort, without))
    assert found.weights[1] == 0
    torch.testing.assert_close(found.theta, expected.theta)
    assert found.extras["lambda_epochs"].shape == (5, 3)


def test_early_stopping_learns_up_to_its_round() -> None:
    method = FedLAW(variant="early_stopped", stop_round=3, server_epochs=4)
    last, after = group(index=3), group(index=4)
    assert not torch.equal(combined(method, last).theta, last.weighted_mean)
    assert torch.equal(combined(method, after).theta, after.weighted_mean)


@pytest.mark.parametrize("options", [{"variant": "early_stopped"}, {"variant": "joint", "stop_round": 3}])
def test_stop_round_belongs_to_early_stopping(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="stop_round"):
        FedLAW(**options)


def test_server_step_replaces_clients_by_scaled_steps() -> None:
    cohort = group()
    scaled = hand.cohort(cohort.start + 0.5 * cohort.deltas, start=cohort.start, sizes=(2, 7, 4))
    found = combined(FedLAW(server_epochs=6, server_step_lr=0.5), cohort)
    torch.testing.assert_close(found.theta, combined(FedLAW(server_epochs=6), scaled).theta)


def test_swa_averages_the_free_parameters_after_their_sixth_epoch() -> None:
    method = FedLAW(variant="swa", server_epochs=20, server_batch=4)
    found = combined(method)
    learned = found.extras["lambda_epochs"]
    logits = learned[6:10].log() - learned[6:10, :1].log()
    torch.testing.assert_close(found.extras["lambda"], logits.mean(0).softmax(0))
    assert torch.equal(learned[10], learned[-1])
    assert torch.equal(found.extras["gamma_epochs"][:10], torch.ones(10, dtype=torch.float64))


def test_swa_rates_fall_along_a_cosine_and_then_reach_the_constant_rate() -> None:
    task, cohort, rates = mlp_task(), group(), []
    learner = Learner("exponential", *initial("exponential", cohort.weights), Schedule(0.01, (0.5, 0.999), 20, 0.05, 6))
    step = Adam.step

    def spying(self: Adam, gradients: Any, lr: float) -> None:
        rates.append(lr)
        step(self, gradients, lr)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Adam, "step", spying)
        objective = Aggregate(task.flat(cohort.start), Updates(cohort.clients, cohort.start, cohort.sizes > 0))
        learner.learn("shares", 20, objective, lambda: [task.samples["test"]], average=True)
    cosine = [0.005 * (1 + float(torch.cos(torch.tensor(torch.pi * t / 100)))) for t in range(7)]
    assert rates[:7] == pytest.approx(cosine, rel=1e-6)
    assert rates[7:16] == sorted(rates[7:16])
    assert rates[16:] == pytest.approx([0.05] * 4)


def test_quadratic_may_start_uniform_as_the_code_does() -> None:
    method = FedLAW(base="quadratic", quad_init="uniform", server_epochs=1, server_lr=1e-9)
    torch.testing.assert_close(
        combined(method).extras["lambda"], torch.full((3,), 1 / 3, dtype=torch.float64), rtol=1e-6, atol=0
    )


def test_balanced_sampling_draws_classes_equally() -> None:
    targets = torch.tensor([0] * 900 + [1] * 90 + [2] * 10)
    drawn = targets[_balanced(targets, torch.Generator().manual_seed(1))]
    assert torch.bincount(drawn).tolist() == pytest.approx([333, 333, 333], rel=0.2)
    assert combined(FedLAW(balanced_sampling=True, server_epochs=2)).theta.isfinite().all()


def test_same_round_gives_same_bits_and_another_round_other_batches() -> None:
    method = FedLAW(server_epochs=3, server_batch=4)
    first, again, later = (combined(method, group(index=index)).theta for index in (2, 2, 5))
    assert torch.equal(first, again)
    assert not torch.equal(first, later)


def test_batch_normalisation_uses_the_statistics_of_proxy_batches() -> None:
    task = cnn_task(norm=True)
    cohort, method = group(task), FedLAW(server_epochs=1, server_batch=11)
    found = method.combine(setting(method, task), {}, cohort)
    flat, samples = task.flat(cohort.start), task.samples["test"]
    flat.load(cohort.weighted_mean)
    flat.training(True)
    expected = float(flat.gradient(samples))
    assert float(found.extras["proxy_loss_epochs"][0]) == pytest.approx(expected)


@pytest.mark.parametrize(("dataset", "expected"), [("cifar10", 0.01), ("blobs", 0.005)])
def test_server_rate_follows_the_data(dataset: str, expected: float) -> None:
    method = FedLAW()
    experiment = hand.experiment(method, proxy={"per_class": 1})
    experiment = experiment.model_copy(update={"task": experiment.task.model_copy(update={"dataset": dataset})})
    learner = method._learner(Setting(mlp_task(), experiment), torch.ones(2, dtype=torch.float64) / 2)
    assert learner.schedule.lr == expected
