"""Every public function that takes a model, on a model whose running statistics are far from the untrained ones.

Each is compared with the module itself: its state dict loaded, eval mode, one sample after the other, in float64.
"""

from __future__ import annotations

import copy
import inspect
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from reference.registry import agree, reference
from torch import Tensor, nn
from torch.func import functional_call

import landscape
from landscape.measures.ensemble import ensemble_gap, subset_errors
from landscape.measures.predictions import predictions
from landscape.model.samples import Samples
from landscape.sweep.grid import Sweep

BY = "module with its state dict in eval mode, float64, one sample after the other"


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    layers = (nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3))
    return nn.Sequential(*layers).double()


def trained(seed: int) -> nn.Module:
    """A network with running statistics that no training from this start would give."""
    module, generator = network(seed), torch.Generator().manual_seed(seed)
    for name, buffer in module.named_buffers():
        if name.endswith("running_mean"):
            buffer.copy_(2 * torch.randn(buffer.shape, generator=generator))
        if name.endswith("running_var"):
            buffer.copy_(0.1 + 3 * torch.rand(buffer.shape, generator=generator))
    return module.eval()


def data(count: int, seed: int) -> Samples:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 1, 4, 4, generator=generator, dtype=torch.float64)
    return Samples(inputs, torch.randint(3, (count,), generator=generator))


TASK = landscape.Task(network(0), {"train": data(23, 1), "test": data(31, 2)})
A, B, C = trained(1), trained(2), trained(3)
THETA, OTHER = TASK.layout.theta(A), TASK.layout.theta(B)


def carried(module: nn.Module) -> Tensor:
    return landscape.Model(TASK.layout.theta(module), TASK.layout.buffer_vector(module))


FORMS = {"module": lambda module: module, "state dict": lambda module: module.state_dict(), "model": carried}


def loss(module: nn.Module, split: str = "test") -> float:
    samples = TASK.split(split)
    with torch.no_grad():
        outputs = torch.cat([module(samples.inputs[row : row + 1]) for row in range(len(samples))])
    return float(F.cross_entropy(outputs, samples.targets))


def at(theta: Tensor, like: nn.Module | None) -> nn.Module:
    """A module at theta (d,), with the statistics of another one or, without it, those of all training samples."""
    module = copy.deepcopy(like or A)
    with torch.no_grad():
        for name, part in TASK.layout.named(theta).items():
            module.get_parameter(name).copy_(part)
        if like is None:
            for layer in module:
                if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                    layer.momentum = 1.0
            module.train()(TASK.split("train").inputs)
    return module.eval()


def dense_hessian(module: nn.Module, split: str = "train") -> Tensor:
    samples, state = TASK.split(split), dict(module.named_buffers())

    def mean(theta: Tensor) -> Tensor:
        outputs = functional_call(module, {**state, **TASK.layout.named(theta)}, (samples.inputs,))
        return F.cross_entropy(outputs, samples.targets)

    return torch.autograd.functional.hessian(mean, TASK.layout.theta(module))


@cache
def hessian() -> np.ndarray:
    return dense_hessian(A).numpy()


def by_magnitude(matrix: np.ndarray, k: int) -> np.ndarray:
    values = np.linalg.eigvalsh(matrix)
    return values[np.abs(values).argsort()[::-1][:k]]


def grid(sweep: Sweep, like: nn.Module | None) -> np.ndarray:
    rows = torch.from_numpy(sweep.coefficients)
    return np.array([loss(at(row @ sweep.basis, like)) for row in rows]).reshape(sweep.shape)


def slices(name, sweep):
    """Around one model, which keeps its statistics at every point."""
    ds = landscape.surface(TASK, sweep)
    assert ds.attrs["statistics"] == "own"
    agree(name, ds.loss, grid(sweep, A), relative=1e-9)
    agree(name, ds.mark_loss, [loss(A)], relative=1e-9)


