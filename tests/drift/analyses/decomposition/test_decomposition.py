"""The five factors: exact identities, a slow count by loops, and the analysis of a real small run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from drift.analyses.decomposition.decomposition import decomposition
from drift.analyses.decomposition.evaluation_samples import select_samples
from drift.config.load import read
from drift.runs.run import Run
from drift.simulation.simulate import simulate
from tests.drift import hand
from tests.oracles import mlp_task, thetas

REPLICATES, CLIENTS, SAMPLES, CLASSES = 3, 4, 9, 5


def made(replicates: int = REPLICATES) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Outputs (M, m, n, C), targets (n, C), members (m, n), weights (m,) and shares (n,), all unequal."""
    outputs = hand.random(replicates, CLIENTS, SAMPLES, CLASSES, seed=1)
    targets = hand.random(SAMPLES, CLASSES, seed=2)
    owner = torch.tensor([0, 0, 1, 2, 2, 2, 3, 3, 3])
    weights, shares = hand.vector(2, 7, 4, 1) / 14, hand.random(SAMPLES, seed=3).abs()
    return outputs, targets, owner == torch.arange(CLIENTS)[:, None], weights, shares / shares.sum()


def by_loops(outputs: Tensor, targets: Tensor, member: Tensor, weights: Tensor, shares: Tensor) -> dict[str, float]:
    """Every factor as papers.md 3.2.1 writes it, one term at a time."""
    replicates, clients, samples, _ = outputs.shape
    names = ["B_T", "B_H", "B_TH", "bias2", "var", "cov", "cov_bound", "train_bias", "heterogeneity_bias"]
    found = dict.fromkeys(names, 0.0)
    means = outputs.mean(0)
    for x in range(samples):
        train, rest = torch.zeros(2, targets.shape[1], dtype=torch.float64)
        least = np.inf
        for k in range(clients):
            term = weights[k] * (targets[x] - means[k, x])
            train, rest = (train + term, rest) if member[k, x] else (train, rest + term)
            for other in range(clients):
                product = sum(
                    float((outputs[r, k, x] - means[k, x]) @ (outputs[r, other, x] - means[other, x]))
                    for r in range(replicates)
                ) / (replicates - 1)
                name = "var" if k == other else "cov"
                found[name] += float(shares[x] * weights[k] * weights[other]) * product
                least = least if k == other else min(least, product)
        found["cov_bound"] += float(shares[x] * (1 - weights @ weights)) * least
        found["B_T"] += float(shares[x] * train @ train)
        found["B_H"] += float(shares[x] * rest @ rest)
        found["B_TH"] += float(2 * shares[x] * train @ rest)
        found["bias2"] += float(shares[x] * (train + rest) @ (train + rest))
    for k in range(clients):
        error = (targets - means[k]).square().sum(1)
        for name, where in (("train_bias", member[k]), ("heterogeneity_bias", ~member[k])):
            found[name] += float(weights[k] * (shares * error)[where].sum() / shares[where].sum())
    return found


def test_factors_equal_the_loops() -> None:
    outputs, targets, member, weights, shares = made()
    found = hand.five_factors(outputs, targets, member, weights, shares=shares)
    for name, value in by_loops(outputs, targets, member, weights, shares).items():
        assert found[name] == pytest.approx(value, rel=1e-12), name


@pytest.mark.parametrize("replicates", [2, 3, 5])
def test_ensemble_loss_is_bias_and_shrunken_variance_and_covariance(replicates: int) -> None:
    outputs, targets, member, weights, shares = made(replicates)
    found = hand.five_factors(outputs, targets, member, weights, shares=shares)
    ensemble = torch.einsum("k,rknc->rnc", weights, outputs)
    loss = float((targets - ensemble).square().sum(-1).mean(0) @ shares)
    assert found["wens_loss"] == pytest.approx(loss, rel=1e-13)
    both = (replicates - 1) / replicates * (found["var"] + found["cov"])
    assert loss == pytest.approx(found["bias2"] + both, rel=1e-13)
    assert abs(found["identity_gap"]) < 1e-13 * loss


def test_parts_of_the_bias_add_up() -> None:
    found = hand.five_factors(*made()[:4])
    assert found["bias2"] == pytest.approx(found["B_T"] + found["B_H"] + found["B_TH"], rel=1e-13)


def test_one_model_per_client_has_no_variance_and_its_loss_is_the_bias() -> None:
    found = hand.five_factors(*made(1)[:4])
    assert np.isnan([found["var"], found["cov"]]).all()
    assert found["wens_loss"] == pytest.approx(found["bias2"], rel=1e-13)


