"""Losses and gradients of many models of one architecture at once, each on its own minibatch."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.func import grad_and_value, vmap

from landscape.model.bound_model import Flat, outputs_with
from landscape.model.families import NORMS, family
from landscape.model.hooks import observed
from landscape.model.samples import Inputs, leaves, map_leaves

SHARED = (
    *NORMS,
    *family(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout),
)
"""Layers whose output in training depends on the whole minibatch or on global randomness."""


Blocks = Sequence[Tensor]
"""m vectors (m, d) cut between columns into contiguous blocks (m, k): one block, or `ModelGradients.columns`."""


class ModelGradients(Protocol):
    """Gradients of m models at once, model i on its own minibatch.

    Attributes:
        columns: Column ranges of (m, d) that are best stored as separate blocks, in order.
    """

    columns: list[slice]

    def gradient(self, thetas: Blocks, inputs: Inputs, targets: Tensor, weights: Tensor, out: Blocks) -> Tensor:
        """Losses (m,) of m models; writes their gradients into `out`.

        Args:
            thetas, out: One model and one gradient per row, (m, d) in blocks, cut at the same columns.
            inputs, targets: Minibatches with axes of models and samples, (m, B, ...).
            weights: Of the samples in the mean of their model, shape (m, B); 0 for padding.
        """

    def step_values(self, inputs: Inputs) -> int:
        """Approximate values per sample of a step; `inputs` (n, ...) are those of one model, n may be 0."""


class VmapGradients:
    """Gradients of any model by `torch.func.vmap`: layers become grouped convolutions and batched matrix products.

    Raises:
        ValueError: If a layer makes the samples of a minibatch depend on each other or draws random numbers.
    """

    def __init__(self, flat: Flat) -> None:
        shared = sorted({type(layer).__name__ for layer in flat.module.modules() if isinstance(layer, SHARED)})
        if shared:
            raise ValueError(f"{', '.join(shared)} in training depend on the whole minibatch or on global randomness")
        self.flat = flat
        self.columns = [slice(0, flat.layout.size)]
        self._per_model = vmap(grad_and_value(self._loss))

    def gradient(self, thetas: Blocks, inputs: Inputs, targets: Tensor, weights: Tensor, out: Blocks) -> Tensor:
        """Losses (m,) of m models; writes their gradients into `out`."""
        (models,), (into,) = thetas, out
        cast = map_leaves(lambda leaf: leaf.to(models) if leaf.is_floating_point() else leaf, inputs)
        self.flat.training(True)
        gradients, losses = self._per_model(models, cast, targets, weights)
        self.flat.training(False)
        into.copy_(gradients)
        return losses.detach()

    @torch.no_grad()
    def step_values(self, inputs: Inputs) -> int:
        """Outputs of all layers for one sample and their derivatives, as backward needs them."""
        sample = map_leaves(lambda leaf: leaf.new_zeros(1, *leaf.shape[1:]), inputs)
        counts: list[int] = []

        def note(name: str, layer: nn.Module, output: Tensor) -> None:
            if next(layer.children(), None) is None:
                counts.append(output.numel())

        observed(self.flat.module, lambda: self.flat.outputs(sample), note)
        return 2 * sum(counts) + sum(leaf.numel() for leaf in leaves(sample))

    def _loss(self, theta: Tensor, inputs: Inputs, targets: Tensor, weights: Tensor) -> Tensor:
        state = self.flat.layout.named(theta)
        return (weights * self.flat.loss(outputs_with(self.flat.module, state, inputs), targets)).sum()


def model_gradients(flat: Flat) -> ModelGradients:
    """The fastest gradients of a model: by hand for stacks of dense layers, else by `vmap`.

    Raises:
        ValueError: If a layer makes the samples of a minibatch depend on each other or draws random numbers.
    """
    from landscape.batched_training.dense_stacks import DenseGradients

    stack = DenseGradients.from_model(flat)
    return VmapGradients(flat) if stack is None else stack


def single_model_gradient(
    flat: Flat, theta: Tensor, inputs: Inputs, targets: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Loss () and gradient (d,) of one model by plain autograd, the reference for `ModelGradients`."""
    flat.load(theta)
    flat.grad.zero_()
    flat.training(True)
    with torch.enable_grad():
        loss = (weights * flat.loss(flat.outputs(inputs), targets)).sum()
        loss.backward()
    flat.training(False)
    return loss.detach(), flat.grad.clone()