def between(name, sweep, modules):
    """Between models, at points with recomputed statistics; marks that are models keep their own, and it is said."""
    ds = landscape.surface(TASK, sweep, metrics=("loss",))
    assert (ds.attrs["statistics"], ds.attrs["mark_statistics"]) == ("recomputed", "own")
    agree(name, ds.loss, grid(sweep, None), relative=1e-9)
    agree(name, ds.mark_loss[: len(modules)], [loss(module) for module in modules], relative=1e-9)


def marked(name, ds, modules):
    assert (ds.attrs["statistics"], ds.attrs["mark_statistics"]) == ("recomputed", "own")
    agree(name, ds.mark_loss[: len(modules)], [loss(module) for module in modules], relative=1e-9)
    place = {"alpha": 2, "beta": 5}
    exact = landscape.plane(A, B, C, points=17, task=TASK)
    row = torch.from_numpy(exact.coefficients.reshape(*exact.shape, -1)[place["alpha"], place["beta"]])
    agree(name, ds.loss.isel(place), loss(at(row @ exact.basis, None)), relative=0.2)


def check_hessian(form):
    ds = landscape.hessian(TASK, form(A), k=3, tolerance=1e-6)
    agree("landscape.hessian", ds.eigenvalue, by_magnitude(hessian(), 3), relative=1e-8)
    return ds


def check_top_eigenvalues(form):
    ds = landscape.top_eigenvalues(TASK, form(A), k=1, curvature="gauss_newton", tolerance=1e-6)
    outputs = torch.autograd.functional.jacobian(lambda theta: logits(A, theta), THETA)
    probabilities = torch.softmax(logits(A, THETA), 1)
    middle = torch.diag_embed(probabilities) - probabilities[:, :, None] * probabilities[:, None]
    matrix = torch.einsum("nci,nce,nej->ij", outputs, middle, outputs) / len(outputs)
    agree("landscape.top_eigenvalues", ds.eigenvalue, by_magnitude(matrix.detach().numpy(), 1), relative=1e-8)
    return ds


def logits(module: nn.Module, theta: Tensor) -> Tensor:
    state = dict(module.named_buffers())
    return functional_call(module, {**state, **TASK.layout.named(theta)}, (TASK.split("train").inputs,))


def check_trace(form):
    ds = landscape.trace(TASK, form(A))
    agree("landscape.trace", ds.trace, np.trace(hessian()), relative=1e-9)
    return ds


def check_density(form):
    ds = landscape.density(TASK, form(A), steps=len(THETA), probes=3, seed=4)
    generator = torch.Generator().manual_seed(4)
    signs = (2 * torch.randint(2, (3, len(THETA)), generator=generator) - 1).double().numpy()
    agree("landscape.density", ds["mean"], np.mean(signs * (signs @ hessian())), relative=1e-6)
    agree("landscape.density", ds["mean_square"], np.mean((signs @ hessian()) ** 2), relative=1e-6)
    return ds


def check_layer_eigenvalues(form):
    ds = landscape.layer_eigenvalues(TASK, form(A), tolerance=1e-6)
    expected = [by_magnitude(hessian()[place, place], 1)[0] for place in TASK.layout.slices().values()]
    agree("landscape.layer_eigenvalues", ds.eigenvalue, expected, relative=1e-6)
    return ds


def check_minibatch_sharpness(form):
    ds = landscape.minibatch_sharpness(TASK, form(A), batch=23, tolerance=1e-6)
    agree("landscape.minibatch_sharpness", ds["median"], by_magnitude(hessian(), 1)[0], relative=1e-6)
    return ds


def check_ntk(form):
    samples = TASK.split("train")[:5]
    gradients = torch.autograd.functional.jacobian(lambda theta: logits(A, theta)[:5], THETA)
    expected = torch.einsum("nci,mci->nm", gradients, gradients) / 3
    agree("landscape.ntk", landscape.ntk(TASK, form(A), samples), expected, relative=1e-9)


