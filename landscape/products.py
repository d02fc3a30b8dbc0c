"""Curvature-vector products by the fastest way that is right: the R-operator where it applies, else autograd."""

from __future__ import annotations

import torch
from torch import Tensor

from landscape.flat import Flat
from landscape.gauss_newton import gnvp
from landscape.hessian import MEMORY, Problem, hvp
from landscape.lanczos import Product
from landscape.roperator import Chain, chain
from landscape.samples import Samples

PROBE = 8
"""Samples on which the R-operator is compared with autograd."""

PASS = 16 * 2**20
"""Bytes that one pass of the R-operator holds where more samples than a block fit."""


class Products:
    """Curvature-vector products at one theta, for any samples.

    Args:
        flat: Supplies module, buffers and mode.
        theta: Model, shape (d,).
        probe: Samples, of which the first few decide whether the R-operator is right for this model.
        curvature: "hessian" or "gauss_newton".
        block: Samples in one pass.
        memory: Bytes held between the products of one set of samples.
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

    def of(self, samples: Samples) -> Product:
        """v (d,) -> A v (d,), with A of the mean loss of these samples."""
        if self.chain is None or len(samples) == 0 or bool((samples.targets < 0).any()):
            return self._by_autograd(samples)
        return self._by_chain(self.chain, samples)

    def _by_chain(self, found: Chain, samples: Samples) -> Product:
        exact = self.curvature == "hessian"
        block = max(self.block, PASS // self.sample_bytes)
        return found.product(samples, block=block, memory=self.memory, gauss_newton=not exact)

    def _by_autograd(self, samples: Samples) -> Product:
        if self.curvature == "hessian":
            return hvp(self.flat, self.theta, samples, block=self.block, memory=self.memory)
        return gnvp(self.flat, self.theta, samples, block=self.block)

    def _agreeing(self, probe: Samples) -> Chain | None:
        """The model as a chain, if that gives autograd's product with a random vector on the probe."""
        found = chain(self.flat, self.theta, probe)
        if found is None or len(probe) == 0 or bool((probe.targets < 0).any()):
            return None
        self.sample_bytes = max(1, found.held_bytes(probe) // len(probe))
        generator = torch.Generator().manual_seed(0)
        vector = torch.randn(len(self.theta), generator=generator, dtype=torch.float64).to(self.theta)
        mine, theirs = self._by_chain(found, probe)(vector), self._by_autograd(probe)(vector)
        close = (mine - theirs).norm() <= torch.finfo(vector.dtype).eps ** 0.5 * theirs.norm()
        return found if bool(close) else None


def product(problem: Problem) -> Product:
    """Products of a problem's matrix with vectors."""
    return Products(problem.flat, problem.theta, problem.samples, curvature=problem.curvature, block=problem.block).of(
        problem.samples
    )
