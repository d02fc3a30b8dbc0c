"""FedLoRA: which factors are trained and averaged, and which variants average products exactly."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

import drift
import landscape
from drift.methods.fedlora import factor_mask

LORA = ("task.model=adapted:build", "task.model_options={rank=2, scale=4.0, residual=true}", "keep.clients=all")
VARIANTS = ("fedit", "ffa", "rolora", "fedex", "flora")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    fast = ("rounds=4", "local.lr=0.4", "local.epochs=2")
    return {
        name: tiny.trained(folder, f"method={{name='fedlora', variant='{name}'}}", *LORA, *fast) for name in VARIANTS
    }


def test_fedit_is_fedavg_of_the_factors(runs, tmp_path):
    plain = tiny.trained(tmp_path, *LORA, "rounds=4", "local.lr=0.4", "local.epochs=2")
    for index in plain.rounds():
        assert torch.equal(plain.round(index).end, runs["fedit"].round(index).end)


def test_a_factor_that_is_not_trained_keeps_its_bits(runs):
    for name, held in (("ffa", "aaaa"), ("rolora", "abab")):
        run = runs[name]
        for index, factor in enumerate(held):
            mask, record = factor_mask(run.task.layout, factor), run.round(index)
            other = factor_mask(run.task.layout, "b" if factor == "a" else "a")
            for model in (record.end, *record.clients):
                assert torch.equal(model[mask], record.start[mask])
                assert not torch.equal(model[other], record.start[other])


@pytest.mark.parametrize("name", VARIANTS)
def test_all_but_fedit_average_the_products(runs, name):
    gap = drift.product_gap(runs[name])
    products = drift.product_gap(runs["fedit"]).missed.values.max()
    if name == "fedit":
        np.testing.assert_allclose(gap.missed, gap.gap, rtol=1e-5)
        assert gap.missed.min() > 1e-3
    else:
        assert gap.missed.max() < 1e-5 * products
    if name in ("ffa", "rolora"):
        assert gap.gap.max() == 0
    if name in ("fedex", "flora"):
        assert gap.gap.min() > 1e-3


def test_the_global_model_of_an_exact_mean_is_the_mean_of_the_products(runs, tmp_path):
    for name in ("fedex", "flora"):
        found = drift.record_products(runs[name], tmp_path / name)
        for index in found.rounds():
            record = found.round(index)
            mean = record.weights.to(record.clients) @ record.clients
            torch.testing.assert_close(record.end, mean, rtol=0, atol=1e-5)
            loss = landscape.loss(found.task, record.end, split="test")
            assert loss == pytest.approx(runs[name].round(index).metrics["loss"], rel=1e-5)
    theta, run = runs["flora"].round(2).end, runs["flora"]
    assert float(theta[factor_mask(run.task.layout, "b")].abs().max()) == 0


def test_a_client_is_retrained_to_the_bit(runs):
    for run in runs.values():
        record = run.round(3)
        client = run.client(3, int(record.ids[1]))
        update = run.experiment.method.local(client)
        assert torch.equal(update.theta, torch.as_tensor(record.clients[1].as_subclass(torch.Tensor)))


def test_models_without_adapters_or_buffers_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"fedlora needs a model with low-rank adapters.* task.model_options.lora=4"):
        tiny.trained(tmp_path, "method=fedlora")
    with pytest.raises(ValueError, match=r"fedlora-fedex changes frozen weights.*task.model_options.residual=true"):
        tiny.trained(tmp_path, "method={name='fedlora', variant='fedex'}", "task.model=adapted:build")
    with pytest.raises(ValueError, match=r"fedlora-flora adds to frozen weights, .* ima cannot average"):
        tiny.experiment("method=ima", "method.base={name='fedlora', variant='flora'}")
