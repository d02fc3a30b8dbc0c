from __future__ import annotations

import math
from statistics import median

import pytest
import torch

from landscape.measures.similarity import cka, mean_cka, pairwise_cka

KERNELS = pytest.mark.parametrize("kernel", ["linear", "rbf"])


def outputs(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@KERNELS
def test_scale_shift_and_rotation_do_not_matter(kernel):
    x = outputs(17, 5)
    turn = torch.linalg.qr(outputs(5, 5, seed=1)).Q
    for y in (x, 3.7 * x, -x, x + 100 * outputs(5, seed=2), x @ turn):
        assert cka(x, y, kernel=kernel) == pytest.approx(1, abs=1e-12)


def test_linear_equals_the_gram_matrix_form():
    x, y = outputs(19, 5), outputs(19, 3, seed=1)
    centre = torch.eye(19, dtype=torch.float64) - 1 / 19
    k, m = (centre @ z @ z.T @ centre for z in (x, y))
    assert cka(x, y) == pytest.approx(((k * m).sum() / (k.norm() * m.norm())).item(), rel=1e-12)


def test_rbf_equals_its_definition():  # of 36 distances: the median is the mean of two
    x, y = outputs(9, 4), outputs(9, 3, seed=1)
    centre = torch.eye(9, dtype=torch.float64) - 1 / 9
    grams = []
    for z in (x, y):
        squares = torch.tensor([[((a - b) ** 2).sum().item() for b in z] for a in z], dtype=torch.float64)
        grams.append(centre @ torch.exp(-squares / (2 * median(squares[squares > 0].tolist()))) @ centre)
    k, m = grams
    assert cka(x, y, kernel="rbf") == pytest.approx(((k * m).sum() / (k.norm() * m.norm())).item(), rel=1e-12)


def test_outputs_without_common_part_have_zero():
    x = torch.tensor([[1.0], [1], [-1], [-1]])
    y = torch.tensor([[1.0], [-1], [1], [-1]])
    assert cka(x, y) == pytest.approx(0, abs=1e-15)


@KERNELS
def test_constant_outputs_have_none(kernel):
    constant = torch.full((17, 5), 0.1)
    assert math.isnan(cka(outputs(17, 5), constant, kernel=kernel))
    assert math.isnan(cka(constant, constant, kernel=kernel))


@pytest.mark.parametrize(("dtype", "varies"), [(torch.float32, False), (torch.float64, True)])
def test_outputs_that_differ_by_rounding_alone_are_constant(dtype, varies):
    draw = torch.Generator().manual_seed(0)
    other = torch.randn(60, 4, generator=draw)
    nearly = (1000 * torch.ones(60, 3, dtype=torch.float64) + 1e-4 * torch.randn(60, 3, generator=draw)).to(dtype)
    assert math.isnan(cka(nearly, other)) is not varies
    shifted = (100 + torch.randn(60, 3, generator=draw).double()).float()  # an offset alone is no reason
    assert 0 < cka(shifted, other) < 1


@KERNELS
def test_mean_is_over_the_pairs_that_have_a_value(kernel):
    many = outputs(4, 11, 3)
    many[2] = 5
    pairs = [cka(many[i], many[j], kernel=kernel) for i, j in [(0, 1), (0, 3), (1, 3)]]
    assert mean_cka(many, kernel=kernel) == pytest.approx(sum(pairs) / 3, rel=1e-12)
    matrix = pairwise_cka(many, kernel=kernel)
    assert matrix.shape == (4, 4)
    assert matrix[2].isnan().all()
    assert matrix[1, 3] == pytest.approx(pairs[2])
    assert matrix[0, 0] == 1


def test_one_model_has_no_pairs():
    assert math.isnan(mean_cka(outputs(1, 7, 2)))


def test_bad_values_are_named():
    x = outputs(6, 2)
    with pytest.raises(ValueError, match="Did you mean 'linear'"):
        cka(x, x, kernel="liner")
    with pytest.raises(ValueError, match="x has 6 inputs, y has 5"):
        cka(x, x[:5])
    with pytest.raises(ValueError, match="not finite"):
        cka(x, x * torch.inf)