def test_equal_clients_follow_corollary_2() -> None:
    outputs, targets, member, _, _ = made()
    found = hand.five_factors(outputs, targets, member, torch.full((CLIENTS,), 1 / CLIENTS, dtype=torch.float64))
    deviation = outputs - outputs.mean(0)
    each = deviation.square().sum(-1).sum(0).mean(1) / (REPLICATES - 1)
    assert found["var"] == pytest.approx(float(each.sum()) / CLIENTS**2)


def test_covariance_stays_above_the_bound_of_corollary_1() -> None:
    outputs, targets, member, weights, shares = made()
    equal = torch.full((CLIENTS,), 1 / CLIENTS, dtype=torch.float64)
    for each in (weights, equal):
        found = hand.five_factors(outputs, targets, member, each, shares=shares)
        assert found["cov"] >= found["cov_bound"]
    deviation = outputs - outputs.mean(0)
    pairs = torch.einsum("rknc,rlnc->nkl", deviation, deviation) / (REPLICATES - 1)
    off = pairs[:, ~torch.eye(CLIENTS, dtype=torch.bool)]
    left, right = off.sum(1) @ shares / CLIENTS**2, (CLIENTS - 1) / CLIENTS * off.amin(1) @ shares
    assert found["cov"] == pytest.approx(float(left))
    assert found["cov_bound"] == pytest.approx(float(right))


def test_equal_clients_meet_the_bound_and_one_without_samples_has_no_part_in_it() -> None:
    same = made()[0][:, :1].expand(-1, CLIENTS, -1, -1)
    targets, member, weights = *made()[1:3], made()[3]
    found = hand.five_factors(same, targets, member, weights)
    assert found["cov"] == pytest.approx(found["cov_bound"])
    assert found["cov"] == pytest.approx(found["var"] * float((1 - weights @ weights) / (weights @ weights)))
    opposite = torch.cat([same[:, :2], -same[:, 2:3]], dim=1)
    alone = hand.five_factors(opposite, targets, member[:3], hand.vector(0.3, 0.7, 0))
    assert alone["cov"] == pytest.approx(alone["cov_bound"])
    assert np.isnan(hand.five_factors(same[:, :1], targets, member[:1], hand.vector(1))["cov_bound"])


def test_replicas_with_the_same_noise_have_covariance_and_independent_signs_have_none() -> None:
    noise = hand.vector(1, -1)[:, None, None, None] * torch.ones(2, 2, 1, 1, dtype=torch.float64)
    targets, member = torch.zeros(1, 1, dtype=torch.float64), torch.ones(2, 1, dtype=torch.bool)
    weights = hand.vector(0.25, 0.75)
    found = hand.five_factors(noise, targets, member, weights)
    assert found["cov"] == pytest.approx(2 * 0.25 * 0.75 * 2)  # sample covariance of (1, -1) with itself is 2
    noise[:, 1] *= -1
    assert hand.five_factors(noise, targets, member, weights)["cov"] == pytest.approx(-2 * 0.25 * 0.75 * 2)
    assert found["train_bias"] == 0
    assert np.isnan(found["heterogeneity_bias"])


def test_linear_model_has_no_gap() -> None:
    task, weights = hand.task(3), hand.vector(0.25, 0.75)
    models = hand.random(2, 2, 3, seed=5)
    outputs = torch.stack([torch.stack([task.outputs(w, "test") for w in row]) for row in models])
    averages = torch.einsum("k,rkd->rd", weights, models)
    fma = torch.stack([task.outputs(w, "test") for w in averages])
    member = torch.ones(2, 7, dtype=torch.bool)
    found = hand.five_factors(outputs, task.samples["test"].targets[:, None], member, weights, fma=fma)
    assert abs(found["gap"]) < 1e-14
    assert abs(found["residual"]) < 1e-14


