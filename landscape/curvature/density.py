"""Spectral density of the loss's curvature: how its eigenvalues are distributed."""

from __future__ import annotations

import numpy as np
import xarray as xr
from torch import Tensor

from landscape.curvature.curvature_products import product
from landscape.curvature.hessian import CURVATURES, pose
from landscape.curvature.lanczos import Lanczos
from landscape.curvature.trace import signs
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled

COARSEST = 1.25
"""Standard deviations from one value of the grid to the next, at most: a sum over it is off by less than 1e-5 then."""

Rule = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Ritz values (s,) of a probe, their weights (s,), which sum to 1, and residual lengths (s,)."""


@takes_models("theta")
def density(
    task: Task,
    theta: Tensor,
    *,
    split: Split = "train",
    curvature: str = "hessian",
    steps: int = 40,
    probes: int = 3,
    points: int = 1001,
    width: float = 0.01,
    seed: int = 0,
    buffers: Tensor | None = None,
    block: int = 256,
) -> xr.Dataset:
    """Density of the Hessian's eigenvalues by stochastic Lanczos quadrature, smoothed by a Gaussian.

    A probe's tridiagonal matrix has eigenvalues theta_i and first eigenvector entries tau_i; the density is the mean
    over probes of sum_i tau_i^2 N(value; theta_i, sigma^2).

    Source: Ghorbani et al. 2019, algorithm 1; PyHessian (Yao et al. 2020), section 3.

    Args:
        task: Model, loss and samples.
        split: Samples that the numbers are averaged over.
        seed: Seed of the random draws.
        theta: Model, shape (d,).
        curvature: "hessian" or "gauss_newton".
        steps, probes: Of the recurrence, and random starting vectors; products are at most steps x probes.
        points: Values of the grid, at most `COARSEST` sigma apart.
        width: Standard deviation sigma of the Gaussian, as a fraction of the spectrum's range.
        buffers: Floating buffers (b,) of the model; by default the model's own.
        block: Samples in one pass.

    Returns:
        Dataset with density (value,), which integrates to 1, mean () = trace / d and mean_square () =
        |A|_Frobenius^2 / d of the unsmoothed quadrature; density_error, mean_error and mean_square_error are their
        standard errors over the probes, NaN for a single one. outlier (outlier_rank,) are rising eigenvalues that
        stand alone, NaN after the last: Ritz values that all probes found, to sigma / 100, without another within
        2 sigma; outlier_density is how high each one's Gaussian is. bulk and bulk_error (value,) are the
        density without them. Attributes: products spent, sigma.

    Raises:
        ValueError: If steps, probes, points or width are too small, or as `landscape.curvature.hessian.pose`.
    """
    if steps < 1 or probes < 1 or not width > 0 or points < 1 + (12 + 1 / width) / COARSEST:
        raise ValueError(
            f"steps {steps}, probes {probes}, points {points}, width {width}; a density takes steps >= 1, probes >= 1, "
            f"width > 0 and points >= 1 + (12 + 1 / width) / {COARSEST}, so that the grid resolves the Gaussian."
        )
    posed = pose(task, theta, split=split, buffers=buffers, block=block, curvature=curvature)
    matrix, rules = product(posed), []
    for start in signs(probes, posed.theta, seed):
        state = Lanczos(matrix, start, steps)
        state.step()
        while state.used < state.rows and not state.exhausted:
            state.follow()
            state.step()
        values, columns, rests = state.ritz()
        rules.append((values, columns[0] ** 2, rests))
    node = np.concatenate([values for values, _, _ in rules])
    reach = max(float(np.ptp(node)), 1e-3 * float(np.abs(node).max())) or 1.0
    sigma = width * reach
    grid = np.linspace(node.min() - 6 * sigma, node.max() + 6 * sigma, points)
    shapes = [weights * np.exp(-0.5 * ((grid[:, None] - values) / sigma) ** 2) for values, weights, _ in rules]
    heights, alone = np.array([shape.sum(1) for shape in shapes]), _alone(rules, sigma)
    bulk = heights - [shape[:, places].sum(1) for shape, places in zip(shapes, alone, strict=True)]
    area = np.trapezoid(heights.mean(0), grid)
    outlier = np.full((2, steps), np.nan)
    of_probes = [np.array(rule[:2])[:, places] for rule, places in zip(rules, alone, strict=True)]
    outlier[:, : alone.shape[1]] = np.mean(of_probes, 0)
    moments = np.array([[weights @ values, weights @ values**2] for values, weights, _ in rules])
    name = CURVATURES[curvature]
    variables: dict[str, tuple] = {
        "density": ("value", heights.mean(0) / area, "spectral density"),
        "density_error": ("value", _standard_error(heights) / area, "standard error of the density"),
        "bulk": ("value", bulk.mean(0) / area, "spectral density"),
        "bulk_error": ("value", _standard_error(bulk) / area, "standard error of the density"),
        "outlier": ("outlier_rank", outlier[0], f"{name} eigenvalue"),
        "outlier_density": ("outlier_rank", outlier[1] / area, "spectral density"),
    }
    about_moments = {"mean": f"trace / d of the {name}", "mean_square": f"squared norm / d of the {name}"}
    for (key, text), value, error in zip(about_moments.items(), moments.mean(0), _standard_error(moments), strict=True):
        variables |= {key: ((), value, text), f"{key}_error": ((), error, f"standard error of the {text}")}
    about = {"analysis": "density", "source": "Ghorbani et al. 2019, algorithm 1", "curvature": curvature}
    coords = {"value": ("value", grid, f"{name} eigenvalue")}
    return labelled(variables, {**about, "products": len(node), "sigma": sigma}, coords)


def _alone(rules: list[Rule], sigma: float) -> np.ndarray:
    """Places (probes, k) of the same k Ritz values in the rule of every probe, as `density` describes outliers."""
    nodes = []
    for value in rules[0][0]:
        near = [np.flatnonzero(abs(values - value) <= 2 * sigma) for values, _, _ in rules]
        off = [np.maximum(rests, abs(values - value))[at] for (values, _, rests), at in zip(rules, near, strict=True)]
        if all(len(most) == 1 and most[0] <= sigma / 100 for most in off):
            nodes.append([at[0] for at in near])
    return np.array(nodes, int).reshape(-1, len(rules)).T


def _standard_error(values: np.ndarray) -> np.ndarray:
    """Standard error of the mean over the first axis; NaN for a single value."""
    count = len(values)
    return values.std(0, ddof=1) / count**0.5 if count > 1 else np.full(values.shape[1:], np.nan)
