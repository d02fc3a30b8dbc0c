"""Products of the curvature of the mean loss and a vector, by double backward in blocks of samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from landscape.curvature.second_derivatives import require_second_derivatives, second_derivatives
from landscape.model.bound_model import Flat, outputs_with
from landscape.model.losses import batch_mean, loss_blocks
from landscape.model.samples import Samples, map_leaves

MEMORY = 512 * 2**20
"""Bytes of graphs in memory between products."""

Point = dict[str, Tensor]
"""Parameters by name, each a leaf: derivatives by parts of one vector would fill a vector per part."""


@dataclass(frozen=True)
class BlockGraph:
    """What products with the curvature of one block's mean loss share.

    Attributes:
        slopes: Derivatives by each parameter, whose graph the products use.
        gradient: Of the mean loss, by parameter.
        image: A direction, by parameter, to its image.
    """

    slopes: Sequence[Tensor]
    gradient: Sequence[Tensor]
    image: Callable[[Sequence[Tensor]], Sequence[Tensor]]


MakeGraph = Callable[[Flat, Point, Samples], BlockGraph]


def hvp(
    flat: Flat, theta: Tensor, samples: Samples, *, block: int = 256, memory: int = MEMORY
) -> Callable[[Tensor], Tensor]:
    """The Hessian of the mean loss at theta, as a function v (d,) -> H v (d,); arguments as in `linearise`."""
    return linearise(flat, theta, samples, block=block, memory=memory)[0]


def hessian_graph(flat: Flat, point: Point, samples: Samples) -> BlockGraph:
    """The Hessian: the derivative of the gradient by the parameters, along a direction."""
    leaves = list(point.values())
    with second_derivatives(flat):
        loss = batch_mean(flat.loss, outputs_at(flat, point, samples), samples.targets.to(flat.theta.device))
        slopes = torch.autograd.grad(loss, leaves, create_graph=True, materialize_grads=True)
    return BlockGraph(slopes, slopes, lambda along: transposed(slopes, leaves, along))


def linearise(
    flat: Flat,
    theta: Tensor,
    samples: Samples,
    *,
    block: int = 256,
    memory: int = MEMORY,
    graph: MakeGraph = hessian_graph,
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """The curvature of the mean loss at theta, as a function v (d,) -> A v (d,), and the gradient (d,).

    Double backward, block by block. The graphs of as many blocks as fit into `memory` are cached between products,
    which saves a third to a half of the time; the others are computed again per product.

    Args:
        flat: Supplies module, buffers and mode; its theta does not change.
        theta: Model, shape (d,).
        block: Samples in one graph.
        memory: Most bytes of cached graphs, estimated from the graphs of one and of two samples. A single block is
            always cached, since computing it needs as much; a smaller `block` needs less.
        graph: Makes the graph of a block, which says what the curvature is.

    Raises:
        ValueError: If there are no samples.
    """
    if len(samples) == 0:
        raise ValueError("the split has no samples; the curvature of an empty mean is not defined.")
    blocks, shares = loss_blocks(flat.loss, samples, block)
    point = {name: tensor.clone().requires_grad_() for name, tensor in flat.layout.named(theta.detach()).items()}
    room = 1 if len(blocks) == 1 else memory // _graph_bytes(flat, point, blocks[0], graph)
    cached: list[BlockGraph] = []
    total = torch.empty_like(theta)
    for index, batch in enumerate(blocks):
        block_graph = graph(flat, point, batch)
        if index == 0:
            require_second_derivatives(flat, block_graph.slopes)
        _accumulate(flat, total, [slope.detach() for slope in block_graph.gradient], shares[index], first=index == 0)
        if len(cached) < room:
            cached.append(block_graph)

    def product(vector: Tensor) -> Tensor:
        image, directions = torch.empty_like(theta), list(flat.layout.named(vector).values())
        for index, block in enumerate(blocks):
            block_graph = cached[index] if index < len(cached) else graph(flat, point, block)
            with second_derivatives(flat):
                images = block_graph.image(directions)
            _accumulate(flat, image, images, shares[index], first=index == 0)
        return image

    return product, total


def outputs_at(flat: Flat, point: Point, samples: Samples) -> Tensor:
    """Outputs of the model at `point`, differentiable."""
    inputs = map_leaves(lambda leaf: leaf.contiguous(), flat.cast(samples.inputs))  # faster second derivatives
    return outputs_with(flat.module, point, inputs)


def transposed(outputs: Sequence[Tensor], inputs: Sequence[Tensor], along: Sequence[Tensor]) -> Sequence[Tensor]:
    """The derivative of sum(along * outputs) by each input; zeros where outputs do not depend on it."""
    pairs = [(output, direction) for output, direction in zip(outputs, along, strict=True) if output.requires_grad]
    if not pairs:
        return [torch.zeros_like(leaf) for leaf in inputs]
    curved, directions = zip(*pairs, strict=True)
    return torch.autograd.grad(curved, inputs, directions, retain_graph=True, materialize_grads=True)


def _accumulate(flat: Flat, total: Tensor, tensors: Sequence[Tensor], share: float, *, first: bool) -> None:
    """Add parts, one tensor per parameter, to `total` (d,); the first parts overwrite it."""
    for view, tensor in zip(flat.layout.named(total).values(), tensors, strict=True):
        if first:
            torch.mul(tensor, share, out=view)
        else:
            view.add_(tensor, alpha=share)


def _graph_bytes(flat: Flat, point: Point, samples: Samples, graph: MakeGraph) -> int:
    """Memory of the graph of one block without the parameters: affine in the number of samples."""
    single, pair = (_graph_storage_bytes(flat, point, samples[:count], graph) for count in (1, 2))
    return max(1, single + (pair - single) * (len(samples) - 1))


def _graph_storage_bytes(flat: Flat, point: Point, samples: Samples, graph: MakeGraph) -> int:
    sizes = {leaf.untyped_storage().data_ptr(): 0 for leaf in point.values()}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes.setdefault(storage.data_ptr(), storage.nbytes())
        return tensor.detach()  # the tensor itself would keep its graph alive in a cycle

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        slopes = graph(flat, point, samples).slopes
        sizes.update({slope.untyped_storage().data_ptr(): slope.untyped_storage().nbytes() for slope in slopes})
    return sum(sizes.values())
