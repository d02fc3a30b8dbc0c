import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from oracles import cnn_task, mlp_task
from torch import nn

from landscape.measures.cost import measure_cost, measure_seconds, median_and_range, step_cost, transfer_bytes
from landscape.model.samples import Samples
from landscape.model.task import Task


def test_a_linear_network_costs_its_weights():
    task = mlp_task()
    ds = step_cost(task, task.theta, batch=7, repeats=1)
    assert float(ds.macs) == 4 * 5 + 5 * 3
    assert float(ds.transfer) == 43 * 8
    assert ds.attrs["batch"] == 7
    assert float(ds.forward) > 0
    assert float(ds.memory) > 2 * 43 * 8


def test_a_convolution_costs_kernel_times_output():
    task = cnn_task(norm=True)
    ds = step_cost(task, task.theta, repeats=1)
    assert float(ds.macs) == 4 * (6 * 7) * (2 * 3 * 3) + 36 * 3
    assert float(ds.transfer) == 8 * (task.layout.size + task.layout.buffer_size)
    assert transfer_bytes(task, task.theta.float()) == float(ds.transfer) / 2


def test_backward_costs_both_products_but_for_the_input():
    weight, inputs = torch.ones(6, 3, requires_grad=True), torch.ones(5, 6)
    found = measure_cost(lambda: (inputs @ weight).sum().backward())
    assert found.macs == 2 * 5 * 6 * 3


def test_memory_is_what_is_alive_at_one_time():
    def action():
        held = torch.zeros(1000, dtype=torch.float32)
        for _ in range(4):
            held = held + 1  # the old and the new one
        held.view(10, 100).mul_(2)

    assert measure_cost(action).memory == 2 * 4000


def test_operations_of_inference_mode_are_counted():
    layer, inputs = nn.Linear(6, 3), torch.ones(5, 6)
    assert measure_cost(torch.inference_mode()(lambda: layer(inputs)), repeats=1).macs == 5 * 6 * 3


COUNTS = """
import sys
from functools import partial
import torch
from landscape.measures.cost import measure_cost
found = measure_cost(lambda: torch.ones(5, 6) @ torch.ones(6, 3))
print(found.macs, found.memory, sorted({"torch._dynamo", "sympy"} & set(sys.modules)))
"""


def test_counting_loads_no_compiler():
    shown = subprocess.run([sys.executable, "-c", COUNTS], capture_output=True, text=True, check=False)
    assert shown.stdout == "90 252 []\n", shown.stderr[-2000:]


def test_a_larger_batch_holds_more_at_the_same_cost_a_sample():
    task = cnn_task()
    small, large = (step_cost(task, task.theta, batch=batch, repeats=1) for batch in (2, 20))
    assert float(small.macs) == float(large.macs)
    assert float(small.memory) < float(large.memory)


def test_resnet18_costs_what_the_paper_counts():
    """1.82 G (LSS paper, Table 5) at 224 x 224: stem, four stages of two blocks, three projections, head."""
    layers = [(3, 64, 7, 2, 224), *[(64, 64, 3, 1, 56)] * 4]
    for wide, size in ((128, 56), (256, 28), (512, 14)):
        layers += [(wide // 2, wide, 3, 2, size), (wide // 2, wide, 1, 2, size), *[(wide, wide, 3, 1, size // 2)] * 3]
    convolutions = [
        (nn.Conv2d(i, o, k, stride, k // 2, bias=False, device="meta"), torch.empty(1, i, size, size, device="meta"))
        for i, o, k, stride, size in layers
    ]
    head = (nn.Linear(512, 1000, device="meta"), torch.empty(1, 512, device="meta"))
    found = measure_cost(lambda: [layer(inputs) for layer, inputs in [*convolutions, head]])
    assert found.macs == pytest.approx(1.82e9, rel=0.005)


def test_an_empty_split_is_refused():
    task = mlp_task()
    with pytest.raises(ValueError, match="no samples"):
        step_cost(task, task.theta, split=task.samples["train"][:0])


def test_actions_are_timed_in_turn_and_in_both_orders():
    called = []
    found = measure_seconds(lambda: called.append("a"), lambda: called.append("b"), repeats=3)
    assert called == ["a", "b", "b", "a", "a", "b"]
    assert found.shape == (3, 2) and (found > 0).all()


def test_a_single_time_has_no_range():
    assert median_and_range(np.array([3.0, 1.0, 7.0])) == (3, 1, 7)
    median, low, high = median_and_range(np.array([2.0]))
    assert median == 2 and np.isnan(low) and np.isnan(high)
    found = measure_cost(lambda: torch.ones(3))
    assert found.low <= found.seconds <= found.high


class _Whole(nn.Module):
    """A layer over sequences, and a dense one on its last place."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.last = layer, nn.Linear(4, 3)

    def forward(self, x):
        attention = isinstance(self.layer, nn.MultiheadAttention)
        found = self.layer(x, x, x)[0] if attention else self.layer(x)
        return self.last((found[0] if isinstance(found, tuple) else found)[:, -1])


@pytest.mark.parametrize(
    ("layer", "macs"),
    [
        (nn.LSTM(4, 4, batch_first=True), 5 * 4 * (16 + 16)),
        (nn.GRU(4, 4, batch_first=True), 5 * 3 * (16 + 16)),
        (nn.MultiheadAttention(4, 2, batch_first=True), 5 * 4 * 16 + 2 * 5 * 5 * 4),
        (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 5 * 4 * 16 + 2 * 5 * 5 * 4 + 5 * 2 * 4 * 8),
    ],
)
def test_layers_with_fused_operations_are_counted(layer, macs):
    task = Task(_Whole(layer), {"train": Samples(torch.randn(6, 5, 4), torch.arange(6) % 3)})
    assert step_cost(task, task.theta, repeats=1).macs.item() == macs + 12


def test_products_of_a_bilinear_layer_are_not_known():
    class Paired(nn.Bilinear):
        def forward(self, x):
            return super().forward(x, x)

    task = Task(Paired(4, 4, 3), {"train": Samples(torch.randn(6, 4), torch.arange(6) % 3)})
    assert step_cost(task, task.theta, repeats=1).macs.isnull()


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("kind", [nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d])
def test_gradients_of_a_convolution_take_as_many_products_as_itself_in_groups_too(kind, groups):
    layer, sizes = kind(4, 8, 3, groups=groups), (7,) if kind is nn.Conv1d else (6, 7)
    inputs = torch.randn(2, 4, *sizes, requires_grad=True)
    places = inputs[0, 0].numel() if kind is nn.ConvTranspose2d else layer(inputs)[0, 0].numel()
    forward = 2 * places * 3 ** len(sizes) * 4 * 8 // groups
    assert measure_cost(lambda: layer(inputs), repeats=1).macs == forward
    assert measure_cost(lambda: layer(inputs).sum().backward(), repeats=1).macs == 3 * forward
    assert measure_cost(lambda: layer(inputs.detach()).sum().backward(), repeats=1).macs == 2 * forward


def test_products_of_three_factors_are_not_known():
    matrix = torch.randn(5, 3)
    product = partial(nn.functional.bilinear, matrix, matrix, torch.randn(2, 3, 3))
    assert np.isnan(measure_cost(product, repeats=1).macs)
