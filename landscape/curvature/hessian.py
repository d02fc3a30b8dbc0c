"""Curvature of the loss: Hessian-vector products and the Hessian's largest eigenvalues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from landscape import plugins
from landscape.curvature.lanczos import Eigenpairs
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples, call_module, map_leaves
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled

MEMORY = 512 * 2**20
"""Bytes of gradient graphs or activations in memory between products."""

CURVATURES = ("hessian", "gauss_newton")
"""Matrices of which eigenvalues, trace and density are computed; Gauss-Newton omits the curvature of the model."""


@dataclass(frozen=True)
class CurvatureProblem:
    """Input of a back end: the curvature of the mean loss of `samples` at `theta` (d,), in blocks of samples."""

    flat: Flat
    theta: Tensor
    samples: Samples
    block: int
    curvature: str = "hessian"


@takes_models("theta")
def top_eigenvalues(
    task: Task,
    theta: Tensor,
    k: int = 5,
    *,
    split: Split = "train",
    backend: str = "native",
    curvature: str = "hessian",
    tolerance: float = 1e-3,
    max_products: int = 500,
    seed: int = 0,
    buffers: Tensor | None = None,
    vectors: bool = False,
    block: int = 256,
) -> xr.Dataset:
    """Largest Hessian eigenvalues of the mean loss over a split, in eval mode; smaller means flatter.

    Largest in magnitude, sorted by falling magnitude, with their sign.

    Source: FedLAW Fig. 10 (top 1 and top 5); the LSS paper's Table 7 takes the median of the first one over batches,
    which is this function on single batches.

    Args:
        task: Model, loss and samples.
        split: Samples that the numbers are averaged over.
        seed: Seed of the random draws.
        theta: Model, shape (d,); its dtype and device are used.
        k: Number of eigenvalues.
        backend: "native" (Lanczos), "curvlinops" (its products in ARPACK) or "pyhessian" (power iteration with
            deflation, float32, Hessian only).
        curvature: "hessian" or "gauss_newton".
        tolerance: For "native" its square is the relative error expected of the values, and ||H v - value v|| / |value|
            is below it; for "pyhessian" the relative change of a value at which iteration stops. 1e-3 as in PyHessian.
        max_products: Hessian-vector products at most; 500 is the papers' 100 iterations for each of five values.
        buffers: Floating buffers (b,) of the model; by default those of the task.
        vectors: Also return eigenvectors.
        block: Samples in one gradient graph.

    Returns:
        Dataset with eigenvalue (rank,) and residual (rank,), ranks 1..k, and on request unit eigenvector
        (rank, parameter), whose entry of largest magnitude is positive. Attributes: products spent, converged (1 or 0).

    Raises:
        ValueError: If the back end is unknown, k is not in 1..d, the split is empty, or the loss is not finite.
        LookupError: If the back end's package is not installed.
    """
    solver = plugins.load("landscape.spectra", backend, "Hessian back end")
    if not 1 <= k <= theta.numel():
        raise ValueError(
            f"k is {k}, the model has {theta.numel()} parameters; ask for 1 to {theta.numel()} eigenvalues."
        )
    posed = pose(task, theta, split=split, buffers=buffers, block=block, curvature=curvature)
    pairs = solver.eigenpairs(posed, k, tolerance=tolerance, max_products=max_products, seed=seed)
    return _dataset(pairs, backend, vectors).assign_attrs(curvature=curvature)


hessian = top_eigenvalues
"""The same by a shorter name: `landscape.hessian(task, model, k=5)`."""


def pose(
    task: Task,
    theta: Tensor,
    *,
    split: Split = "train",
    buffers: Tensor | None = None,
    block: int = 256,
    curvature: str = "hessian",
) -> CurvatureProblem:
    """The curvature of a model as a problem for back ends, on a private copy of the model in eval mode.

    Raises:
        ValueError: If the curvature is unknown or the split is empty.
    """
    if curvature not in CURVATURES:
        raise ValueError(plugins.unknown("curvature", curvature, CURVATURES))
    theta, samples = theta.detach(), task.split(split)
    flat = task.flat(theta)
    flat.load(theta, buffers)
    if len(samples) == 0:
        raise ValueError("the split has no samples; the Hessian of an empty mean is not defined.")
    return CurvatureProblem(flat, theta, samples, block, curvature)


@torch.no_grad()
def check_loss(flat: Flat, samples: Samples, *, block: int = 256) -> None:
    """Require finite losses of all samples at the theta of `flat`.

    Raises:
        ValueError: If a loss is not finite; names the sample.
    """
    targets = samples.targets.to(flat.theta.device)
    for start, part in zip(range(0, len(samples), block), samples.blocks(block), strict=True):
        losses = flat.loss(flat.outputs(part.inputs), targets[start : start + block])
        if not losses.isfinite().all():
            bad = start + int((~losses.isfinite()).nonzero()[0, 0])
            raise ValueError(
                f"the loss of sample {bad} is {losses[bad - start].item()}; the model must be finite there."
            )


@contextmanager
def second_derivatives(flat: Flat) -> Iterator[None]:
    """Context for second derivatives of a model: uses the math attention kernel, as fused ones have none.

    Raises:
        ValueError: If one of the model's functions has no second derivative.
    """
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    except RuntimeError as reason:
        first = str(reason).splitlines()[0]
        if not any(sign in first for sign in _ONCE):
            raise
        raise ValueError(_no_second_derivative(flat, first[:160])) from reason


def require_second_derivatives(flat: Flat, gradients: Sequence[Tensor]) -> None:
    """Refuse gradients through a function marked `once_differentiable`: torch takes their derivatives to be zero.

    Raises:
        ValueError: If there is such a function in the graph of the gradients.
    """
    waiting = [slope.grad_fn for slope in gradients if slope.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if type(node).__name__ == "Error":  # set by `once_differentiable`
            raise ValueError(_no_second_derivative(flat, "a custom function is marked with @once_differentiable"))
        fresh = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= fresh
        waiting.extend(fresh)


def _no_second_derivative(flat: Flat, reason: str) -> str:
    return (
        f"{type(flat.module).__name__} has no second derivative, which curvature needs ({reason}); write the function "
        "that lacks it, and its backward pass, with torch operations that can be differentiated."
    )


_ONCE = ("differentiate twice", "derivative for", "derivative of", "incompatible with .grad()", "use_reentrant")
"""Parts of the messages of torch about functions without second derivative."""


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
    blocks = list(samples.blocks(block))
    # one leaf per parameter: derivatives by parts of one vector would fill a vector per part
    point = {name: part.clone().requires_grad_() for name, part in flat.layout.named(theta.detach()).items()}
    room = 1 if len(blocks) == 1 else memory // _graph_bytes(flat, point, blocks[0])
    cached: list[tuple[Tensor, ...]] = []
    total, shares = torch.empty_like(theta), [len(part) / len(samples) for part in blocks]
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
        loss = flat.loss(outputs, samples.targets.to(flat.theta.device)).mean()
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


def _dataset(pairs: Eigenpairs, backend: str, vectors: bool) -> xr.Dataset:
    variables: dict[str, tuple] = {
        "eigenvalue": ("rank", pairs.values.numpy(), "Hessian eigenvalue"),
        "residual": ("rank", pairs.residuals.numpy(), "||Hv - value v|| / |value|"),
    }
    if vectors:
        variables["eigenvector"] = (("rank", "parameter"), pairs.vectors.cpu().numpy(), "Hessian eigenvector")
    about = {"analysis": "top_eigenvalues", "source": "FedLAW Fig. 10", "backend": backend}
    coords = {"rank": np.arange(1, len(pairs.values) + 1)}
    return labelled(variables, {**about, "products": pairs.products, "converged": int(pairs.converged)}, coords)
