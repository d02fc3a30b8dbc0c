"""How large a model's parameters are: their norm and their histogram."""

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled

NEAR_ZERO = 0.01
"""Below this magnitude a parameter counts as near zero (FedLAW section 4)."""


@takes_models("theta")
def weight_norm(theta: Tensor) -> Tensor:
    """Euclidean norm of the parameters, ||theta||_2.

    Source: FedLAW Figs 4 (middle) and 10 (left).

    Args:
        theta: One model (d,) or several (..., d).

    Returns:
        Norms (...), float64.
    """
    return torch.linalg.vector_norm(theta.detach(), dim=-1, dtype=torch.float64)


@takes_models("theta")
def weight_histogram(theta: Tensor, bins: int = 101, limit: float | None = None) -> xr.Dataset:
    """How many parameters have which value, and how many are near zero.

    Source: FedLAW Fig. 4 (middle): histogram of the final model's parameters, and how many have |w| < 0.01.

    Args:
        theta: Model, shape (d,).
        bins: Bins of equal width over [-limit, limit]; an odd number has one centred at zero.
        limit: Half the width of the range; by default the largest magnitude.

    Returns:
        Dataset with count (value,), value being the bins' centres; near_zero (), outside () the number of parameters
        beyond the limit, norm (). Counts are parameters.

    Raises:
        ValueError: If theta is empty or not finite, or bins or limit is not positive.
    """
    values = theta.detach().double().flatten().cpu().numpy()
    if not len(values):
        raise ValueError("theta has no entries; a histogram needs at least one.")
    if bad := int((~np.isfinite(values)).sum()):
        raise ValueError(f"{bad} of theta's entries are not finite; leave this model out.")
    if bins < 1:
        raise ValueError(f"bins is {bins}; it must be at least 1.")
    if limit is not None and not 0 < limit < np.inf:
        raise ValueError(f"limit is {limit}; it must be positive and finite.")
    largest = float(np.abs(values).max())
    reach = limit if limit is not None else largest or 1.0
    counts, edges = np.histogram(values, bins=bins, range=(-reach, reach))
    near = int((np.abs(values) < NEAR_ZERO).sum())
    variables = {
        "count": ("value", counts, "parameters"),
        "near_zero": ((), near, f"parameters with |w| < {NEAR_ZERO}"),
        "outside": ((), len(values) - counts.sum(), "parameters beyond the limit"),
        "norm": ((), weight_norm(theta).item(), "weight norm"),
    }
    coords = {"value": ("value", (edges[1:] + edges[:-1]) / 2, "parameter value")}
    width = 2 * reach / bins
    return labelled(variables, {"analysis": "weight_histogram", "source": "FedLAW Fig. 4", "bin_width": width}, coords)