def check_noise_robustness(form):
    ds = landscape.noise_robustness(TASK, form(A), mean=(0.5,), std=(0.05,), levels=(0.1,), draws=1)
    samples = TASK.split("test")
    agree(
        "landscape.noise_robustness",
        ds.accuracy,
        float((A(samples.inputs).argmax(1) == samples.targets).double().mean()),
        relative=1e-9,
    )
    return ds


def check_ball_sharpness(form):
    ds = landscape.ball_sharpness(TASK, form(A), radius=0.1, steps=1, directions=2)
    theta = THETA.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(F.cross_entropy(logits(A, theta), TASK.split("train").targets), theta)
    step = THETA + 0.1 * gradient / gradient.norm()
    agree("landscape.ball_sharpness", ds.loss, loss(A, "train"), relative=1e-9)
    agree("landscape.ball_sharpness", ds.one_step, loss(at(step, A), "train") - loss(A, "train"), relative=1e-6)
    return ds


def check_evaluate(form):
    values = landscape.evaluate(TASK, [form(A), form(B)], np.eye(2))
    agree("landscape.evaluate", values["loss"], [loss(A), loss(B)], relative=1e-9)
    point = landscape.evaluate(TASK, [form(A), form(B)], [[0.4, 0.6]], statistics="recomputed")
    agree("landscape.evaluate", point["loss"], [loss(at(0.4 * THETA + 0.6 * OTHER, None))], relative=1e-9)


def check_loss(form):
    agree("landscape.loss", float(landscape.loss(TASK, form(A))), loss(A), relative=1e-9)


def check_step_cost(form):
    return landscape.step_cost(TASK, form(A), repeats=1)


def check_random_directions(form):
    slices("landscape.random_directions", landscape.random_directions(TASK, form(A), count=1, points=3))


def check_random_plane(form):
    slices("landscape.random_plane", landscape.random_plane(TASK, form(A), points=(2, 3)))


def check_slice_along(form):
    slices("landscape.slice_along", landscape.slice_along(form(A), OTHER, points=3, task=TASK))


def check_scaling(form):
    between("landscape.scaling", landscape.scaling(form(A), points=2, task=TASK), [A])


def check_line(form):
    between("landscape.line", landscape.line(form(A), form(B), points=4, task=TASK), [A, B])


def check_plane(form):
    between("landscape.plane", landscape.plane(form(A), form(B), form(C), points=(2, 3), task=TASK), [A, B, C])


def check_simplex(form):
    sweep = landscape.simplex([form(A), form(B), form(C)], step=0.5, task=TASK)
    ds = landscape.surface(TASK, sweep)
    agree("landscape.simplex", ds.mark_loss[:3], [loss(A), loss(B), loss(C)], relative=1e-9)
    middle = sum(TASK.layout.theta(module) for module in (A, B, C)) / 3
    agree("landscape.simplex", ds.mark_loss[3], loss(at(middle, None)), relative=1e-9)


def check_principal_plane(form):
    models = [form(trained(seed)) for seed in range(1, 5)]
    between("landscape.principal_plane", landscape.principal_plane(models, points=(2, 3), task=TASK), [A, B, C])


def check_surface(form):
    between("landscape.surface", landscape.plane(form(A), form(B), form(C), points=2, task=TASK), [A, B, C])
    ds = landscape.surface(TASK, form(A), form(B))
    agree("landscape.surface", ds.mark_loss[:2], [loss(A), loss(B)], relative=1e-9)


def check_interpolated_surface(form):
    sweep = landscape.plane(form(A), form(B), form(C), points=17, task=TASK)
    marked("landscape.interpolated_surface", landscape.interpolated_surface(TASK, sweep), [A, B, C])


