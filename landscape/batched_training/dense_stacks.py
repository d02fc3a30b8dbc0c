"""Many stacks of dense layers at once: batched matrix products forward, and backward by hand."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from landscape.batched_training.per_model_gradients import Blocks
from landscape.batched_training.scratch_memory import scratch_buffer
from landscape.model.bound_model import Flat
from landscape.model.hooks import hooked
from landscape.model.losses import IGNORED, cross_entropy
from landscape.model.samples import Inputs
from landscape.models._blocks import Classifier
from landscape.probe import probed


@dataclass(frozen=True)
class LayerSpans:
    """One dense layer: where its weight (outputs, inputs) and bias lie in theta, and whether a ReLU follows."""

    outputs: int
    inputs: int
    weight: slice
    bias: slice | None
    relu: bool


class DenseGradients:
    """Gradients of a model that is a plain chain of dense layers with ReLU between, m of them in one batched product.

    With A_0 the inputs (m, B, q): Z_l = A_{l-1} W_l^T + b_l and A_l = max(Z_l, 0); backward dW_l = dZ_l^T A_{l-1},
    db_l = sum_B dZ_l and dA_{l-1} = dZ_l W_l, with dZ = dA where A > 0. The derivative of the loss with respect to
    the outputs is softmax minus one-hot for cross-entropy and autograd's for any other loss. Weights are views of
    theta, and gradients are written in place if each weight has its own block.
    """

    def __init__(self, flat: Flat, layers: list[LayerSpans]) -> None:
        self.flat, self.layers = flat, layers
        self.columns = list(flat.layout.slices().values())

    @classmethod
    def from_model(cls, flat: Flat) -> DenseGradients | None:
        """Gradients of a model; None if it is no such chain or has other trainable parameters."""
        chain = _chain("", flat.module)
        spans = flat.layout.slices()
        layers: list[LayerSpans] = []
        for name, module in chain or []:
            if type(module) is nn.Linear:
                weight, bias = spans.get(f"{name}weight"), spans.get(f"{name}bias")
                if weight is None or (bias is None) != (module.bias is None):
                    return None
                layers.append(LayerSpans(module.out_features, module.in_features, weight, bias, False))
            elif type(module) is nn.ReLU and layers and not layers[-1].relu:
                layers[-1] = LayerSpans(**{**vars(layers[-1]), "relu": True})
            elif type(module) not in (nn.Flatten, nn.Identity) or (type(module) is nn.Flatten and layers):
                return None
        used = sum(1 + (layer.bias is not None) for layer in layers)
        return cls(flat, layers) if layers and used == len(spans) else None

    def gradient(self, thetas: Blocks, inputs: Inputs, targets: Tensor, weights: Tensor, out: Blocks) -> Tensor:
        """Losses (m,) of m models; writes their gradients into `out`."""
        if not isinstance(inputs, Tensor):
            raise ValueError(f"a chain of dense layers takes one tensor, not a {type(inputs).__name__}.")
        m, batch = weights.shape
        values = [inputs.to(thetas[0]).reshape(m, batch, -1)]
        for layer in self.layers:
            values.append(self._forward(layer, thetas, values[-1]))
        losses, slope = self._outputs(values[-1], targets, weights)
        for layer, received, output in zip(self.layers[::-1], values[-2::-1], values[:0:-1], strict=True):
            if layer.relu:
                slope = relu_slope(slope, output)
            into = self._view(out, layer.weight)
            shape = (m, layer.outputs, layer.inputs)
            if into.is_contiguous():
                torch.bmm(slope.transpose(1, 2), received, out=into.view(shape))
            else:  # where bmm would allocate
                into.copy_(
                    torch.bmm(slope.transpose(1, 2), received, out=scratch_buffer("dense", shape, into)).view_as(into)
                )
            if layer.bias is not None:
                torch.sum(slope, 1, out=self._view(out, layer.bias))
            if received is not values[0]:
                slope = torch.bmm(slope, self._view(thetas, layer.weight).view(shape))
        return losses

    def step_values(self, inputs: Inputs) -> int:
        """Values per sample of a step: inputs of every layer, outputs and their derivatives."""
        return sum(layer.inputs + 2 * layer.outputs for layer in self.layers)

    def _view(self, blocks: Blocks, span: slice) -> Tensor:
        return blocks[0][:, span] if len(blocks) == 1 else blocks[self.columns.index(span)]

    def _forward(self, layer: LayerSpans, thetas: Blocks, received: Tensor) -> Tensor:
        weight = self._view(thetas, layer.weight).view(-1, layer.outputs, layer.inputs).transpose(1, 2)
        if layer.bias is None:
            output = torch.bmm(received, weight)
        else:
            output = torch.baddbmm(self._view(thetas, layer.bias)[:, None], received, weight)
        return output.clamp_(min=0) if layer.relu else output

    def _outputs(self, outputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Losses (m,), and their derivative with respect to the outputs (m, B, C)."""
        m, batch = weights.shape
        flat, classes = outputs.flatten(0, 1), targets.flatten(0, 1)
        if self.flat.loss is cross_entropy and not classes.is_floating_point():
            logs = flat.t().contiguous().log_softmax(0)  # (C, m B): softmax over few classes is slow along rows
            counted = classes != IGNORED
            shares = weights.reshape(-1).where(counted, 0)
            aim = torch.zeros_like(logs).scatter_(0, classes.where(counted, 0)[None], shares.neg()[None])  # by the logs
            slope = torch.addcmul(aim, logs.exp(), shares)  # as the aims of a sample add up to -weight
            return aim.mul_(logs).view(-1, m, batch).sum((0, 2)), slope.t().contiguous().view_as(outputs)
        with torch.enable_grad():
            leaf = flat.requires_grad_()
            losses = self.flat.loss(leaf, classes).view(m, batch) * weights
            (slope,) = torch.autograd.grad(losses.sum(), leaf)
        return losses.detach().sum(1), slope.view_as(outputs)


def _masked(slope: Tensor, output: Tensor) -> Tensor:
    return slope.masked_fill(output <= 0, 0)


@probed(_masked)
def relu_slope(slope: Tensor, output: Tensor) -> Tensor:
    """Derivative by the input of a ReLU from that by its output; public ways take ten times as long."""
    return torch.ops.aten.threshold_backward(slope, output, 0)


def _chain(name: str, module: nn.Module) -> list[tuple[str, nn.Module]] | None:
    """Names and leaf modules in the order of their calls; None if the order is unknown."""
    if hooked(module) or "forward" in vars(module):
        return None
    if type(module) not in (nn.Sequential, Classifier):
        return [(f"{name}.".lstrip("."), module)]
    leaves: list[tuple[str, nn.Module]] = []
    for child, inner in module.named_modules(remove_duplicate=False):  # named_children omits repeated modules
        if not child or "." in child:
            continue
        below = _chain(f"{name}.{child}".lstrip("."), inner)
        if below is None:
            return None
        leaves += below
    return leaves
