"""Any module that runs in plain PyTorch runs here, with the values and gradients of plain PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from kinds import one_of_each
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from landscape.curvature.curvature_products import require_symmetry
from landscape.curvature.hessian import CurvatureProblem, top_eigenvalues
from landscape.curvature.ntk import ntk
from landscape.curvature.second_derivatives import require_own_gradient
from landscape.curvature.trace import trace
from landscape.geometry.lines import line
from landscape.geometry.planes import plane
from landscape.model.make_task import task_from
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.surfaces.surface import surface
from tests.landscape import zoo

ALL = sorted(zoo.IDIOMS)
WRONG = ("weight_norm",)
"""Torch's own second derivative of these is wrong; `tests/reference/test_normalised_weights.py` has another one."""

TWICE = [name for name in ALL if name not in ("once_differentiable", *WRONG)]
SECOND = (
    *("attention", "batch_norm", "branching", "buffers", "custom_function", "double", "dropout", "lstm", "mean_loss"),
    *("nested", "shared", "view_backward"),
)
"""Those whose second derivatives differ in kind; the others differ in how a model is called, which gradients tell."""

CROSSED = ("buffers", "dropout")
"""Models whose eigenvalues PyHessian gives too."""

LAID = (*zoo.CONTIGUOUS, "mean_module_loss")


@pytest.fixture(autouse=True)
def _contiguous_images_are_silent() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*channels last.*")
        yield


def task(name: str) -> Task:
    """The task of an idiom, 14 training and 9 test samples."""
    idiom = zoo.IDIOMS[name]
    return Task(
        idiom.model(), {"train": Samples(*idiom.samples(14, 1)), "test": Samples(*idiom.samples(9, 2))}, idiom.loss
    )


def models(name: str) -> Tensor:
    """Three models (3, d) around that of an idiom, by plain PyTorch."""
    centre = torch.cat([part.detach().flatten() for part in trained(zoo.IDIOMS[name].model())])
    source = torch.Generator().manual_seed(0)
    return centre + 0.2 * torch.randn(3, len(centre), generator=source, dtype=centre.dtype)


def trained(model: nn.Module) -> list[nn.Parameter]:
    return [part for part in model.parameters() if part.requires_grad]


def plain(name: str, theta: Tensor) -> nn.Module:
    """The module at theta (d,), by plain PyTorch, in eval mode."""
    model = zoo.IDIOMS[name].model()
    with torch.no_grad():
        nn.utils.vector_to_parameters(theta, trained(model))
    return model.eval()


def plain_outputs(name: str, theta: Tensor, seed: int, count: int) -> tuple[Tensor, Tensor, nn.Module]:
    idiom, model = zoo.IDIOMS[name], plain(name, theta)
    inputs, targets = idiom.samples(count, seed)
    return zoo.called(model, inputs), targets, model


def plain_loss(name: str, theta: Tensor) -> float:
    """Mean loss over the test samples."""
    outputs, targets, _ = plain_outputs(name, theta, 2, 9)
    return float(zoo.IDIOMS[name].loss(outputs.detach(), targets).mean())


def plain_gradient(name: str, theta: Tensor) -> tuple[Tensor, list[nn.Parameter]]:
    """Gradient (d,) of the mean training loss, differentiable in the parameters that come with it."""
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernel has no second derivative
        outputs, targets, model = plain_outputs(name, theta, 1, 14)
        loss = zoo.IDIOMS[name].loss(outputs, targets).mean()
        parts = torch.autograd.grad(loss, trained(model), create_graph=True, materialize_grads=True)
    return torch.cat([part.flatten() for part in parts]), trained(model)


def plain_hessian(name: str, theta: Tensor) -> np.ndarray:
    """Hessian (d, d) of the mean training loss, row by row."""
    gradient, parameters = plain_gradient(name, theta)
    rows = []
    for entry in gradient:
        if not entry.requires_grad:
            rows.append(torch.zeros_like(theta))
            continue
        parts = torch.autograd.grad(entry, parameters, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([part.flatten() for part in parts]))
    return torch.stack(rows).double().numpy()


def close(found: object, expected: object, name: str) -> None:
    single = zoo.IDIOMS[name].dtype == torch.float32
    torch.testing.assert_close(
        torch.as_tensor(found).double(), torch.as_tensor(expected).double(), rtol=2e-4 if single else 1e-9, atol=1e-6
    )


@pytest.mark.parametrize("name", ALL)
def test_outputs_and_gradient_are_those_of_plain_pytorch(name):
    theta, made = models(name)[0], task(name)
    close(made.outputs(theta, "test", buffers=made.buffers), plain_outputs(name, theta, 2, 9)[0].detach(), name)
    flat = made.flat(theta)
    flat.load(theta)
    loss = flat.gradient(made.split("train"))
    gradient, _ = plain_gradient(name, theta)
    close(flat.grad, gradient.detach(), name)
    outputs, targets, _ = plain_outputs(name, theta, 1, 14)
    close(loss, zoo.IDIOMS[name].loss(outputs, targets).mean().detach(), name)