def check_sampled_surface(form):
    sweep = landscape.plane(form(A), form(B), form(C), points=17, task=TASK)
    marked("landscape.sampled_surface", landscape.sampled_surface(TASK, sweep, samples=25), [A, B, C])


def check_barrier(form):
    ds = landscape.barrier(TASK, form(A), form(B), points=5)
    t = np.linspace(0, 1, 5)
    losses = np.array([loss(A), *(loss(at((1 - s) * THETA + s * OTHER, None)) for s in t[1:-1]), loss(B)])
    agree("landscape.barrier", ds.loss, losses, relative=1e-9)
    above = losses - (1 - t) * losses[0] - t * losses[-1]
    agree("landscape.barrier", ds.barrier, max(0.0, above.max()), relative=1e-9, absolute=1e-12)
    return ds


def check_pairwise_barriers(form):
    ds = landscape.pairwise_barriers(TASK, [form(A), form(B)], points=3)
    agree("landscape.pairwise_barriers", ds.mark_loss, [loss(A), loss(B)], relative=1e-9)
    halfway = loss(at((THETA + OTHER) / 2, None)) - (loss(A) + loss(B)) / 2
    agree("landscape.pairwise_barriers", ds.midpoint, [[0, halfway], [halfway, 0]], relative=1e-9)
    return ds


def check_simplex_losses(form):
    ds = landscape.simplex_losses(TASK, [form(A), form(B)], count=3, seed=1)
    generator = torch.Generator().manual_seed(1)
    shares = -torch.rand(3, 2, generator=generator, dtype=torch.float64).log()
    shares /= shares.sum(1, keepdim=True)
    expected = [loss(at(row @ torch.stack([THETA, OTHER]), None)) for row in shares]
    agree("landscape.simplex_losses", ds.loss, expected, relative=1e-9)
    return ds


def check_connecting_curve(form):
    curve = landscape.connecting_curve(TASK, form(A), form(B), steps=3, batch=8)
    agree(
        "landscape.connecting_curve",
        curve.buffers,
        torch.stack([TASK.layout.buffer_vector(m) for m in (A, B)]),
        relative=0,
    )
    return check_along(form, curve)


def check_along(form, curve=None):
    curve = curve or landscape.connecting_curve(TASK, form(A), form(B), steps=0)
    ds = landscape.along(TASK, curve, points=3)
    middle = loss(at(torch.from_numpy(curve.coefficients(0.5)[0]) @ curve.points, None))
    agree("landscape.along", ds.loss, [loss(A), middle, loss(B)], relative=1e-9)
    straight = loss(at((THETA + OTHER) / 2, None))
    agree("landscape.along", ds.straight_loss, [loss(A), straight, loss(B)], relative=1e-9)
    return ds


CHECKS = {name.removeprefix("check_"): check for name, check in dict(globals()).items() if name.startswith("check_")}

WITHOUT_STATISTICS = {
    "align": "refuses models with batch normalisation",
    "aligned_barrier": "refuses models with batch normalisation",
    "project": "distances of parameters",
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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CHECKS)
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


@reference(
    "landscape.predictions", "landscape.ensemble_gap", "landscape.subset_errors", "landscape.Task.outputs", by=BY
)
def test_further_functions_use_the_models_own_statistics():
    samples = TASK.split("test")
    with torch.no_grad():
        agree("landscape.Task.outputs", TASK.outputs(carried(A), "test"), A(samples.inputs), relative=1e-9)
    probabilities = torch.softmax(A(samples.inputs), 1).detach()
    agree("landscape.predictions", predictions(TASK, carried(A)).probabilities, probabilities, relative=1e-9)
    pair = torch.stack([carried(A), carried(B)])
    gap = ensemble_gap(TASK, pair, torch.ones(2))
    ensemble = F.cross_entropy((A(samples.inputs) + B(samples.inputs)) / 2, samples.targets).item()
    agree("landscape.ensemble_gap", gap.ensemble_loss, ensemble, relative=1e-9)
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
