from __future__ import annotations

import pytest
import torch

from landscape.curvature import krylov
from landscape.curvature.krylov import extreme, starting
from landscape.curvature.lanczos import Lanczos


def matrix(values, seed: int = 0):
    values = torch.as_tensor(values, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    turn = torch.linalg.qr(torch.randn(len(values), len(values), generator=generator, dtype=torch.float64)).Q
    return turn @ torch.diag(values) @ turn.T


def start(size: int):
    return torch.randn(size, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def test_the_basis_makes_the_matrix_tridiagonal():
    a = matrix(torch.linspace(-3, 5, 12))
    found = Lanczos(lambda v: a @ v, start(12), 7)
    found.step()
    while found.used < 7:
        found.follow()
        found.step()
    torch.testing.assert_close(found.basis @ found.basis.T, torch.eye(7, dtype=torch.float64))
    projected = torch.from_numpy(found.projected)
    torch.testing.assert_close(projected, projected.tril(1).triu(-1))
    torch.testing.assert_close(found.basis @ a @ found.basis.T, projected)


@pytest.mark.parametrize("values", [[9.0, 9, 9, 4, -3, 1, 0, 0, 0], [-7.0, 5, 5, 5, 1, 1, 0.5], [0.0] * 5, [2.0] * 6])
def test_repeated_eigenvalues_are_all_found(values):
    a, size = matrix(values), len(values)
    pairs = extreme(lambda v: a @ v, start(size), 4, tolerance=1e-8)
    expected = torch.tensor(sorted(values, key=abs, reverse=True)[:4], dtype=torch.float64)
    torch.testing.assert_close(pairs.values, expected)
    torch.testing.assert_close(a @ pairs.vectors.T, pairs.vectors.T * pairs.values, atol=1e-7, rtol=0)
    assert pairs.converged.all()


def test_a_repeated_outlier_in_a_large_space_is_found():
    values = torch.cat([torch.tensor([10.0, 10, 8, 6]), torch.rand(396, generator=torch.Generator().manual_seed(0))])
    a = matrix(values)
    pairs = extreme(lambda v: a @ v, start(400), 3, tolerance=1e-6)
    torch.testing.assert_close(pairs.values, torch.tensor([10.0, 10, 8], dtype=torch.float64))


def test_residuals_are_those_of_the_pairs():
    a = matrix(torch.randn(90, generator=torch.Generator().manual_seed(1)) ** 3)
    pairs = extreme(lambda v: a @ v, start(90), 3, tolerance=1e-2)
    lengths = (a @ pairs.vectors.T - pairs.vectors.T * pairs.values).norm(dim=0)
    assert (lengths <= pairs.residuals * (1 + 1e-9)).all()
    assert (pairs.residuals <= 1.5 * lengths).all()
    assert pairs.converged.all()
    assert (lengths / pairs.values.abs()).max() <= 1e-2


def test_pairs_of_a_product_that_changes_after_the_search_are_measured_alone():
    a, calls = matrix(torch.cat([torch.tensor([9.0, 7, 5]), torch.linspace(-1, 1, 60)])), []

    def shifting(v):
        calls.append(len(calls))
        return a @ v + 0.5 * (len(calls) > searched) * v.roll(1)

    searched = 10**9
    assert extreme(shifting, start(63), 3, tolerance=1e-3).converged.all()
    searched = len(calls) - 1
    calls.clear()
    pairs = extreme(shifting, start(63), 3, tolerance=1e-3)
    assert len(calls) == searched + 4 == pairs.products
    assert not pairs.converged.any()


def test_a_good_guess_saves_products():
    a = matrix(torch.cat([torch.tensor([5.0, 4.5]), torch.linspace(-2, 3, 60)]))
    cold = extreme(lambda v: a @ v, start(62), 1, tolerance=1e-4)
    vector = extreme(lambda v: a @ v, start(62), 1, tolerance=1e-4).vectors[0]
    warm = extreme(lambda v: a @ v, vector + 1e-4 * start(62), 1, tolerance=1e-4)
    assert abs(cold.values.item() - 5) < 1e-6
    assert warm.products < cold.products


def test_too_few_products_are_told():
    a = matrix(torch.linspace(1, 2, 50))
    pairs = extreme(lambda v: a @ v, start(50), 2, tolerance=1e-9, max_products=6)
    assert not pairs.converged.any()
    assert pairs.values.isnan().all() and pairs.vectors.isnan().all()
    assert (pairs.residuals > 0).all()


@pytest.mark.parametrize(
    ("which", "k", "products"),
    [("smallest", 7, 8), ("largest", 3, 4), ("magnitude", 5, 6), ("both", 6, 7), ("smallest", 4, 5)],
)
def test_an_unfinished_search_in_a_space_without_more_states_the_ends_alone(which, k, products):
    values = torch.cat([torch.full((20,), 1.0), torch.full((19,), -1.0), torch.tensor([-3.0])])
    a, order = matrix(values), {"smallest": values.sort().values, "largest": values.sort(descending=True).values}
    order["magnitude"] = values[values.abs().argsort(descending=True)]
    order["both"] = torch.cat([order["largest"][:3], order["smallest"][:3].flip(0)])
    pairs = extreme(lambda v: a @ v, start(40), k, which=which, max_products=products, tolerance=1e-6)
    found = pairs.converged.nonzero().flatten()
    assert 0 < len(found) < k
    torch.testing.assert_close(pairs.values[found], order[which].double()[found])


def test_the_square_of_the_tolerance_is_about_the_error_of_the_values():
    values = torch.cat([torch.tensor([9.0, -8.9, 7, 5, 4]), torch.linspace(-1, 3, 395)])
    a = matrix(values)
    for k, tolerance in [(1, 1e-2), (1, 1e-3), (5, 1e-2), (5, 1e-4)]:
        pairs = extreme(lambda v: a @ v, start(400), k, tolerance=tolerance)
        off = (pairs.values - values[:k]).abs() / values[:k].abs()
        assert off.max() <= 2 * tolerance**2
        assert (pairs.residuals / pairs.values.abs()).max() <= tolerance


def test_of_two_values_of_like_size_and_other_sign_the_larger_is_found():
    values = torch.cat([torch.tensor([-10.0, 9.99]), torch.linspace(-3, 3, 298)])
    turned = matrix(values)
    guess = torch.linalg.eigh(turned).eigenvectors[:, -1]  # that of 9.99
    for tolerance in (1e-2, 1e-3):
        pair = extreme(lambda v: turned @ v, starting(guess, 0, guess), 1, tolerance=tolerance)
        assert pair.values.item() == pytest.approx(-10, rel=2e-4)


def test_hints_are_mixed_with_a_random_vector_and_useless_ones_left_out():
    like = torch.zeros(50, dtype=torch.float64)
    plain, hint = starting(like, 3), 7 * torch.ones(50, dtype=torch.float64)
    assert plain.norm().item() == pytest.approx(1)
    torch.testing.assert_close(starting(like, 3, hint), plain + hint / hint.norm())
    assert torch.equal(starting(like, 3, like, hint * float("nan")), plain)


def test_products_spent_on_a_known_matrix():
    a = matrix(torch.cat([torch.tensor([10.0, 6, 4, 3, 2.5]), torch.linspace(-0.2, 1, 395)]))
    spent = [extreme(lambda v: a @ v, start(400), k, tolerance=1e-2).products for k in (1, 5)]
    assert spent[0] <= 8
    assert spent[1] <= 20 + 1  # one more confirms all values


@pytest.mark.parametrize("values", [[5.0, 5, 5, 3], [5.0, -5, 4, 4], [6.0, 5, 4, 3]])
def test_a_basis_that_takes_much_memory_is_used_again_for_copies(values, monkeypatch):
    matrix = torch.cat([torch.tensor(values), torch.linspace(-1, 1, 300)])
    start = starting(matrix, 0)
    whole = extreme(lambda v: matrix * v, start, 4, tolerance=1e-4)
    monkeypatch.setattr(krylov, "MOST", 9 * matrix.nbytes)
    monkeypatch.setattr(krylov, "MEMORY", 0)
    few = extreme(lambda v: matrix * v, start, 4, tolerance=1e-4)
    assert few.converged.all()
    torch.testing.assert_close(few.values, whole.values, rtol=1e-5, atol=0)
    images = matrix * few.vectors
    torch.testing.assert_close(images, few.values.float()[:, None] * few.vectors, rtol=0, atol=2e-3)
    torch.testing.assert_close(few.vectors @ few.vectors.T, torch.eye(4), rtol=0, atol=1e-3)


def test_a_large_matrix_of_few_different_values_has_all_its_pairs(monkeypatch):
    matrix = torch.cat([torch.tensor([5.0, 5, 3], dtype=torch.float64), torch.zeros(60, dtype=torch.float64)])
    monkeypatch.setattr(krylov, "MOST", 9 * matrix.nbytes)
    monkeypatch.setattr(krylov, "MEMORY", 0)
    pairs = extreme(lambda v: matrix * v, starting(matrix, 0), 4, tolerance=1e-6)
    torch.testing.assert_close(pairs.values, torch.tensor([5.0, 5, 3, 0], dtype=torch.float64), rtol=1e-9, atol=1e-9)
    images = pairs.vectors * matrix
    torch.testing.assert_close(images, pairs.values[:, None] * pairs.vectors, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 2, 3, 7])
def test_a_copy_converges_in_single_precision_though_rounding_hides_a_part_of_it(seed):
    values = torch.arange(1, 241, dtype=torch.float64) ** -0.95
    values[4] = values[3]
    single = matrix(values, seed).float()
    begin = torch.randn(240, generator=torch.Generator().manual_seed(seed))
    pairs = extreme(lambda v: single @ v, begin, 5, max_products=100)
    assert pairs.converged.all()
    torch.testing.assert_close(pairs.values, values[:5], rtol=1e-5, atol=0)
    torch.testing.assert_close(pairs.vectors @ pairs.vectors.T, torch.eye(5), rtol=0, atol=1e-4)
