"""Curvature-vector products of a problem, refused where torch's second derivatives are wrong."""

from dataclasses import replace

import torch
from torch import Tensor

from landscape.curvature.gauss_newton import gauss_newton_graph
from landscape.curvature.hessian import CurvatureProblem, check_loss
from landscape.curvature.hessian_products import hessian_graph, hvp, linearise
from landscape.curvature.krylov import starting
from landscape.curvature.lanczos import Product
from landscape.model.samples import Samples

PROBE = 4
"""Samples on which the Hessian is tried for symmetry."""

GRAPHS = {"hessian": hessian_graph, "gauss_newton": gauss_newton_graph}


def product(problem: CurvatureProblem) -> Product:
    """Products of a problem's matrix with vectors."""
    return linearise_problem(problem)[0]


def linearise_problem(problem: CurvatureProblem) -> tuple[Product, Tensor]:
    """Products of a problem's matrix with vectors, and the gradient (d,); checked by `require_symmetry`."""
    require_symmetry(problem)
    return linearise_on(problem, problem.samples)


def linearise_on(problem: CurvatureProblem, samples: Samples) -> tuple[Product, Tensor]:
    """v (d,) -> A v (d,), with A of the mean loss of these samples in place of the problem's, and the gradient (d,).

    Raises:
        ValueError: If there are no samples, or the loss of one is not finite.
    """
    check_loss(problem.flat, samples, block=problem.block)
    graph = GRAPHS[problem.curvature]
    return linearise(problem.flat, problem.theta, samples, block=problem.block, graph=graph)


def require_symmetry(problem: CurvatureProblem) -> None:
    """Refuse u^T H v and v^T H u that differ on a few samples: torch then has a wrong derivative of a function.

    Raises:
        ValueError: If they differ beyond rounding.
    """
    probe = problem.samples[:PROBE]
    if problem.curvature != "hessian" or not len(probe):
        return
    matrix = hvp(problem.flat, problem.theta, probe, block=problem.block)
    pair = [starting(problem.theta, seed) for seed in (1, 2)]
    (u, v), (hu, hv) = ([vector.double() for vector in vectors] for vectors in (pair, map(matrix, pair)))
    gap, scale = float((u @ hv - v @ hu).abs()), float(hu.norm() * v.norm() + hv.norm() * u.norm())
    if gap > torch.finfo(problem.theta.dtype).eps ** 0.5 * scale:
        raise ValueError(
            f"the Hessian of {type(problem.flat.module).__name__} by torch is not symmetric (relative difference "
            f"{gap / scale:.1g}), so it has no eigenvalues: the backward pass of a function is not its derivative, "
            f"or losses are too small for {problem.theta.dtype}; try the model in float64."
        )


def wide_product(problem: CurvatureProblem) -> Product | None:
    """Products of a problem's matrix in float64; None for a problem in float64, and where the model has none."""
    flat, wide = problem.flat, problem.theta.to(torch.float64)
    if wide.dtype == problem.theta.dtype:
        return None
    try:
        copy = flat.anew(wide.dtype)
        copy.load(wide, flat.buffers)
        return product(replace(problem, flat=copy, theta=wide))
    except (RuntimeError, TypeError):  # a dtype that is written into the model
        return None
