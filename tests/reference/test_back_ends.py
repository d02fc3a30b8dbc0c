"""The other back ends of the Hessian: their values are measured by own products, within what they may take."""

from __future__ import annotations

import numpy as np
import pytest
from reference.registry import agree
from reference.test_curvature import close, dense, picked, posed

import landscape
from landscape.curvature.krylov import WHICH
from landscape.spectra import curvlinops


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # what curvlinops imports still calls it
@pytest.mark.parametrize("backend", ["curvlinops", "pyhessian"])
def test_other_back_ends_are_measured_by_own_products(backend):
    pytest.importorskip(backend)
    task = posed("mlp")
    matrix = dense(task)
    ds = landscape.hessian(task, task.theta, k=2, backend=backend, vectors=True, tolerance=1e-6)
    assert ds.converged.all()
    vectors = ds.eigenvector.values.astype(np.float64)
    lengths = np.linalg.norm(vectors @ matrix - ds.eigenvalue.values[:, None] * vectors, axis=1)
    np.testing.assert_allclose(ds.residual, lengths, rtol=0.05, atol=1e-6 * np.abs(matrix).max())
    agree("landscape.hessian", ds.eigenvalue.values, picked(np.linalg.eigvalsh(matrix), 2, "magnitude"), relative=1e-3)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("which", WHICH)
def test_curvlinops_finds_close_eigenvalues(which):
    pytest.importorskip("curvlinops")
    task, true = close()
    ds = landscape.hessian(task, task.theta, k=3, which=which, backend="curvlinops")
    assert ds.converged.all() and ds.products <= 500 + 3
    agree("landscape.hessian", ds.eigenvalue.values, picked(true, 3, which), relative=3e-6, absolute=3e-6 * true[-1])


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_curvlinops_states_no_value_that_its_own_vector_does_not_have(monkeypatch):
    pytest.importorskip("curvlinops")
    task, _ = close()
    solver = curvlinops.eigsh

    def off(matrix, k, **options):
        values, columns = solver(matrix, k, **options)
        values[-1] *= 1.01
        columns[:, 0] = columns[:, 1]
        return values, columns

    monkeypatch.setattr(curvlinops, "eigsh", off)
    ds = landscape.hessian(task, task.theta, k=3, backend="curvlinops", vectors=True)
    assert ds.converged.values.tolist() == [False, True, False]
    assert np.array_equal(np.isnan(ds.eigenvalue), ~ds.converged)
    assert np.array_equal(np.isnan(ds.eigenvector).all("parameter"), ~ds.converged)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("most", [5, 6, 19, 38])
def test_curvlinops_ends_within_the_products_that_it_may_take(monkeypatch, most):
    package = pytest.importorskip("curvlinops")
    task, _ = close()
    operator, spent = package.HessianLinearOperator, []

    class Counted(operator):
        def __matmul__(self, other):
            spent.append(other)
            return super().__matmul__(other)

    monkeypatch.setattr(package, "HessianLinearOperator", Counted)
    with pytest.raises(ValueError, match=rf"max_products (is )?\(?{most}\b"):
        landscape.hessian(task, task.theta, k=3, tolerance=1e-9, backend="curvlinops", max_products=most)
    assert len(spent) <= most
