from __future__ import annotations

import pytest
import torch

from landscape.measures.norms import weight_histogram, weight_norm


def test_norm_of_one_and_of_several_models():
    thetas = torch.tensor([[3.0, 4.0], [0.0, -2.0], [1.0, 1.0]])
    expected = torch.tensor([5.0, 2.0, 2**0.5], dtype=torch.float64)
    torch.testing.assert_close(weight_norm(thetas), expected)
    assert weight_norm(thetas[0]).item() == 5


def test_histogram_counts_by_hand():
    ds = weight_histogram(torch.tensor([-1.0, -0.005, 0.0, 0.009, 0.01, 0.4, 1.0], dtype=torch.float64), bins=5)
    assert ds["count"].values.tolist() == [1, 0, 4, 1, 1]
    assert ds["value"].values.tolist() == pytest.approx([-0.8, -0.4, 0, 0.4, 0.8])
    assert ds.near_zero.item() == 3
    assert ds.outside.item() == 0


def test_every_parameter_is_counted_once():
    theta = torch.randn(1234)
    ds = weight_histogram(theta, limit=0.7)
    assert ds["count"].sum().item() + ds.outside.item() == 1234
    assert ds.outside.item() == (theta.abs() > 0.7).sum()
    assert ds.sizes["value"] == 101
    assert weight_histogram(theta)["count"].sum().item() == 1234
    assert ds.norm.item() == pytest.approx(theta.double().norm().item())


def test_zero_model_has_a_histogram():
    ds = weight_histogram(torch.zeros(7))
    assert ds["count"].sel(value=0, method="nearest").item() == 7 == ds.near_zero.item()


def test_bad_values_are_named():
    with pytest.raises(ValueError, match="1 of theta's entries are not finite"):
        weight_histogram(torch.tensor([1.0, torch.inf]))
    with pytest.raises(ValueError, match="bins is 0"):
        weight_histogram(torch.ones(2), bins=0)
    with pytest.raises(ValueError, match="limit is 0"):
        weight_histogram(torch.ones(2), limit=0)
    with pytest.raises(ValueError, match="no entries"):
        weight_histogram(torch.ones(0))