@pytest.mark.parametrize("name", ALL)
def test_line_and_plane_are_those_of_plain_pytorch(name):
    three, made = models(name), task(name)
    along = line(three[0], three[1], points=5)
    found = surface(made, along, statistics="task")
    close(found.loss.values, [plain_loss(name, (1 - t) * three[0] + t * three[1]) for t in found.t.values], name)
    grid = plane(*three, points=4)
    found = surface(made, grid, statistics="task")
    thetas = torch.from_numpy(grid.coefficients).to(three) @ three
    close(found.loss.values.ravel(), [plain_loss(name, theta) for theta in thetas], name)
    thetas = torch.from_numpy(grid.mark_coefficients).to(three) @ three
    close(found.mark_loss.values, [plain_loss(name, theta) for theta in thetas], name)


@pytest.mark.parametrize("name", one_of_each(TWICE, SECOND))
def test_eigenvalues_and_trace_are_those_of_the_dense_hessian(name):
    theta, made = models(name)[0], task(name)
    dense = plain_hessian(name, theta)
    values = np.linalg.eigvalsh((dense + dense.T) / 2)
    largest = values[np.abs(values).argmax()]
    bound = 1e-3 if zoo.IDIOMS[name].dtype == torch.float32 else 1e-6
    top = top_eigenvalues(made, theta, 1, buffers=made.buffers, tolerance=1e-5, max_products=500)
    assert float(top.eigenvalue[0]) == pytest.approx(largest, rel=bound)
    assert float(trace(made, theta, buffers=made.buffers, products=theta.numel()).trace) == pytest.approx(
        np.trace(dense), rel=bound
    )
    if name not in CROSSED:
        return
    cross = top_eigenvalues(
        made, theta, 1, buffers=made.buffers, backend="pyhessian", tolerance=1e-5, max_products=1000
    )
    assert float(cross.eigenvalue[0]) == pytest.approx(largest, rel=2e-2)


@pytest.mark.parametrize("name", [name for name in TWICE if zoo.IDIOMS[name].loss is zoo.each])
def test_the_gauss_newton_matrix_is_that_of_plain_jacobians(name):
    theta, made = models(name)[0], task(name)
    with sdpa_kernel(SDPBackend.MATH):
        outputs, _, model = plain_outputs(name, theta, 1, 14)
        jacobian = [
            torch.autograd.grad(entry, trained(model), retain_graph=True, materialize_grads=True)
            for entry in outputs.flatten()
        ]
    rows = torch.stack([torch.cat([part.flatten() for part in parts]) for parts in jacobian]).view(14, 3, -1)
    shares = outputs.detach().softmax(1)
    inner = torch.diag_embed(shares) - shares[:, :, None] * shares[:, None]
    dense = torch.einsum("nci,ncd,ndj->ij", rows, inner, rows) / 14
    found = top_eigenvalues(made, theta, 1, buffers=made.buffers, curvature="gauss_newton", tolerance=1e-5)
    bound = 1e-3 if zoo.IDIOMS[name].dtype == torch.float32 else 1e-6
    assert float(found.eigenvalue[0]) == pytest.approx(float(torch.linalg.eigvalsh(dense.double())[-1]), rel=bound)


