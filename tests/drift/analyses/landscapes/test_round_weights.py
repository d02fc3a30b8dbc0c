"""Aggregates of a round at chosen weights, and weights that are learned on the proxy set."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch
from scipy.optimize import minimize
from torch import nn

import drift
from drift.analyses.landscapes.round_weights import (
    Weights,
    by_size,
    learned_weights,
    lowest_weights,
    own_weights,
    round_weights,
)
from drift.analyses.landscapes.weight_simplex import best_weights
from drift.methods._learned_weights import Aggregate
from landscape.model.make_task import make_task
from landscape.model.samples import Samples
from landscape.sweep.evaluate import evaluate


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


def loss(run, index, weights, split="test"):
    record = run.round(index)
    clients = record.clients[record.ids.argsort()]
    return float(evaluate(run.task, clients, torch.tensor([weights.row], dtype=torch.float64), split=split)["loss"])


def test_losses_are_those_of_evaluate(run):
    found = round_weights(run, round=1, weights=[2.0, 1.0, 1.0], gamma=0.9)
    assert found.loss.sel(mark="these") == loss(run, 1, Weights(0.9, (0.5, 0.25, 0.25)))
    assert found.loss.sel(mark="by size") == loss(run, 1, by_size(run, run.round(1)))
    assert found.weight.sel(mark="these").values.tolist() == [0.5, 0.25, 0.25]
    assert found.client.values.tolist() == sorted(run.round(1).ids.tolist())
    assert float(found.loss.sel(mark="end")) == pytest.approx(run.round(1).metrics["loss"], rel=1e-6)
    own = round_weights(run, round=1)
    assert float(own.loss.sel(mark="these")) == pytest.approx(float(own.loss.sel(mark="end")), rel=1e-5)


def test_weights_follow_the_ids(run):
    record = run.round(2)
    order = record.ids.argsort()
    np.testing.assert_allclose(own_weights(record).row, record.weights[order].double())
    np.testing.assert_allclose(by_size(run, record).shares, record.shares[order])


def test_wrong_weights_are_refused(run):
    for weights in ([0.5, 0.5], [0.0, 0.0, 0.0]):
        with pytest.raises(ValueError, match="one per client"):
            round_weights(run, round=1, weights=weights)


def test_learned_weights_are_lower_on_the_proxy_set_than_those_by_size(run):
    learned, sizes = learned_weights(run, 1), by_size(run, run.round(1))
    assert loss(run, 1, learned, "proxy") <= loss(run, 1, sizes, "proxy")


def test_recorded_weights_of_fedlaw_are_its_own(tmp_path):
    run = tiny.trained(tmp_path, "method=fedlaw", "method.server_epochs=2", "rounds=1")
    assert learned_weights(run, 0) == own_weights(run.round(0))


def test_without_a_proxy_set_nothing_is_learned(tmp_path):
    without = tiny.experiment("rounds=1").model_copy(update={"proxy": None})
    run = drift.simulate(without, runs=tmp_path)
    with pytest.raises(LookupError, match="no proxy set"):
        learned_weights(run, 0)


def test_the_lowest_weights_are_those_of_the_grid_of_three_clients(run):
    found = lowest_weights(run, 1)
    grid = best_weights(run, rounds=[1], clients=sorted(run.round(1).ids.tolist()))
    assert found.loss <= float(grid.best_loss[0]) + 1e-4
    assert found.weights.shares == pytest.approx(grid.best_weight.values[0], abs=0.03)
    assert found.loss == pytest.approx(loss(run, 1, found.weights), abs=1e-6) and found.samples == len(
        run.task.split("test")
    )
    assert (
        found.recorded_loss == pytest.approx(loss(run, 1, own_weights(run.round(1))), abs=1e-6)
        and found.recorded_loss > found.loss
    )


def test_the_lowest_weights_are_those_of_another_optimiser_in_few_gradients(run, monkeypatch):
    calls, gradient, clients = [], Aggregate.gradient, run.round(1).clients.double()
    monkeypatch.setattr(Aggregate, "gradient", lambda *given: calls.append(1) or gradient(*given))
    found = lowest_weights(run, 1)
    at = lambda shares: float(evaluate(run.task, clients, torch.tensor(shares)[None])["loss"])  # noqa: E731
    simplex = {"type": "eq", "fun": lambda shares: shares.sum() - 1}
    other = minimize(at, np.full(3, 1 / 3), method="SLSQP", bounds=[(0, 1)] * 3, constraints=simplex, tol=1e-10)
    assert found.loss == pytest.approx(other.fun, abs=2e-6) and len(calls) <= 3 * 30


def _recorded(folder, loss, inputs, targets, clients):
    """A run of one round of linear models without bias, with equal weights."""
    model = nn.Linear(inputs.shape[1], clients[0].shape[0], bias=False)
    train, state = Samples(inputs, targets), lambda theta: {"weight": theta}
    task, recorder = make_task(model, loss, {"train": train, "test": train}), drift.Recorder(folder, model)
    start, end = model.state_dict(), state(torch.stack(clients).mean(0))
    recorder.round(start=start, clients={index: (state(one), 10) for index, one in enumerate(clients)}, end=end)
    return drift.open(folder, task=task)


def _lowest64(loss, inputs, targets, clients):
    """The lowest loss of shares of a simplex by SLSQP in float64, from each corner and the middle."""
    stack = torch.stack(clients).double()

    def at(shares):
        return float(loss(inputs.double() @ torch.tensordot(torch.tensor(shares), stack, 1).T, targets)) / unity

    count, unity = len(clients), 1.0
    unity = at(np.full(count, 1 / count))
    simplex = {"type": "eq", "fun": lambda shares: shares.sum() - 1}
    starts = [np.full(count, 1 / count), *(0.97 * np.eye(count) + 0.01)]
    how = {"method": "SLSQP", "bounds": [(0, 1)] * count, "constraints": simplex, "tol": 1e-12}
    return min(minimize(at, one, **how).fun for one in starts) * unity


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e3])
def test_the_lowest_weights_do_not_depend_on_the_scale_of_the_loss(tmp_path, scale):
    generator = torch.Generator().manual_seed(0)
    inputs, true = torch.randn(60, 4, generator=generator), torch.randn(1, 4, generator=generator)
    clients = [scale * (true + size * torch.randn(1, 4, generator=generator)) for size in (2.0, 1.0, 0.5)]
    targets = scale * inputs @ true.T
    found = lowest_weights(_recorded(tmp_path, nn.MSELoss(), inputs, targets, clients), 0)
    assert found.loss == pytest.approx(_lowest64(nn.MSELoss(), inputs, targets.double(), clients), rel=1e-4)
    assert found.recorded_loss > 1.5 * found.loss and found.gain > 0


def test_a_client_that_went_far_away_does_not_end_the_descent(tmp_path):
    generator = torch.Generator().manual_seed(0)
    inputs, true = torch.randn(60, 4, generator=generator), torch.randn(3, 4, generator=generator)
    clients = [true + size * torch.randn(3, 4, generator=generator) for size in (2.0, 1.0, 1e3)]
    targets = (inputs @ true.T).argmax(1)
    found = lowest_weights(_recorded(tmp_path, nn.CrossEntropyLoss(), inputs, targets, clients), 0)
    assert found.loss == pytest.approx(_lowest64(nn.CrossEntropyLoss(), inputs, targets, clients), rel=1e-3)


@pytest.mark.parametrize("kind", ["class weights", "ignored"])
def test_the_lowest_weights_are_judged_by_the_loss_of_the_task(tmp_path, kind):
    generator = torch.Generator().manual_seed(0)
    inputs, true = torch.randn(60, 4, generator=generator), torch.randn(3, 4, generator=generator)
    clients = [2 * true.roll(turn, 0) + torch.randn(3, 4, generator=generator) for turn in range(3)]
    targets, weight = (inputs @ true.T).argmax(1), torch.tensor([1.0, 10.0, 0.1]) if kind == "class weights" else None
    targets[:7] = targets[:7] if kind == "class weights" else -100
    run = _recorded(tmp_path, nn.CrossEntropyLoss(weight=weight), inputs, targets, clients)
    found, exact = lowest_weights(run, 0), nn.CrossEntropyLoss(weight=None if weight is None else weight.double())
    assert found.loss == pytest.approx(_lowest64(exact, inputs, targets, clients), rel=1e-4)
    mean = torch.stack(clients).mean(0).double()
    assert found.recorded_loss == pytest.approx(float(exact(inputs.double() @ mean.T, targets)), rel=1e-5)
    assert found.gain > 0 and 0 < found.error < 1


def test_a_gain_is_measured_on_samples_that_the_weights_were_not_found_on(run):
    found = lowest_weights(run, 1)
    assert found.gain < found.recorded_loss - found.loss and found.error > 0


def test_one_sample_cannot_judge_the_weights_that_it_chose(run):
    with pytest.raises(ValueError, match=r"^one sample of test was selected; .* two halves, so give two\.$"):
        lowest_weights(run, 1, samples=1)
