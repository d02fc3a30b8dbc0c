"""Curvature-vector products by the R-operator where it is correct, else by autograd."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from landscape.curvature.gauss_newton import gnvp
from landscape.curvature.hessian import CurvatureProblem, check_loss
from landscape.curvature.hessian_products import MEMORY, linearise
from landscape.curvature.krylov import starting
from landscape.curvature.lanczos import Product
from landscape.curvature.r_operator import Chain, chain
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples

PROBE = 4
"""Samples on which the R-operator is compared with autograd."""

PASS = 16 * 2**20
"""Bytes of one pass of the R-operator on a CPU, so that they stay in its cache."""

LEAST = 32
"""Least samples in such a pass."""


class Products:
    """Curvature-vector products at one theta, for any samples.

    Args:
        flat: Supplies module, buffers and mode.
        theta: Model, shape (d,).
        probe: Samples; the first few decide whether the R-operator is correct for this model.
        curvature: "hessian" or "gauss_newton".
        block: Samples in one gradient graph, where autograd is needed.
        memory: Most bytes in memory between the products of one set of samples.
    """

    def __init__(
        self,
        flat: Flat,
        theta: Tensor,
        probe: Samples,
        *,
        curvature: str = "hessian",
        block: int = 256,
        memory: int = MEMORY,
    ) -> None:
        self.flat, self.theta, self.curvature, self.block, self.memory = flat, theta, curvature, block, memory
        self.sample_bytes = PASS
        self.chain = self._agreeing(probe[:PROBE])
        if self.chain is None and curvature == "hessian" and len(probe):
            self._require_symmetry(probe[:PROBE])

    def linearise(self, samples: Samples) -> tuple[Product, Tensor]:
        """v (d,) -> A v (d,), with A of the mean loss of these samples, and the gradient (d,).

        The gradient is zeros where it would cost extra; it lies mostly among the largest eigenvectors.

        Raises:
            ValueError: If there are no samples, or the loss of one is not finite.
        """
        usable = self.chain if len(samples) and not bool((samples.targets < 0).any()) else None
        return (usable and self._by_chain(usable, samples)) or self._by_autograd(samples)

    def _by_chain(self, model_chain: Chain, samples: Samples) -> tuple[Product, Tensor] | None:
        exact = self.curvature == "hessian"
        room = PASS if self.theta.device.type == "cpu" else self.memory // 4
        block = max(LEAST, room // self.sample_bytes)
        return model_chain.linearise(samples, block=block, memory=self.memory, gauss_newton=not exact)

    def _by_autograd(self, samples: Samples) -> tuple[Product, Tensor]:
        check_loss(self.flat, samples, block=self.block)
        if self.curvature == "hessian":
            return linearise(self.flat, self.theta, samples, block=self.block, memory=self.memory)
        return gnvp(self.flat, self.theta, samples, block=self.block), torch.zeros_like(self.theta)

    def _agreeing(self, probe: Samples) -> Chain | None:
        """The model as a chain, if its product with a random vector on the probe equals that of autograd."""
        model_chain = chain(self.flat, self.theta, probe)
        if model_chain is None or len(probe) == 0 or bool((probe.targets < 0).any()):
            return None
        self.sample_bytes = max(1, model_chain.state_bytes(probe) // len(probe))
        vector = starting(self.theta, 0)
        if (linear := self._by_chain(model_chain, probe)) is None:
            return None
        mine, theirs = linear[0](vector), self._by_autograd(probe)[0](vector)
        close = (mine - theirs).norm() <= torch.finfo(vector.dtype).eps ** 0.5 * theirs.norm()
        return model_chain if bool(close) else None

    def _require_symmetry(self, probe: Samples) -> None:
        """Refuse u^T H v and v^T H u that differ: torch then has a wrong derivative of a function of the model."""
        matrix = linearise(self.flat, self.theta, probe, block=self.block, memory=self.memory)[0]
        pair = [starting(self.theta, seed) for seed in (1, 2)]
        (u, v), (hu, hv) = ([part.double() for part in parts] for parts in (pair, map(matrix, pair)))
        gap, scale = float((u @ hv - v @ hu).abs()), float(hu.norm() * v.norm() + hv.norm() * u.norm())
        if gap > torch.finfo(self.theta.dtype).eps ** 0.5 * scale:
            raise ValueError(
                f"the Hessian of {type(self.flat.module).__name__} by torch is not symmetric (relative difference "
                f"{gap / scale:.1g}), so it has no eigenvalues: the backward pass of a function is not its derivative, "
                f"or losses are too small for {self.theta.dtype}; try a model in float64."
            )


def product(problem: CurvatureProblem) -> Product:
    """Products of a problem's matrix with vectors."""
    return linearise_problem(problem)[0]


def linearise_problem(problem: CurvatureProblem) -> tuple[Product, Tensor]:
    """Products of a problem's matrix with vectors, and the gradient (d,) as in `Products.linearise`."""
    matrices = Products(problem.flat, problem.theta, problem.samples, curvature=problem.curvature, block=problem.block)
    return matrices.linearise(problem.samples)


def wide_product(problem: CurvatureProblem) -> Product | None:
    """Products of a problem's matrix in float64; None for a problem in float64, and where the model has none."""
    flat, wide = problem.flat, problem.theta.to(torch.float64 if problem.theta.device.type != "mps" else torch.float32)
    if wide.dtype == problem.theta.dtype:
        return None
    try:
        copy = flat.anew(wide.dtype)
        copy.load(wide, flat.buffers)
        return product(replace(problem, flat=copy, theta=wide))
    except (RuntimeError, TypeError):  # a dtype that is written into the model
        return None
