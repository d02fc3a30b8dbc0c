"""Products of the Hessian of the mean loss and a vector, by double backward in blocks of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.func import functional_call

from landscape.curvature.second_derivatives import require_second_derivatives, second_derivatives
from landscape.model.bound_model import Flat
from landscape.model.losses import batch_mean, loss_blocks
from landscape.model.samples import Samples, call_module, map_leaves

MEMORY = 512 * 2**20
"""Bytes of gradient graphs or activations in memory between products."""


def hvp(
    flat: Flat, theta: Tensor, samples: Samples, *, block: int = 256, memory: int = MEMORY
) -> Callable[[Tensor], Tensor]:
    """The Hessian of the mean loss at theta, as a function v (d,) -> H v (d,); arguments as in `linearise`."""
    return linearise(flat, theta, samples, block=block, memory=memory)[0]


def linearise(
    flat: Flat, theta: Tensor, samples: Samples, *, block: int = 256, memory: int = MEMORY
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """The Hessian of the mean loss at theta, as a function v (d,) -> H v (d,), and the gradient (d,).

    Double backward, block by block. The gradient graphs of as many blocks as fit into `memory` are cached between
    products, which saves a third to a half of the time; the others are computed again per product.

    Args:
        flat: Supplies module, buffers and mode; its theta does not change.
        theta: Model, shape (d,).
        block: Samples in one gradient graph.
        memory: Most bytes of cached graphs, estimated from the graphs of one and of two samples. A single block is
            always cached, since computing it needs as much; a smaller `block` needs less.

    Raises:
        ValueError: If there are no samples.
    """
    if len(samples) == 0:
        raise ValueError("the split has no samples; the Hessian of an empty mean is not defined.")
    blocks, shares = loss_blocks(flat.loss, samples, block)
    # one leaf per parameter: derivatives by parts of one vector would fill a vector per part
    point = {name: part.clone().requires_grad_() for name, part in flat.layout.named(theta.detach()).items()}
    room = 1 if len(blocks) == 1 else memory // _graph_bytes(flat, point, blocks[0])
    cached: list[tuple[Tensor, ...]] = []
    total = torch.empty_like(theta)
    for index, part in enumerate(blocks):
        graph = _gradient_graph(flat, point, part)
        if index == 0:
            require_second_derivatives(flat, graph)
        _accumulate(flat, total, [gradient.detach() for gradient in graph], shares[index], first=index == 0)
        if len(cached) < room:
            cached.append(graph)

    def product(vector: Tensor) -> Tensor:
        image, directions = torch.empty_like(theta), list(flat.layout.named(vector).values())
        for index, part in enumerate(blocks):
            is_cached = index < len(cached)
            graph = cached[index] if is_cached else _gradient_graph(flat, point, part)
            curved = [(slope, v) for slope, v in zip(graph, directions, strict=True) if slope.requires_grad]
            if curved:
                slopes, along = zip(*curved, strict=True)
                leaves = list(point.values())
                with second_derivatives(flat):
                    images = torch.autograd.grad(slopes, leaves, along, retain_graph=is_cached, materialize_grads=True)
            else:  # the loss is linear in theta
                images = tuple(torch.zeros_like(leaf) for leaf in point.values())
            _accumulate(flat, image, images, shares[index], first=index == 0)
        return image

    return product, total


def _accumulate(flat: Flat, total: Tensor, parts: Sequence[Tensor], share: float, *, first: bool) -> None:
    """Add parts, one tensor per parameter, to `total` (d,); the first parts overwrite it."""
    for view, part in zip(flat.layout.named(total).values(), parts, strict=True):
        if first:
            torch.mul(part, share, out=view)
        else:
            view.add_(part, alpha=share)


def _gradient_graph(flat: Flat, point: dict[str, Tensor], samples: Samples) -> tuple[Tensor, ...]:
    """Gradients of the mean loss at `point`, differentiable; fused attention kernels have no second derivative."""
    inputs = map_leaves(lambda leaf: leaf.contiguous(), flat.cast(samples.inputs))  # faster second derivatives
    with second_derivatives(flat):
        outputs = call_module(lambda *args, **kwargs: functional_call(flat.module, point, args, kwargs), inputs)
        loss = batch_mean(flat.loss, outputs, samples.targets.to(flat.theta.device))
        return torch.autograd.grad(loss, list(point.values()), create_graph=True, materialize_grads=True)


def _graph_bytes(flat: Flat, point: dict[str, Tensor], samples: Samples) -> int:
    """Memory of the gradient graph of one block without the parameters: affine in the number of samples."""
    single, pair = (_graph_storage_bytes(flat, point, samples[:count]) for count in (1, 2))
    return max(1, single + (pair - single) * (len(samples) - 1))


def _graph_storage_bytes(flat: Flat, point: dict[str, Tensor], samples: Samples) -> int:
    sizes = {leaf.untyped_storage().data_ptr(): 0 for leaf in point.values()}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes.setdefault(storage.data_ptr(), storage.nbytes())
        return tensor.detach()  # the tensor itself would keep its graph alive in a cycle

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        gradients = _gradient_graph(flat, point, samples)
        sizes.update({slope.untyped_storage().data_ptr(): slope.untyped_storage().nbytes() for slope in gradients})
    return sum(sizes.values())
