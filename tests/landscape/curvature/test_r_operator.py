from __future__ import annotations

import pytest
import torch
from oracles import cnn_task, mlp_task
from torch import Tensor, nn

from landscape import models
from landscape.curvature.curvature_products import Products
from landscape.curvature.gauss_newton import gnvp
from landscape.curvature.hessian_products import hvp
from landscape.curvature.r_operator import Chain, chain
from landscape.model.samples import Samples
from landscape.model.task import Task, squared_error

SHAPES = {"cnn_cifar10": (3, 32, 32), "simple_cnn": (3, 32, 32), "cnn_digits": (1, 8, 8)}


def stack(*layers: nn.Module, shape: tuple[int, ...] = (2, 13, 9), classes: int = 3) -> Task:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(11, *shape, generator=generator, dtype=torch.float64)
    targets = torch.randint(classes, (11,), generator=generator)
    return Task(nn.Sequential(*layers).double(), {"train": Samples(inputs, targets)})


def plain() -> Task:
    return stack(
        nn.Conv2d(2, 5, 3, padding=1, stride=(2, 1)),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(5, 4, 2, bias=False),
        nn.MaxPool2d(2, stride=1),
        nn.Dropout(0.3),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(8, 6),
        nn.ReLU(),
        nn.Linear(6, 3),
    )


def dense(task: Task) -> Tensor:
    flat = task.flat(task.theta)
    return torch.autograd.functional.hessian(lambda at: flat.functional_loss(at, task.split("train")), task.theta)


def products(task: Task, curvature: str = "hessian", **options) -> Products:
    return Products(task.flat(task.theta), task.theta, task.split("train"), curvature=curvature, **options)


@pytest.mark.parametrize(("block", "memory"), [(100, 2**30), (4, 2**30), (4, 0), (3, 20000)])
@pytest.mark.parametrize("build", [plain, cnn_task], ids=["two pools", "one pool"])
def test_products_equal_the_dense_hessian(build, block, memory, monkeypatch):
    monkeypatch.setattr("landscape.curvature.curvature_products.LEAST", block)
    monkeypatch.setattr("landscape.curvature.curvature_products.PASS", 0)
    task = build()
    found = products(task, memory=memory)
    assert found.chain is not None
    matrix, expected = found.linearise(task.split("train"))[0], dense(task)
    vectors = torch.randn(3, len(expected), dtype=torch.float64)
    for vector in [*vectors, vectors[0]]:
        torch.testing.assert_close(matrix(vector), expected @ vector)


def test_gauss_newton_products_equal_the_definition():
    task = plain()
    flat, samples = task.flat(task.theta), task.split("train")
    jacobian = torch.func.jacrev(lambda at: flat.functional(at, samples.inputs))(task.theta)
    p = task.outputs(task.theta, "train").softmax(1)
    curved = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    expected = torch.einsum("nci,nce,nej->ij", jacobian, curved, jacobian) / len(samples)
    vector = torch.randn(len(expected), dtype=torch.float64)
    found = products(task, "gauss_newton")
    assert found.chain is not None
    torch.testing.assert_close(found.linearise(samples)[0](vector), expected @ vector)
    torch.testing.assert_close(gnvp(flat, task.theta, samples, block=3)(vector), expected @ vector)


@pytest.mark.parametrize("frozen", [0, 3])
def test_frozen_layers_are_constants(frozen):
    task = plain()
    for parameter in task.model[frozen].parameters():
        parameter.requires_grad_(False)
    task = Task(task.model, task.samples)
    found, expected = products(task), dense(task)
    assert found.chain is not None
    vector = torch.randn(len(expected), dtype=torch.float64)
    torch.testing.assert_close(found.linearise(task.split("train"))[0](vector), expected @ vector)


