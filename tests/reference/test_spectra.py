"""Eigenvalues of matrices with flat, clustered, repeated, decaying and zero spectra, against numpy in float64."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from kinds import one_of_each
from reference.registry import agree
from reference.test_curvature import dense, generator, picked
from torch import nn

import landscape
from landscape.curvature.krylov import WHICH, extreme, starting
from landscape.model.samples import Samples
from landscape.model.task import Task

SPECTRA = {
    "flat": torch.ones(60),
    "zero": torch.zeros(60),
    "clustered": 1 + 1e-3 * torch.rand(60, generator=generator()),
    "even": torch.linspace(0, 1, 60),
    "repeated": torch.cat([torch.full((3,), 5.0), torch.full((2,), 3.0), torch.linspace(-0.8, 1, 55)]),
    "indefinite": torch.randn(60, generator=generator(1)) ** 3,
    "null space": torch.cat([torch.zeros(20), torch.rand(40, generator=generator(2))]),
    "opposite": torch.cat([torch.tensor([5.0, -5, 4, -4, 4]), torch.linspace(-1, 1, 55)]),
    "low rank": torch.cat([torch.tensor([5.0, 4, -3]), torch.zeros(57)]),
}


def close_where_converged(pairs, true: np.ndarray, k: int, which: str, *, rounding: float) -> int:
    """Compare converged values with the true ones; how many there are."""
    found, told, wanted = pairs.values.numpy(), pairs.converged.numpy(), picked(true, k, which)
    assert np.array_equal(np.isnan(found), ~told)
    norm = max(np.abs(true).max(), 1e-300)
    off = np.abs(np.abs(found) - np.abs(wanted)) if which == "magnitude" else np.abs(found - wanted)
    allowed = (1e-6 * np.abs(wanted) if which == "magnitude" else 3e-5 * norm) + rounding * norm
    assert (off[told] <= np.broadcast_to(allowed, off.shape)[told]).all(), (found, wanted)
    nearest = np.abs(true[:, None] - found[told]).min(axis=0)
    assert (nearest <= pairs.residuals.numpy()[told] + rounding * norm).all()  # an eigenvalue within the residual
    return int(told.sum())


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize(
    ("spectrum", "rows"),
    one_of_each(product(SPECTRA, [None, 20]), [*product(SPECTRA, [20]), ("repeated", None), ("indefinite", None)]),
)
def test_hostile_spectra(spectrum, which, rows):
    values = SPECTRA[spectrum].double()
    turn = torch.linalg.qr(torch.randn(60, 60, generator=generator(3), dtype=torch.float64)).Q
    for scale, dtype, rounding, counts in ((1e6, torch.float64, 1e-12, (1, 3)), (1e-6, torch.float32, 2e-5, (3, 10))):
        matrix = (scale * turn @ torch.diag(values) @ turn.T).to(dtype)
        true = np.linalg.eigvalsh(matrix.double().numpy())
        for k in counts:
            if which == "both" and k == 1:
                continue
            pairs = extreme(lambda v, a=matrix: a @ v, starting(matrix[0], 2), k, which=which, rows=rows)
            told = close_where_converged(pairs, true, k, which, rounding=rounding)
            assert told == k, (pairs.values, pairs.residuals)


DECAYS = {
    "slow": 10.0 ** (-8 * torch.arange(60) / 60),
    "fast": 10.0 ** (-torch.arange(60) / 2.5),
    "alternating": 10.0 ** (-0.4 * torch.arange(60)) * (-1.0) ** torch.arange(60),
}


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("spectrum", DECAYS)
def test_small_values_of_float32_matrices_are_right_or_zero_or_missing(spectrum, which):
    turn = torch.linalg.qr(torch.randn(60, 60, generator=generator(3), dtype=torch.float64)).Q
    for scale, k in ((1.0, 20), (1e6, 10), (1e-6, 20)):
        matrix = (scale * turn @ torch.diag(DECAYS[spectrum].double()) @ turn.T).float()
        wide = (matrix + matrix.T).double() / 2
        true = np.linalg.eigvalsh(wide.numpy())
        for make in (lambda: None, lambda a=wide: lambda v: a @ v):
            options = {"which": which, "wide": make, "max_products": 200}
            pairs = extreme(lambda v, a=matrix: (a @ v + a.T @ v) / 2, starting(matrix[0], 2), k, **options)
            told, wanted = pairs.converged.numpy(), picked(true, k, which)
            found, zero = pairs.values.numpy(), pairs.values.numpy() == 0
            off = np.abs(np.abs(found) - np.abs(wanted)) if which == "magnitude" else np.abs(found - wanted)
            assert (off <= 0.01 * np.abs(wanted))[told & ~zero].all(), (found, wanted)
            assert (off <= pairs.residuals.numpy())[told & zero].all(), (found, wanted)
            assert (pairs.residuals.numpy()[zero] <= 2e-4 * np.abs(true).max()).all()


def test_small_eigenvalues_of_a_float32_model():
    """Least squares with inputs of very different sizes: the largest curvature is 1e8 times the tenth."""
    draw = generator(7)
    inputs = torch.randn(50, 10, generator=draw) * 10.0 ** (-4 * torch.arange(10) / 9)
    samples = Samples(inputs, torch.randn(50, 2, generator=draw))
    task = Task(nn.Linear(10, 2, bias=False), {"train": samples}, loss=lambda o, t: (o - t).square().mean(1))
    true = picked(np.linalg.eigvalsh(dense(task)), 20, "magnitude")
    ds = landscape.hessian(task, task.theta, k=20)
    found, told = ds.eigenvalue.values, ds.converged.values
    known = told & (found != 0)
    assert known[:10].all() and (found[told] == 0).any()
    agree("landscape.hessian", found[known] / true[known], np.ones(known.sum()), relative=0.01)
    assert (true <= ds.residual.values)[told & ~known].all()
