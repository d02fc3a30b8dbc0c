"""Lanczos on this project's own curvature-vector products."""

from __future__ import annotations

import torch

from landscape.hessian import Problem
from landscape.krylov import leading
from landscape.lanczos import Eigenpairs
from landscape.products import product


def eigenpairs(problem: Problem, k: int, *, tolerance: float, max_products: int, seed: int) -> Eigenpairs:
    """The k eigenpairs of largest magnitude; residuals are those of the recurrence or the stored products."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(len(problem.theta), generator=generator, dtype=torch.float64).to(problem.theta)
    return leading(product(problem), start, k, tolerance=tolerance, max_products=max_products, seed=seed)
