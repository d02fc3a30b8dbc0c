"""PyHessian's power iteration with deflation, as a cross-check.

Source: Yao et al. 2020, PyHessian; the package of that name, version 0.1.
"""

import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from landscape.curvature.hessian import CurvatureProblem, check_loss
from landscape.curvature.hessian_products import hvp
from landscape.curvature.krylov import Eigenpairs, accepted, measured
from landscape.curvature.second_derivatives import second_derivatives
from landscape.model.losses import SampleLoss, batch_mean, sample_weights
from landscape.model.samples import Samples


def eigenpairs(
    problem: CurvatureProblem, k: int, *, which: str, tolerance: float, max_products: int, seed: int
) -> Eigenpairs:
    """The k eigenpairs that PyHessian finds, in float32, which is all it works in.

    Each pair gets max_products / k iterations and stops when its value changes by less than `tolerance`^2 (relative):
    at `tolerance` itself it often stops on the way past a lower eigenvalue. A value has converged if its residual, by
    one native product in theta's dtype, is within sqrt(`tolerance`) |value|, where its error is of the order of
    `tolerance`. The model is a private copy; global random state is left as it was.

    Raises:
        LookupError: If PyHessian is not installed.
        ValueError: If another curvature than the Hessian, or another end than the largest magnitude, is asked for.
    """
    if which != "magnitude":
        raise ValueError(f"the back end 'pyhessian' does not have which={which!r}; use 'native' or 'curvlinops'.")
    if problem.curvature != "hessian":
        raise ValueError(f"the back end 'pyhessian' does not have {problem.curvature}; use 'native' or 'curvlinops'.")
    solver = _package()
    check_loss(problem.flat, problem.samples, block=problem.block)
    _check_weights(problem)
    iterations = max(2, max_products // k)
    model, blocks = _Indexed(problem), _blocks(problem)
    data: dict[str, Any] = {"data": blocks[0]} if len(blocks) == 1 else {"dataloader": blocks}
    devices = [problem.theta.device] if problem.theta.is_cuda else []
    with torch.random.fork_rng(devices=devices), second_derivatives(problem.flat), warnings.catch_warnings():
        # it calls backward(create_graph=True) by design; the cycle that torch warns of is cut below
        warnings.filterwarnings("ignore", message="Using backward.. with create_graph=True")
        torch.manual_seed(seed)
        solution = solver(model, model.loss, cuda=problem.theta.is_cuda, **data)
        values, vectors = solution.eigenvalues(maxIter=iterations, tol=tolerance**2, top_n=k)
    products = model.resets if len(blocks) == 1 else model.resets // (1 + 2 * len(blocks))
    model.zero_grad(set_to_none=True)
    return _measured(problem, values, vectors, products, tolerance)


def _check_weights(problem: CurvatureProblem) -> None:
    loss, targets = problem.flat.loss, problem.samples.targets
    plain = sample_weights(loss, targets) is None and not (isinstance(loss, SampleLoss) and loss.kind != "mean")
    if not plain and len(problem.samples) > problem.block:
        raise ValueError(
            "the back end 'pyhessian' weighs blocks by their numbers of samples, and these samples have weights; use "
            f"'native', or one block, block={len(problem.samples)}."
        )


def _package() -> Any:
    try:
        from pyhessian import hessian
    except ImportError as missing:
        raise LookupError(
            f"the back end 'pyhessian' needs the package PyHessian ({missing}). Install it with: pip install pyhessian"
        ) from missing
    return hessian


class _Indexed(nn.Module):
    """The model as a function of sample indices, so that inputs of any structure pass through PyHessian."""

    def __init__(self, problem: CurvatureProblem) -> None:
        super().__init__()
        self.flat = problem.flat.anew(torch.float32)
        self.flat.load(problem.theta, problem.flat.buffers)
        self.module = self.flat.module
        self.samples: Samples = problem.samples
        self.resets = 0

    def forward(self, index: Tensor) -> Tensor:
        return self.flat.outputs(self.samples[index.cpu()].inputs)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean loss of a block; a zero lets PyHessian differentiate twice by parameters that the loss lacks."""
        return batch_mean(self.flat.loss, outputs, targets) + sum(0 * (p**2).sum() for p in self.parameters())

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As in torch; counted, since PyHessian resets gradients a fixed number of times per product."""
        self.resets += 1
        super().zero_grad(set_to_none)


def _blocks(problem: CurvatureProblem) -> list[tuple[Tensor, Tensor]]:
    pieces = torch.arange(len(problem.samples)).split(problem.block)
    targets = problem.samples.targets
    targets = targets.float() if targets.is_floating_point() else targets
    return [(piece, targets[piece].to(problem.theta.device)) for piece in pieces]


def _measured(
    problem: CurvatureProblem, values: list[float], vectors: list[list[Tensor]], products: int, tolerance: float
) -> Eigenpairs:
    """PyHessian's pairs in order of magnitude, measured by native products."""
    order = sorted(range(len(values)), key=lambda index: -abs(values[index]))
    rows = (torch.cat([tensor.detach().reshape(-1) for tensor in vectors[index]]).to(problem.theta) for index in order)
    units = (nn.functional.normalize(row, dim=0) for row in rows)
    product = hvp(problem.flat, problem.theta, problem.samples, block=problem.block)
    limit = accepted("magnitude", tolerance**0.5, max(map(abs, values)), torch.float32)
    solution = [(values[index], math.inf) for index in order]
    return measured(product, units, [True] * len(solution), limit, spent=products, values=solution)
