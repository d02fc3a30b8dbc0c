"""Curvature of a tiny run's global models: traces, layers, and which matrix they are of."""

from __future__ import annotations

import numpy as np
import pytest

from drift.analyses.curvature.densities import density_rounds, trace_rounds
from drift.analyses.curvature.eigenvalues import eigen_rounds, layer_rounds, sharpness_rounds
from landscape.curvature.layer_blocks import layer_eigenvalues
from landscape.curvature.trace import trace
from tests import tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "task.model=mlp", "task.model_options={hidden=[4]}")


def test_traces_are_those_of_the_global_models(run):
    ds = trace_rounds(run, rounds=[0, -1], products=200)
    assert ds["round"].values.tolist() == [0, 2]
    for prefix, curvature in (("", "hessian"), ("gauss_newton_", "gauss_newton")):
        alone = trace(run.task, run.round(-1).end, products=200, curvature=curvature)
        assert float(ds[f"{prefix}trace"][1]) == float(alone.trace)
    assert int(ds.parameters) == run.task.layout.size
    np.testing.assert_array_equal(ds.standard_error, 0)  # exact: fewer parameters than products


def test_layers_are_those_of_the_global_models(run):
    ds = layer_rounds(run, rounds=[1])
    alone = layer_eigenvalues(run.task, run.round(1).end, seed=1)
    np.testing.assert_array_equal(ds.eigenvalue[0], alone.eigenvalue)
    assert ds.layer.values.tolist() == list(run.task.layout.slices())
    assert int(ds["size"].sum()) == run.task.layout.size


@pytest.mark.parametrize(
    ("analysis", "options"),
    [(eigen_rounds, {"k": 1}), (sharpness_rounds, {"batches": 1}), (density_rounds, {"steps": 5})],
)
def test_the_gauss_newton_matrix_has_no_negative_eigenvalue(run, analysis, options):
    hessian, positive = (
        analysis(run, rounds=[0], curvature=curvature, **options) for curvature in ("hessian", "gauss_newton")
    )
    if analysis is not density_rounds:
        assert float(positive.eigenvalue.min()) > -1e-6
    assert not np.allclose(hessian.eigenvalue, positive.eigenvalue, rtol=1e-4)


def test_blocks_of_single_layers_are_gauss_newton_blocks_with_relu(run):
    hessian, positive = (layer_rounds(run, rounds=[0], curvature=name) for name in ("hessian", "gauss_newton"))
    np.testing.assert_allclose(hessian.eigenvalue, positive.eigenvalue, rtol=1e-4)


def test_back_ends_agree_over_rounds(run):
    pytest.importorskip("curvlinops")
    values = [eigen_rounds(run, rounds=[-1], k=2, backend=name).eigenvalue for name in ("native", "curvlinops")]
    np.testing.assert_allclose(*values, rtol=1e-3)
