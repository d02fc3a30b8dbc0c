"""Normalisation, sum and ReLU as parts of a convolution: what is folded, what is left alone, and that values stay."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from landscape import models
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep.evaluate import evaluate
from landscape.sweep.folded_norms import fold_norms
from landscape.sweep.onednn_layers import use_onednn
from landscape.sweep.sweep_plan import SweepPlan
from tests.oracles import thetas


class Block(nn.Module):
    """A block as torchvision writes it: one ReLU for all, in place, and the sum in place."""

    def __init__(self, kind: str = "plain") -> None:
        super().__init__()
        self.kind = kind
        self.first, self.norm = nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.second, self.other = nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6, affine=False)
        self.relu, self.last = nn.ReLU(inplace=True), nn.Linear(6, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        skip = self.relu(self.norm(self.first(inputs)))
        out = self.second(skip)
        if self.kind == "changed":  # the input of the second convolution, after it was read
            skip.mul_(0.5)
        out = self.other(out)
        if self.kind == "twice":
            return self.last((self.relu(out + skip) - out).mean((2, 3)))
        if self.kind == "broadcast":
            return self.last(self.relu(out + skip.mean((2, 3), keepdim=True)).mean((2, 3)))
        if self.kind == "values" and float(out.sum()) > 1e9:
            return self.last(out.mean((2, 3)))
        out += skip
        return self.last(self.relu(out).mean((2, 3)))


def _task(model: nn.Module, count: int = 7) -> Task:
    generator = torch.Generator().manual_seed(3)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean = torch.randn(layer.num_features, generator=generator) / 3
            layer.running_var = torch.rand(layer.num_features, generator=generator) + 0.5
    inputs = torch.randn(count, 3, 9, 10, generator=generator)
    return Task(model, {"test": Samples(inputs, torch.arange(count) % 3)})


@torch.no_grad()
def _folded(task: Task) -> list[tuple[str, bool]]:
    """Activation of each folded convolution, and whether it takes a sum; the outputs must be the model's own."""
    flat, inputs = task.flat(task.theta), task.split("test").inputs
    plain = task.flat(task.theta).outputs(inputs)
    use_onednn(flat, task.split("test")[:2])
    folded = fold_norms(flat, task.split("test")[:2])
    sums: dict[nn.Module, bool] = {}
    for layer in folded:
        layer.register_forward_pre_hook(lambda called, received: sums.update({called: len(received) == 2}))
    torch.testing.assert_close(flat.outputs(inputs), plain, rtol=1e-4, atol=1e-5)
    return [(layer.activation, sums[layer]) for layer in folded]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("plain", [("relu", False), ("relu", True)]),
        ("changed", [("relu", False), ("none", False)]),
        ("twice", [("relu", False), ("none", False)]),
        ("broadcast", [("relu", False), ("none", False)]),
        ("values", []),
    ],
)
def test_sum_and_relu_are_folded_where_nothing_else_reads_or_changes_what_they_replace(kind, expected):
    torch.manual_seed(0)
    assert _folded(_task(Block(kind))) == expected


@pytest.mark.parametrize(("name", "sums", "count"), [("resnet8", 3, 9), ("resnet20", 9, 21), ("resnet50", 16, 53)])
def test_every_normalisation_of_a_residual_network_is_folded(name, sums, count):
    folded = _folded(_task(models.build_model(name, (3, 9, 10), 10, seed=1)))
    assert len(folded) == count
    assert sum(with_sum for _, with_sum in folded) == sums
    assert all(activation == "relu" for activation, with_sum in folded if with_sum)


@pytest.mark.parametrize("hook", ["register_forward_hook", "register_forward_pre_hook"])
def test_a_model_with_hooks_is_not_folded(hook):
    model = Block()
    getattr(model.norm, hook)(lambda *_: None)
    assert _folded(_task(model)) == []


@torch.no_grad()
def test_bits_are_those_of_a_pass_over_the_images_for_each_operation():
    torch.manual_seed(0)
    task = _task(Block("plain"))
    flat, inputs = task.flat(task.theta), task.split("test").inputs
    folded = fold_norms(flat, task.split("test")[:2])
    outputs = flat.outputs(inputs)
    plain = [layer.activation for layer in folded]
    for layer in folded:
        layer.activation = "none"
    layers = dict(flat.module.named_modules())
    skip = folded[0](flat.cast(inputs)).relu()
    separate = layers["last"]((folded[1](skip) + skip).relu().mean((2, 3)))
    assert plain == ["relu", "relu"]
    assert torch.equal(separate, outputs)


def test_folded_values_follow_the_parameters_of_each_point():
    task = _task(models.build_model("resnet8", (3, 9, 10), 3, seed=1))
    basis = thetas(task, 2, spread=0.05)
    rows = [[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]]
    plain = evaluate(task, basis, rows)["loss"]
    folded = evaluate(task, basis, rows, plan=SweepPlan(folded=True, shared=False))["loss"]
    torch.testing.assert_close(folded, plain, rtol=1e-5, atol=0)
    assert len(set(plain.tolist())) == 3


def test_other_threads_may_use_models_while_one_is_folded():
    task = _task(models.build_model("resnet20", (3, 9, 10), 3, seed=1))
    basis, plan = thetas(task, 2, spread=0.05), SweepPlan(folded=True, shared=False)
    rows = [[1 - share / 7, share / 7] for share in range(8)]
    alone = evaluate(task, basis, rows, plan=plan)["loss"]
    with ThreadPoolExecutor(3) as pool:
        sweeps = [pool.submit(evaluate, task, basis, rows, plan=plan) for _ in range(6)]
        assert all(torch.equal(sweep.result()["loss"], alone) for sweep in sweeps)
