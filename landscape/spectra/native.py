"""Lanczos on this project's own Hessian-vector products."""

from __future__ import annotations

from landscape.hessian import Problem, hvp
from landscape.lanczos import Eigenpairs, lanczos


def eigenpairs(problem: Problem, k: int, *, tolerance: float, max_products: int, seed: int) -> Eigenpairs:
    """The k Hessian eigenpairs of largest magnitude; residuals are those of the stored products."""
    product = hvp(problem.flat, problem.theta, problem.samples, block=problem.block)
    return lanczos(product, problem.theta, k, tolerance=tolerance, max_products=max_products, seed=seed)
