"""Lanczos on this project's own curvature-vector products."""

from typing import Any

from landscape.curvature.curvature_products import linearise_problem, wide_product
from landscape.curvature.hessian import CurvatureProblem
from landscape.curvature.krylov import Eigenpairs, extreme, starting


def eigenpairs(
    problem: CurvatureProblem, k: int, *, which: str, tolerance: float, max_products: int, seed: int
) -> Eigenpairs:
    """k eigenpairs at an end of the spectrum, as `landscape.curvature.krylov.extreme` finds them."""
    product, gradient = linearise_problem(problem)
    # with the gradient the strongest pairs would be done before weaker ones, which it has no part of, have shown up
    starts = [starting(problem.theta, seed, *([gradient] if k == 1 else []))]
    del gradient  # as much memory as the model, like the start, which only the search itself holds
    options: dict[str, Any] = {"which": which, "tolerance": tolerance, "max_products": max_products, "seed": seed}
    return extreme(product, starts.pop(), k, **options, vectors=problem.vectors, wide=lambda: wide_product(problem))
