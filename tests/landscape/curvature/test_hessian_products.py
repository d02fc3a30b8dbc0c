from __future__ import annotations

import pytest
import torch
from oracles import cnn_task, mlp_task
from torch import Tensor, nn

from landscape.curvature import hessian_products
from landscape.curvature.gauss_newton import gauss_newton_graph
from landscape.curvature.hessian_products import hessian_graph, hvp, linearise
from landscape.curvature.second_derivatives import second_derivatives
from landscape.model.samples import Samples
from landscape.model.task import Task

GRAPHS = {"hessian": hessian_graph, "gauss_newton": gauss_newton_graph}


def plain() -> Task:
    """Strided and overlapping layers, one without bias, one in place, with an input that is not square."""
    generator = torch.Generator().manual_seed(1)
    layers = (
        *(nn.Conv2d(2, 5, 3, padding=1, stride=(2, 1)), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(5, 4, 2, bias=False), nn.MaxPool2d(2, stride=1), nn.Dropout(0.3), nn.ReLU(inplace=True)),
        *(nn.Flatten(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3)),
    )
    inputs = torch.randn(11, 2, 13, 9, generator=generator, dtype=torch.float64)
    targets = torch.randint(3, (11,), generator=generator)
    return Task(nn.Sequential(*layers).double().eval(), {"train": Samples(inputs, targets)})


def dense(task: Task, curvature: str = "hessian") -> Tensor:
    flat, samples = task.flat(task.theta), task.split("train")
    if curvature == "hessian":
        return torch.autograd.functional.hessian(lambda point: flat.functional_loss(point, samples), task.theta)
    jacobian = torch.func.jacrev(lambda at: flat.functional(at, samples.inputs))(task.theta)
    p = task.outputs(task.theta, "train").softmax(1)
    curved = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    return torch.einsum("nci,nce,nej->ij", jacobian, curved, jacobian) / len(samples)


@pytest.mark.parametrize("curvature", GRAPHS)
@pytest.mark.parametrize("build", [mlp_task, plain], ids=["mlp", "cnn"])
def test_products_do_not_depend_on_blocks_or_memory(build, curvature):
    task = build()
    theta, samples = task.theta, task.split("train")
    flat, v = task.flat(theta), torch.randn_like(theta)
    expected = dense(task, curvature) @ v
    flat.gradient(samples)
    for block, memory in [(100, 2**30), (5, 2**30), (5, 0), (5, 3000), (1, 0)]:
        product, gradient = linearise(flat, theta, samples, block=block, memory=memory, graph=GRAPHS[curvature])
        torch.testing.assert_close(product(v), expected)
        torch.testing.assert_close(product(2 * v), 2 * expected)
        torch.testing.assert_close(gradient, flat.grad)


@pytest.mark.parametrize("curvature", GRAPHS)
@pytest.mark.parametrize("frozen", [0, 3, 10])
def test_frozen_layers_are_constants(frozen, curvature):
    task = plain()
    for parameter in task.model[frozen].parameters():
        parameter.requires_grad_(False)
    task = Task(task.model, task.samples)
    expected, v = dense(task, curvature), torch.randn_like(task.theta)
    product, _ = linearise(task.flat(task.theta), task.theta, task.split("train"), graph=GRAPHS[curvature])
    torch.testing.assert_close(product(v), expected @ v)


CONVOLUTIONS = {
    "strides that leave a rest": nn.Conv2d(4, 6, (3, 2), stride=(3, 2), padding=(1, 0)),
    "dilation": nn.Conv2d(4, 6, (3, 2), dilation=(2, 3), padding=2, bias=False),
    "groups": nn.Conv2d(4, 8, 3, groups=4, stride=2),
    "padding by name": nn.Conv2d(4, 6, 3, padding="same"),
    "padding by reflection": nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions_of_data_have_the_values_and_both_derivatives_of_torch(case):
    layer, images = CONVOLUTIONS[case].double(), torch.randn(2, 4, 9, 8, dtype=torch.float64)
    flat = plain().flat(plain().theta)

    def outputs(*parameters):
        with second_derivatives(flat):
            state = dict(zip(dict(layer.named_parameters()), parameters, strict=True))
            return torch.func.functional_call(layer, state, images)

    parameters = [part.detach().clone().requires_grad_() for part in layer.parameters()]
    torch.testing.assert_close(outputs(*parameters), layer(images))
    assert torch.autograd.gradcheck(outputs, parameters)
    assert torch.autograd.gradgradcheck(outputs, parameters)


def test_ignored_targets_do_not_count():
    task = plain()
    samples = task.split("train")
    samples.targets[9] = -100
    rest = [*range(9), 10]
    v = torch.randn_like(task.theta)
    some = hvp(task.flat(task.theta), task.theta, Samples(samples.inputs[rest], samples.targets[rest]))(v)
    torch.testing.assert_close(hvp(task.flat(task.theta), task.theta, samples, block=4)(v), some)


@pytest.mark.parametrize("curvature", GRAPHS)
@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_kept_graphs_stay_within_the_memory(blocks, curvature, monkeypatch):
    task = cnn_task(norm=True)
    flat, samples, made = task.flat(task.theta), task.split("train")[:20], []
    point = {name: part.clone().requires_grad_() for name, part in task.layout.named(task.theta).items()}
    estimated, counted = (
        bytes_of(flat, point, samples[:5], GRAPHS[curvature])
        for bytes_of in (hessian_products._graph_bytes, hessian_products._graph_storage_bytes)
    )
    assert estimated == counted  # of one block: affine in its samples

    def graph(flat, point, part):
        made.append(len(part))
        return GRAPHS[curvature](flat, point, part)

    monkeypatch.setattr(hessian_products, "_graph_bytes", lambda *rest: counted)
    memory = blocks * counted + counted // 2
    product, _ = linearise(flat, task.theta, samples, block=5, memory=memory, graph=graph)
    made.clear()
    product(task.theta)
    assert made == [5] * (4 - blocks)  # the others were kept
