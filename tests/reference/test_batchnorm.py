"""Every public function that takes a model, on a model whose running statistics are far from the untrained ones.

Each is compared with the module itself: its state dict loaded, eval mode, one sample after the other, in float64.
"""

from __future__ import annotations

import inspect
from itertools import product

import numpy as np
import pytest
import torch
from kinds import one_of_each
from reference.normalised_models import (
    FORMS,
    OTHER,
    TASK,
    THETA,
    A,
    B,
    C,
    at,
    by_magnitude,
    carried,
    hessian,
    loss,
    network,
    trained,
)
from reference.registry import agree, reference
from reference.statistics_checks import CHECKS
from torch import Tensor

import landscape
from landscape.measures.ensemble import subset_errors
from landscape.measures.predictions import predictions

BY = "module with its state dict in eval mode, float64, one sample after the other"

WITHOUT_STATISTICS = {
    "align": "refuses models with batch normalisation",
    "aligned_barrier": "refuses models with batch normalisation",
    "project": "distances of parameters",
    "bounded_barriers": "compared in test_model_map.py",
    "model_soup": "compared in test_model_map.py",
    "Curve": "what `connecting_curve` returns, compared there",
    "Model": "the value itself",
    "Record": "files of checkpoints, which are state dicts",
}
"""Public names that take models and no batch statistics, and why."""

INPUTS = {"theta", "a", "w1", "models", "basis", "sweep", "curve"}
"""Names of arguments that are models, or are made of models."""


def takers() -> set[str]:
    names = set()
    for name in landscape.__all__:
        value = getattr(landscape, name)
        if callable(value) and INPUTS & set(inspect.signature(value).parameters):
            names.add(name)
    return names


def test_every_public_function_that_takes_a_model_is_compared_here():
    unknown = takers() - CHECKS.keys() - WITHOUT_STATISTICS.keys()
    assert not unknown, f"compare {sorted(unknown)} with the module in eval mode, or say why it has no statistics"
    assert "hessian" in takers()


IN_TURN = [(name, list(FORMS)[place % len(FORMS)]) for place, name in enumerate(CHECKS)]
"""Each function with one of the forms of a model."""


@pytest.mark.parametrize(("name", "form"), one_of_each(product(CHECKS, FORMS), IN_TURN))
@reference(*(f"landscape.{name}" for name in CHECKS if name != "step_cost"), by=BY)
def test_the_models_own_statistics_are_used(name, form):
    ds = CHECKS[name](FORMS[form])
    if ds is not None:
        assert ds.attrs["statistics"] in ("own", "recomputed")


@pytest.mark.parametrize("name", CHECKS)
def test_vectors_without_statistics_are_refused(name):
    with pytest.raises(ValueError, match=r"without the floating buffers .*1.running_mean.* give the model"):
        CHECKS[name](TASK.layout.theta)


def test_vectors_are_taken_where_it_is_said_which_statistics_they_get():
    ds = landscape.hessian(TASK, THETA, k=1, buffers=TASK.layout.buffer_vector(A), tolerance=1e-6)
    agree("landscape.hessian", ds.eigenvalue, by_magnitude(hessian(), 1), relative=1e-8)
    assert ds.attrs["statistics"] == "given"
    recomputed = landscape.barrier(TASK, THETA, OTHER, points=3, statistics="recomputed")
    agree("landscape.barrier", recomputed.mark_loss[0], loss(at(THETA, None)), relative=1e-9)
    untrained = landscape.evaluate(TASK, [THETA], [[1.0]], statistics="task")
    agree("landscape.evaluate", untrained["loss"], [loss(at(THETA, network(0).eval()))], relative=1e-9)


def test_some_with_and_some_without_statistics_are_refused():
    for given in ([A, THETA], [carried(A), OTHER]):
        with pytest.raises(ValueError, match="some models are vectors without"):
            landscape.plane(*given, C, task=TASK)


@reference("landscape.predictions", "landscape.subset_errors", "landscape.Task.outputs", by=BY)
def test_further_functions_use_the_models_own_statistics():
    samples = TASK.split("test")
    with torch.no_grad():
        agree("landscape.Task.outputs", TASK.outputs(carried(A), "test"), A(samples.inputs), relative=1e-9)
    probabilities = torch.softmax(A(samples.inputs), 1).detach()
    agree("landscape.predictions", predictions(TASK, carried(A)).probabilities, probabilities, relative=1e-9)
    pair = torch.stack([carried(A), carried(B)])
    single = subset_errors(TASK, pair, torch.ones(2), counts=(1,), subsets=2)
    agree("landscape.subset_errors", np.sort(single.loss.values.ravel()), sorted([loss(A), loss(B)]), relative=1e-9)


def test_task_and_arithmetic():
    assert torch.equal(TASK.theta.buffers, TASK.buffers)
    task = landscape.Task(trained(5), TASK.samples)
    value = landscape.evaluate(task, [task.theta], [[1.0]])["loss"]
    agree("landscape.evaluate", value, [loss(trained(5))], relative=1e-9)
    assert type(task.theta - task.theta) is Tensor


@pytest.mark.parametrize("function", [landscape.hessian, landscape.noise_robustness, landscape.random_plane])
def test_a_negative_variance_is_named_with_its_layer(function):
    state = {name: value.clone() for name, value in A.state_dict().items()}
    state["1.running_var"] -= 10
    with pytest.raises(ValueError, match="running_var of layer 1 is negative in this model"):
        function(TASK, state)