class _Twisted(torch.autograd.Function):
    """The square, whose backward pass is not its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Tensor:
        return outer[0] * ctx.saved_tensors[0].flip(-1)


class _Wrong(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return _Twisted.apply(super().forward(x))  # type: ignore[no-untyped-call]


class _Rounded(nn.Linear):
    """Quantised to steps of 1/8, with the gradient of no rounding."""

    def forward(self, x: Tensor) -> Tensor:
        values = super().forward(x)
        return values + ((8 * values).round() / 8 - values).detach()


class _Squared(_Twisted):
    """The square, whose backward pass has a derivative that is not its own: symmetric, and half of it."""

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Tensor:
        return outer[0] * ctx.saved_tensors[0]


class _Halved(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return _Squared.apply(super().forward(x))  # type: ignore[no-untyped-call]


def _nine(model: nn.Module, **options: Any) -> Task:
    source = torch.Generator().manual_seed(0)
    return Task(model, {"train": Samples(torch.randn(9, 4, generator=source), torch.arange(9) % 4)}, **options)


@pytest.mark.parametrize("measure", ["native", "curvlinops", "gauss_newton", "trace"])
@pytest.mark.parametrize("layer", [_Wrong, _Rounded, _Halved])
def test_curvature_behind_a_backward_pass_of_another_function_is_refused(layer, measure):
    made = _nine(layer(4, 4))
    measures: dict[str, Callable[[], object]] = {
        "trace": lambda: trace(made, made.theta),
        "gauss_newton": lambda: top_eigenvalues(made, made.theta, 1, curvature="gauss_newton"),
    }
    with pytest.raises(ValueError, match="is not the derivative of its loss: along it the loss rises by") as refused:
        measures.get(measure, lambda: top_eigenvalues(made, made.theta, 1, backend=measure))()
    assert "\n" not in str(refused.value)


def test_a_loss_with_a_detached_factor_has_no_hessian():
    def focal(outputs: Tensor, targets: Tensor) -> Tensor:
        values = nn.functional.cross_entropy(outputs, targets, reduction="none")
        return values * (1 - (-values).exp().detach()) ** 2

    made = _nine(nn.Linear(4, 4), loss=focal)
    with pytest.raises(ValueError, match="is not the derivative of its loss"):
        top_eigenvalues(made, made.theta, 1)


def test_a_loss_that_is_all_rounding_is_no_wrong_backward_pass():
    model, samples = nn.Linear(4, 4), Samples(torch.eye(4), torch.arange(4))
    model.load_state_dict({"weight": 300 * torch.eye(4), "bias": torch.zeros(4)})
    flat = Task(model, {"train": samples}).flat(torch.zeros(20))
    copy = flat.anew(torch.float64)
    loss = copy.gradient(Samples(samples.inputs.double(), samples.targets))
    assert loss == 0 < copy.grad.norm(), "the slope is not zero, but no difference of losses shows it"
    require_own_gradient(flat, samples)


def test_kinks_and_dead_units_are_no_wrong_backward_pass():
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))
    nn.init.zeros_(model[0].bias)
    made = _nine(model)
    made.samples["train"].inputs[::2] = 0  # every unit is at its kink
    top_eigenvalues(made, made.theta, 1)
    top_eigenvalues(made, torch.zeros_like(made.theta), 1)


def test_a_hessian_that_is_not_symmetric_is_refused():
    made = _nine(_Wrong(4, 4))
    with pytest.raises(ValueError, match="is not symmetric"):
        require_symmetry(CurvatureProblem(made.flat(made.theta), made.theta, made.split("train"), 256))


@pytest.mark.parametrize("measure", ["hessian", "gauss_newton", "trace", "pyhessian"])
def test_a_model_without_second_derivative_is_refused_in_one_line(measure):
    theta, made = models("once_differentiable")[0], task("once_differentiable")
    measures = {
        "trace": lambda: trace(made, theta),
        "pyhessian": lambda: top_eigenvalues(made, theta, backend="pyhessian"),
    }
    measured = measures.get(measure, lambda: top_eigenvalues(made, theta, curvature=measure))
    with pytest.raises(ValueError, match="second derivative") as refused:
        measured()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ALL)
def test_neither_the_module_nor_its_samples_nor_random_states_change(name):
    idiom = zoo.IDIOMS[name]
    model, inputs = idiom.model(), idiom.samples(9, 2)
    before, state = {key: value.clone() for key, value in model.state_dict().items()}, torch.get_rng_state()
    made = Task(model, {"test": Samples(*inputs), "train": Samples(*idiom.samples(14, 1))}, idiom.loss)
    made.outputs(made.theta, "test")
    surface(made, line(made.layout.theta(made.model), made.layout.theta(made.model) + 0.1, points=2), statistics="task")
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    leaves, fresh = (list(x.values()) if isinstance(x, dict) else x for x in (inputs[0], idiom.samples(9, 2)[0]))
    assert all(torch.equal(*pair) for pair in zip(leaves, fresh, strict=True))


@pytest.mark.parametrize("name", ALL)
def test_the_price_of_contiguous_images_is_said_once(name):
    made = task(name)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            made.outputs(made.theta, "test")
            surface(
                made,
                line(made.layout.theta(made.model), made.layout.theta(made.model) + 0.1, points=2),
                statistics="task",
            )
    texts = [str(one.message) for one in said]
    assert len(texts) == (name in LAID), texts
    assert all("slower" in text and "reshape" in text for text in texts)


def test_a_module_that_changes_its_inputs_has_the_kernel_of_one_that_does_not():
    class Copying(zoo.InPlace):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.clone())

    idiom = zoo.IDIOMS["in_place"]
    samples = Samples(*idiom.samples(5, 1))
    kernels = []
    for kind in (zoo.InPlace, Copying):
        made = Task(zoo.Idiom(kind).model(), {"train": samples}, idiom.loss)
        kernels.append(ntk(made, made.theta, samples, memory=2 * 2 * made.theta.nbytes))
    torch.testing.assert_close(*kernels)


def test_a_loss_that_is_no_mean_over_samples_is_refused():
    pair = zoo.IDIOMS["double"].samples(6, 1)
    loss = lambda outputs, targets: outputs.logsumexp(0).sum()  # noqa: E731 (a loss as people write it)
    with pytest.raises(ValueError, match="not a mean over samples"):
        task_from((zoo.IDIOMS["double"].model(), loss, pair))
    made = Task(zoo.IDIOMS["double"].model(), {"train": Samples(*pair)}, loss)
    with pytest.raises(ValueError, match="not a mean over samples"):
        made.outputs(made.theta, "train")


def test_complex_parameters_are_refused_by_name():
    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.phase = nn.Parameter(torch.ones(3, dtype=torch.complex64))

    with pytest.raises(ValueError, match="'phase' is complex"):
        _ = Task(Turned(), {}).layout