def test_gap_of_a_smooth_net_is_quadratic_in_the_locality() -> None:
    task, weights = mlp_task(), hand.vector(0.2, 0.5, 0.3)
    models, targets = thetas(task, 3), torch.zeros(11, 3, dtype=torch.float64)
    centre = weights @ models

    def gap(scale: float) -> float:
        outputs = torch.stack([task.outputs(centre + scale * (w - centre), "test") for w in models])[None]
        member = torch.ones(3, 11, dtype=torch.bool)
        return hand.five_factors(outputs, targets, member, weights, fma=task.outputs(centre, "test")[None])["gap"]

    slope = np.log2(gap(0.02) / gap(0.01))
    assert slope == pytest.approx(2, abs=0.02)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three rounds of FedAvg, 2 of 4 clients a round, label-skewed, unequal sizes."""
    experiment = hand.experiment(rounds=3, clients={"partition": "dirichlet", "concentration": 0.5})
    return simulate(read(experiment), runs=tmp_path_factory.mktemp("runs"))


def test_replicate_0_is_the_recorded_client_to_the_bit(run: Run) -> None:
    for index in (0, 2):
        record = run.round(index)
        for row, client in enumerate(record.ids.tolist()):
            again = run.method.local(run.client(index, client))
            assert torch.equal(again.theta, record.kept("clients")[row])
            other = run.method.local(run.client(index, client, replicate=1))
            assert not torch.equal(other.theta, again.theta)


def test_single_estimator_on_whole_data_by_hand(run: Run) -> None:
    found = decomposition(run, rounds=[1], samples_per_client=10**6).isel(round=0)
    record, train = run.round(1), run.task.samples["train"]
    indices = np.concatenate([run.parts[k] for k in record.ids.tolist()])
    samples = train[torch.from_numpy(indices)]
    target = F.one_hot(samples.targets, len(run.dataset.classes)).double()
    clients = [run.task.outputs(theta, samples).softmax(1).double() for theta in record.kept("clients")]
    ensemble = sum(float(p) * f for p, f in zip(record.shares, clients, strict=True))
    assert float(found.bias2) == pytest.approx(float((target - ensemble).square().sum(1).mean()), rel=1e-5)
    fma = run.task.outputs(record.fma, samples).softmax(1).double()
    assert float(found.fma_loss) == pytest.approx(float((target - fma).square().sum(1).mean()), rel=1e-5)
    own = [
        float((target - f)[np.isin(indices, run.parts[k])].square().sum(1).mean())
        for k, f in zip(record.ids.tolist(), clients, strict=True)
    ]
    assert float(found.train_bias) == pytest.approx(float(record.shares @ hand.vector(*own)), rel=1e-5)
    locality = max(float((theta - record.fma).norm()) for theta in record.kept("clients"))
    assert float(found.locality) == pytest.approx(locality, rel=1e-5)
    assert np.isnan(float(found["var"]))


def test_drawn_samples_stand_for_their_clients_share(run: Run) -> None:
    record = run.round(0)
    chosen = select_samples(run, record, 3, "train", "all")
    sizes = np.array([len(part) for part in run.parts])
    owner = [next(k for k, part in enumerate(run.parts) if i in part) for i in chosen.numbers]
    inputs = run.task.samples["train"].inputs
    assert isinstance(inputs, Tensor)
    assert torch.equal(chosen.samples(slice(None)).inputs, inputs[torch.from_numpy(chosen.numbers)])
    for client in set(owner):
        mass = float(chosen.shares[torch.tensor(owner) == client].sum())
        assert mass == pytest.approx(sizes[client] / sizes.sum())


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("union", ["cohort", "all"])
def test_local_estimator_keeps_the_identities(run: Run, split: Any, union: Any) -> None:
    found = decomposition(run, estimator="local", replicates=3, split=split, union=union, samples_per_client=20)
    assert found.sizes == {"round": 3}
    both = 2 / 3 * (found["var"] + found["cov"])
    np.testing.assert_allclose(found.wens_loss, found.bias2 + both, rtol=1e-10)
    np.testing.assert_allclose(found.bias2, found.B_T + found.B_H + found.B_TH, rtol=1e-10)
    np.testing.assert_allclose(found.residual, found.fma_loss - found.wens_loss)
    assert float(np.abs(found.identity_gap).max()) < 1e-12
    assert (found["cov"] >= found["cov_bound"] - 1e-15).all()
    assert (found["var"] > 0).all()
    assert (found.wens_error <= 1).all()
    assert ("label" in found.attrs["membership"]) == (split == "test")


def test_too_few_replicates_are_refused(run: Run) -> None:
    with pytest.raises(ValueError, match="replicates is 1"):
        decomposition(run, estimator="local", replicates=1)


def test_a_run_without_client_models_says_so(tmp_path: Path) -> None:
    bare = simulate(read(hand.experiment(rounds=1, keep={"clients": "none"})), runs=tmp_path)
    with pytest.raises(LookupError, match=r"keep\.clients"):
        decomposition(bare)
    with pytest.raises(LookupError, match=r"keep\.clients"):
        decomposition(bare, rounds=[0])
