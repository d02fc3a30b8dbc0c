from __future__ import annotations

import pytest
import torch
from torch import Tensor

from landscape.curvature.krylov import extreme
from landscape.curvature.lanczos import norm


def matrix(values: list[float] | Tensor, seed: int = 0) -> Tensor:
    values = torch.as_tensor(values, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    turn = torch.linalg.qr(torch.randn(len(values), len(values), generator=generator, dtype=torch.float64)).Q
    return turn @ torch.diag(values) @ turn.T


def eigenpairs(a: Tensor, k: int, **options):
    start = torch.randn(len(a), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return extreme(lambda v: a @ v, start, k, **{"tolerance": 1e-8, **options})


def largest(values: Tensor, k: int) -> Tensor:
    return values[values.abs().argsort(descending=True)][:k]


def test_pairs_are_those_of_largest_magnitude_with_their_sign():
    a = matrix([1.0, -9.0, 4.0, -2.0, 7.0, 0.5, 0.0])
    pairs = eigenpairs(a, 4)
    torch.testing.assert_close(pairs.values, torch.tensor([-9.0, 7, 4, -2], dtype=torch.float64))
    torch.testing.assert_close(a @ pairs.vectors.T, pairs.vectors.T * pairs.values)
    assert pairs.converged.all()


@pytest.mark.parametrize("rows", [9, 12, 60])
def test_restarts_do_not_change_the_answer(rows):
    values = torch.randn(150, generator=torch.Generator().manual_seed(1), dtype=torch.float64) ** 3
    pairs = eigenpairs(matrix(values), 5, rows=rows)
    assert pairs.converged.all()
    assert pairs.products > 12
    torch.testing.assert_close(pairs.values, largest(values, 5), rtol=1e-10, atol=0)


def test_repeated_eigenvalues_are_found_as_often_as_they_occur():
    values = torch.cat([torch.full((3,), 5.0), torch.tensor([3.0, 3.0]), torch.linspace(-0.8, 1, 75)]).double()
    torch.testing.assert_close(eigenpairs(matrix(values), 6).values, largest(values, 6), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("values", [[2.0] * 6, [0.0] * 6, [4.0, 0, 0, 0, 0, 0]])
def test_degenerate_matrices(values):
    pairs = eigenpairs(matrix(values), 3)
    torch.testing.assert_close(pairs.values, torch.tensor(sorted(values)[::-1][:3], dtype=torch.float64))
    torch.testing.assert_close(pairs.vectors @ pairs.vectors.T, torch.eye(3, dtype=torch.float64))


def test_all_pairs_of_a_small_matrix():
    a = matrix([3.0, -2.0, 1.0])
    torch.testing.assert_close(eigenpairs(a, 3).values, torch.tensor([3.0, -2, 1], dtype=torch.float64))
    torch.testing.assert_close(eigenpairs(a[:1, :1], 1).values, a[0, :1])


def test_residuals_bound_the_measured_ones_and_keep_the_tolerance():
    a = matrix(torch.linspace(-3, 10, 90))
    pairs = eigenpairs(a, 4, tolerance=1e-3)
    measured = (pairs.vectors @ a - pairs.values[:, None] * pairs.vectors).norm(dim=1)
    assert (measured <= pairs.residuals * (1 + 1e-9)).all()
    assert (pairs.residuals <= 1.5 * measured).all()
    assert (pairs.residuals / pairs.values.abs()).max() <= 1e-3


def test_float32_reaches_its_rounding():
    values = torch.cat([torch.tensor([1e3, 10.0, 1.0, 1e-2]), torch.linspace(0, 1e-3, 60)])
    a = matrix(values).float()
    pairs = extreme(lambda v: a @ v, torch.randn(64, generator=torch.Generator().manual_seed(2)), 3)
    assert pairs.converged.all()
    torch.testing.assert_close(pairs.values, values[:3].double(), rtol=1e-3, atol=0)


def test_too_few_products_say_so():
    pairs = eigenpairs(matrix(torch.linspace(1, 2, 80)), 5, max_products=9)
    assert not pairs.converged.any()
    assert pairs.products == 9 + 5  # one by one, as no bound is short
    assert pairs.residuals.max() > 1e-8


def test_same_seed_same_bits():
    a = matrix(torch.linspace(-1, 2, 50))
    assert torch.equal(eigenpairs(a, 2, seed=3).vectors, eigenpairs(a, 2, seed=3).vectors)


def test_bad_values_are_named():
    a = matrix([1.0, 2.0])
    with pytest.raises(ValueError, match="k is 3, the matrix has 2"):
        eigenpairs(a, 3)
    with pytest.raises(ValueError, match="at least 9"):
        eigenpairs(matrix([1.0] * 9), 5, rows=6)
    with pytest.raises(ValueError, match="not finite"):
        eigenpairs(a * float("nan"), 1)


def test_float32_keeps_its_digits_in_long_vectors():
    outliers = torch.tensor([5.0, -4, 3, 2])
    matrix = torch.cat([outliers, torch.rand(3_000_000, generator=torch.Generator().manual_seed(0))])
    pairs = extreme(lambda v: matrix * v, torch.ones_like(matrix), 4, tolerance=1e-3)
    assert torch.allclose(pairs.values, outliers.double(), rtol=1e-5, atol=0)
    assert torch.allclose(pairs.vectors.double().norm(dim=1), torch.ones(4, dtype=torch.float64), rtol=1e-6, atol=0)


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1.0, 1e25])
def test_lengths_whose_squares_float32_does_not_hold(scale):
    vector = scale * torch.randn(20_000, generator=torch.Generator().manual_seed(0))
    assert norm(vector) == pytest.approx(vector.double().norm().item(), rel=1e-5)
