"""Blocks of networks against their formulas: residual, bottleneck and dense blocks, pooling, batch normalisation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from landscape.model.batchnorm import normalisers
from landscape.model.layout import Layout
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models import build_model
from landscape.models._resnet import Bottleneck
from landscape.models.densenet121 import DenseLayer
from landscape.sweep.evaluate import evaluate

GREY, COLOUR = (1, 28, 28), (3, 32, 32)


def test_pool_before_relu_equals_relu_before_pool():
    model = build_model("cnn_fmnist", GREY, 10, seed=0).double()
    inputs = torch.randn(3, *GREY, dtype=torch.float64)
    one, two = (layer for layer in model.body if isinstance(layer, nn.Conv2d))
    hidden = nn.functional.max_pool2d(one(inputs).relu(), 2)
    hidden = nn.functional.max_pool2d(two(hidden).relu(), 2).flatten(1)
    for layer in (layer for layer in model.body if isinstance(layer, nn.Linear)):
        hidden = layer(hidden).relu()
    torch.testing.assert_close(model(inputs), model.head(hidden))


def test_a_residual_network_keeps_its_count_under_either_normalisation():
    for norm, buffered in (("batch", True), ("group", False)):
        model = build_model("resnet20", COLOUR, 10, seed=0, norm=norm)
        assert sum(p.numel() for p in model.parameters()) == 272_474
        assert bool(list(model.buffers())) == buffered


def test_the_plain_resnet18_has_no_feature_layer():
    assert build_model("resnet18_gn", COLOUR, 100, seed=0, feature=0).head.in_features == 512


def test_the_two_versions_of_the_digit_network_pool_three_times_and_twice():
    for version, inputs in (("code", 1152), ("paper", 6272)):
        model = build_model("cnn_digit5", (3, 28, 28), 10, seed=0, version=version)
        assert next(layer for layer in model.body if isinstance(layer, nn.Linear)).in_features == inputs
        assert sum(isinstance(layer, nn.GroupNorm) for layer in model.body) == 3


def test_a_bottleneck_is_relu_of_branch_and_shortcut():
    block = Bottleneck(6, 2, 2).double().eval()
    inputs = torch.randn(3, 6, 7, 9, dtype=torch.float64)
    one, norm_one, _, two, norm_two, _, three, norm_three = block.residual
    hidden = norm_three(three(norm_two(two(norm_one(one(inputs)).relu())).relu()))
    convolution, shortcut_norm = block.shortcut
    torch.testing.assert_close(block(inputs), (hidden + shortcut_norm(convolution(inputs))).relu())
    assert (one.stride, two.stride, three.stride, convolution.stride) == ((1, 1), (2, 2), (1, 1), (2, 2))
    assert hidden.shape == (3, 8, 4, 5)
    assert len(Bottleneck(8, 2, 1).shortcut) == 0


def test_a_dense_layer_puts_its_channels_behind_the_input():
    layer = DenseLayer(5).double().eval()
    inputs = torch.randn(2, 5, 4, 6, dtype=torch.float64)
    norm_one, _, one, norm_two, _, two = layer.new
    new = two(norm_two(one(norm_one(inputs).relu())).relu())
    torch.testing.assert_close(layer(inputs), torch.cat([inputs, new], 1))
    assert new.shape == (2, 32, 4, 6)


@pytest.mark.parametrize(("name", "buffers"), [("resnet56", 55 + 2), ("densenet121", 120), ("resnet50", 53)])
def test_every_batch_normalisation_is_averaged_by_its_floating_buffers(name, buffers):
    model = build_model(name, (3, 8, 8), 3, seed=0)
    layout = Layout.of(model)
    assert len(normalisers(model)) == buffers
    assert len(layout.buffers) == 2 * buffers
    assert not any("num_batches" in name for name, _ in layout.buffers)


def test_a_residual_block_is_relu_of_branch_and_shortcut():
    block = build_model("resnet8", (2, 9, 11), 3, seed=0, norm="group").double().body[4]
    inputs = torch.randn(2, 16, 9, 11, dtype=torch.float64)
    first, norm, _, second, last = block.residual
    hidden = last(second(norm(first(inputs)).relu()))
    convolution, shortcut_norm = block.shortcut
    expected = (hidden + shortcut_norm(convolution(inputs))).relu()
    torch.testing.assert_close(block(inputs), expected)
    assert (first.stride, convolution.stride, second.stride) == ((2, 2), (2, 2), (1, 1))


def test_a_residual_network_sweeps_to_its_own_losses():
    model = build_model("resnet8", (3, 8, 8), 3, seed=0).double()
    held = Samples(torch.randn(5, 3, 8, 8, dtype=torch.float64), torch.arange(5) % 3)
    task = Task(model, {"test": held})
    models = torch.stack([task.theta, task.theta + 0.1, 0.5 * task.theta])
    buffers = task.buffers.expand(3, -1)
    found = evaluate(task, models, torch.eye(3), metrics=("loss",), buffers=buffers)["loss"]
    expected = [
        torch.nn.functional.cross_entropy(task.outputs(row, "test", buffers=task.buffers), held.targets)
        for row in models
    ]
    torch.testing.assert_close(found, torch.stack(expected))
