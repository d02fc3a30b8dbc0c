"""curvlinops' curvature operators in SciPy's ARPACK, as a cross-check.

Source: Dangel et al. 2025, curvlinops; the package of that name, version 2 or later; Lehoucq et al. 1998, ARPACK.
"""

import inspect
import math
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from landscape.curvature.curvature_products import product, wide_product
from landscape.curvature.hessian import CurvatureProblem, check_loss
from landscape.curvature.krylov import Eigenpairs, accepted, listed, measured
from landscape.model.losses import sample_weights
from landscape.model.samples import map_leaves
from landscape.model.task import cross_entropy

ENDS = {"magnitude": "LM", "largest": "LA", "smallest": "SA", "both": "BE"}
"""ARPACK's words for the ends of a spectrum."""


def eigenpairs(
    problem: CurvatureProblem, k: int, *, which: str, tolerance: float, max_products: int, seed: int
) -> Eigenpairs:
    """k eigenpairs by ARPACK; one native product per value measures its residual.

    Raises:
        LookupError: If curvlinops is not installed.
        ValueError: If the loss is not cross-entropy, the inputs are not one tensor, k is not below d, the model has a
            layer without forward derivative (as group norm), or ARPACK does not converge within `max_products`.
    """
    operators = _package()
    like = problem.theta
    check_loss(problem.flat, problem.samples, block=problem.block)
    _check(problem, k, max_products)
    kind = operators.HessianLinearOperator if problem.curvature == "hessian" else operators.GGNLinearOperator
    module = problem.flat.module
    blocks: list[Any] = []
    for batch in problem.samples.blocks(problem.block):
        inputs = map_leaves(lambda leaf: leaf.contiguous(), problem.flat.cast(batch.inputs))
        blocks.append((inputs, batch.targets.to(like.device)))
    with sdpa_kernel(SDPBackend.MATH):
        named = {name: module.get_parameter(name) for name, _ in problem.flat.layout.parameters}
        by_name = "dict" in str(inspect.signature(kind).parameters["params"].annotation).lower()  # after version 3
        parameters = named if by_name else list(named.values())
        operator = kind(module, nn.CrossEntropyLoss(), parameters, blocks, check_deterministic=False)
        grown: list[float] = []  # by each product: at most the norm, which values near 0 do not show

        def image(vector: np.ndarray) -> np.ndarray:
            turned = (operator @ torch.from_numpy(vector.reshape(-1)).to(like)).detach().cpu().numpy()
            grown.append(float(np.linalg.norm(turned) / np.linalg.norm(vector)))
            return turned

        matrix = LinearOperator((like.numel(),) * 2, matvec=image, dtype=like.cpu().numpy().dtype)
        start = np.random.default_rng(seed).standard_normal(like.numel())
        rows = min(max(2 * k + 1, 20), like.numel(), (max_products + k - 1) // 2)  # SciPy's, or for one restart
        rounds = max(1, (max_products - 1 - rows) // (rows - k))
        try:
            values, columns = eigsh(matrix, k, which=ENDS[which], tol=tolerance, v0=start, ncv=rows, maxiter=rounds)
        except NotImplementedError as lacking:
            raise ValueError(
                f"the back end 'curvlinops' cannot differentiate this model ({str(lacking).splitlines()[0][:120]}); "
                "use 'native' or 'pyhessian'."
            ) from lacking
        except ArpackNoConvergence as stopped:
            raise ValueError(f"{stopped}; raise max_products ({max_products}) or the tolerance.") from stopped
    order = listed(values, k, which)
    vectors = (nn.functional.normalize(torch.from_numpy(columns[:, index]).to(like), dim=0) for index in order)
    limit = accepted(which, tolerance, max(grown), like.dtype)
    solution = [(float(value), math.inf) for value in values[order]]
    options: dict[str, Any] = {"spent": len(grown), "values": solution, "wide": lambda: wide_product(problem)}
    return measured(product(problem), vectors, [True] * k, limit, **options)


def _package() -> Any:
    try:
        import curvlinops
    except ImportError as missing:
        raise LookupError(
            f"the back end 'curvlinops' needs the package curvlinops ({missing}). "
            "Install it with: pip install 'fedscape[curvlinops]'"
        ) from missing
    return curvlinops


def _check(problem: CurvatureProblem, k: int, max_products: int) -> None:
    weighted = sample_weights(problem.flat.loss, problem.samples.targets) is not None
    if problem.flat.loss is not cross_entropy or weighted or not isinstance(problem.samples.inputs, Tensor):
        raise ValueError(
            "the back end 'curvlinops' takes cross-entropy of labels that all count, and one tensor; use 'native'."
        )
    if problem.flat.habits.copies:
        raise ValueError(
            "the back end 'curvlinops' passes the same inputs again, but this model changes them; use 'native'."
        )
    if k >= problem.theta.numel():
        raise ValueError(f"k is {k}; ARPACK takes k below the {problem.theta.numel()} parameters; use 'native'.")
    if max_products < k + 3:
        raise ValueError(f"max_products is {max_products}; ARPACK takes at least {k + 3} for {k} values.")
