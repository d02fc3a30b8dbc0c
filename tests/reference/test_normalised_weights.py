"""Curvature of models whose weights are normalised, against finite differences of float64 gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from reference.registry import agree, reference
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils import parametrizations

import landscape


def old(norm: Callable[..., nn.Module]) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return norm(nn.Linear(6, 5))


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "weight norm": lambda: parametrizations.weight_norm(nn.Linear(6, 5)),
    "weight norm of columns": lambda: parametrizations.weight_norm(nn.Linear(6, 5), dim=1),
    "weight norm of all": lambda: parametrizations.weight_norm(nn.Linear(6, 5), dim=None),
    "weight norm by hooks": lambda: old(nn.utils.weight_norm),
    "spectral norm": lambda: parametrizations.spectral_norm(nn.Linear(6, 5)),
    "spectral norm by hooks": lambda: old(nn.utils.spectral_norm),
}


def by_differences(function: Callable[[Tensor], Tensor], theta: Tensor, step: float = 1e-5) -> np.ndarray:
    """Derivatives (m, d) of `function` (d,) -> (m,)."""
    shifts = step * torch.eye(len(theta), dtype=torch.float64)
    columns = [(function(theta + shift) - function(theta - shift)) / (2 * step) for shift in shifts]
    return torch.stack(columns, 1).numpy()


@pytest.mark.filterwarnings("error:the Hessian of")
@pytest.mark.parametrize("name", LAYERS)
@reference("landscape.hessian", "landscape.trace", by="finite differences of float64 gradients")
def test_curvature_of_normalised_weights(name):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = nn.Sequential(LAYERS[name](), nn.Tanh(), nn.Linear(5, 3)).eval()
        x, y = torch.randn(20, 6), torch.randint(0, 3, (20,))
    task = landscape.make_task(model, nn.CrossEntropyLoss(), (x, y))
    theta, model = task.theta, task.model.double()
    shapes, places = dict(task.layout.parameters), task.layout.slices()

    def outputs(vector: Tensor) -> Tensor:
        state = {key: vector[place].view(shapes[key]) for key, place in places.items()}
        return functional_call(model, state, (x.double(),))

    def gradient(vector: Tensor) -> Tensor:
        point = vector.clone().requires_grad_()
        return torch.autograd.grad(nn.functional.cross_entropy(outputs(point), y), point)[0]

    matrix = by_differences(gradient, theta.double())
    matrix = (matrix + matrix.T) / 2
    jacobian = by_differences(lambda vector: outputs(vector).detach().flatten(), theta.double()).reshape(20, 3, -1)
    shares = outputs(theta.double()).softmax(1).detach().numpy()
    middle = np.einsum("nc,cd->ncd", shares, np.eye(3)) - shares[:, :, None] * shares[:, None]
    fisher = np.einsum("ncp,ncd,ndq->pq", jacobian, middle, jacobian) / 20
    for curvature, wanted in (("hessian", matrix), ("gauss_newton", fisher)):
        true = np.linalg.eigvalsh(wanted)
        for dtype in (torch.float32, torch.float64):
            found = landscape.trace(task, theta.to(dtype), products=10**6, curvature=curvature)
            agree("landscape.trace", found.trace.item(), np.trace(wanted), relative=1e-4, absolute=1e-5 * true[-1])
            ds = landscape.hessian(task, theta.to(dtype), k=2, which="both", curvature=curvature)
            assert ds.converged.all()
            agree("landscape.hessian", ds.eigenvalue.values, [true[-1], true[0]], relative=1e-4)