class Shared(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.one, self.two, self.kind = nn.Linear(4, 4), nn.Linear(4, 4), kind
        if kind == "weights":
            self.two.weight = self.one.weight

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "twice":
            return self.one(self.one(x))
        if self.kind == "residual":
            return x + self.two(self.one(x))
        return self.two(self.one(x)) if self.kind == "weights" else self.two(self.one(x).tanh())


def others() -> dict[str, Task]:
    vectors = stack(nn.Linear(4, 3), shape=(4,)).samples
    odd = {kind: Task(Shared(kind).double(), vectors) for kind in ("twice", "residual", "weights", "function")}
    mlp, labels = mlp_task(), {"train": Samples(vectors["train"].inputs, vectors["train"].inputs[:, :3].contiguous())}
    return odd | {
        "tanh": mlp,
        "norm": cnn_task(norm=True),
        "loss": Task(nn.Linear(4, 3).double(), labels, squared_error, {}),
    }


@pytest.mark.parametrize("name", others())
def test_other_models_fall_back_to_autograd(name):
    task = others()[name]
    found = products(task)
    assert found.chain is None
    vector, samples = torch.randn_like(task.theta), task.split("train")
    expected = hvp(task.flat(task.theta), task.theta, samples)(vector)
    torch.testing.assert_close(found.linearise(samples)[0](vector), expected)


def test_ignored_targets_are_left_to_autograd():
    task = plain()
    samples = task.split("train")
    targets = samples.targets.clone()
    targets[9] = -100
    spoilt = Samples(samples.inputs, targets)
    vector = torch.randn_like(task.theta)
    expected = hvp(task.flat(task.theta), task.theta, spoilt)(vector)
    torch.testing.assert_close(products(task).linearise(spoilt)[0](vector), expected)


@pytest.mark.parametrize(
    "name", ["cnn_cifar10", "cnn_digits", "cnn_fmnist", "lenet", "lenet5", "linear", "mlp", "simple_cnn"]
)
def test_plain_shipped_models_are_chains(name):
    shape = SHAPES.get(name, (1, 28, 28))
    generator = torch.Generator().manual_seed(0)
    samples = Samples(torch.randn(3, *shape, generator=generator), torch.tensor([1, 0, 4]))
    task = Task(models.build_model(name, shape, 10, seed=0), {"train": samples})
    found = products(task)
    assert found.chain is not None
    vector = torch.randn(len(task.theta), generator=generator)
    mine, theirs = found.linearise(samples)[0](vector), hvp(found.flat, task.theta, samples)(vector)
    assert (mine - theirs).norm() <= 1e-5 * theirs.norm()


def test_finding_a_chain_leaves_no_hooks_behind():
    task = plain()
    flat = task.flat(task.theta)
    assert chain(flat, task.theta, task.split("train")) is not None
    assert all(not module._forward_hooks for module in flat.module.modules())


@pytest.mark.parametrize("memory", [2**30, 0, 20000])
def test_the_gradient_comes_with_the_products(memory, monkeypatch):
    monkeypatch.setattr("landscape.curvature.curvature_products.LEAST", 4)
    monkeypatch.setattr("landscape.curvature.curvature_products.PASS", 0)
    for task in (plain(), mlp_task(), cnn_task(norm=True)):
        flat, samples = task.flat(task.theta), task.split("train")
        flat.gradient(samples)
        found = Products(flat, task.theta, samples, block=4, memory=memory).linearise(samples)[1]
        torch.testing.assert_close(found, flat.grad)


@pytest.mark.parametrize("blocks", [0, 1, 2, 3])
def test_held_blocks_stay_within_the_memory(blocks, monkeypatch):
    task = plain()
    samples, found = task.split("train")[:9], products(task)
    assert found.chain is not None
    one, made = found.chain.state_bytes(samples[:3]), []
    inner = Chain._block
    monkeypatch.setattr(Chain, "_block", lambda self, part, *rest: made.append(len(part)) or inner(self, part, *rest))
    matrix, _ = found.chain.linearise(samples, block=3, memory=blocks * one + one // 2)
    assert made == [3, 3, 3]
    made.clear()
    matrix(task.theta)
    assert made == [3] * (3 - blocks)  # the others were held


def test_held_bytes_are_those_of_all_tensors():
    task = plain()
    found = products(task)
    assert found.chain is not None
    block = found.chain._block(task.split("train"), 11)
    tensors = {t.untyped_storage().data_ptr(): t for state in block.states for t in state.values()}
    assert block.nbytes() == sum(t.untyped_storage().nbytes() for t in tensors.values()) + 8 * block.softmax.numel()
