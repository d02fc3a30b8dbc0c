"""Names under which results of analyses are stored, which stay when the code of an analysis moves to another file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import drift

_EARLIER_MODULES = {
    "around": "random_plane",
    "apart": "apart",
    "averages": "error_averaged similarity_rounds",
    "basin": "basin_rounds",
    "best_weights": "best_weights",
    "claims.measures": "biases",
    "classes": "class_plane",
    "coherence": "coherence pairwise",
    "cost": "cost",
    "counterfactual": "counterfactual",
    "curvature": "density_rounds hessian_density round_sharpness sharpness_rounds",
    "decomposition": "decomposition",
    "domains": "domain_accuracy",
    "gap": "gap_scaling",
    "heterogeneity": "heterogeneity",
    "interventions": "interventions",
    "labels": "label_scatter",
    "layer_drift": "layer_drift",
    "layers": "layer_rounds",
    "locality": "locality",
    "mixtures": "weight_simplex",
    "ntk": "ntk_variance",
    "overlay": "overlay_plane",
    "paths": "aligned_barrier client_barriers mode_curve",
    "personal": "personal_accuracy",
    "pool_barriers": "pool_barriers",
    "projection": "projected_plane",
    "quality": "ball_sharpness noise_robustness scale_curve three_accuracies weight_histograms",
    "recommended": "ranking_rounds",
    "server_epochs": "server_epochs",
    "sharpest": "eigen_rounds eigen_slice",
    "terrain": "average_line global_line global_plane round_plane",
    "traces": "trace_rounds",
    "trajectory": "trajectory_plane",
    "variance": "drift_variances",
    "weight_factors": "weight_factors",
    "weights": "balance balance_mean learned update_norms",
    "whatif": "what_if",
}

EARLIER = {name: f"drift.{module}.{name}" for module, names in _EARLIER_MODULES.items() for name in names.split()}
"""What earlier versions stored results of an analysis under: the module that it was in then, and its name."""

REVISION = {"coherence": 2, "basin_rounds": 2}
"""How often what an analysis computes has changed; results of the code before are not read."""


def stored_name(analysis: Callable[..., Any]) -> str:
    """The name that results of an analysis are stored under: its public one, or module and name for anybody else's."""
    name = analysis.__qualname__
    if analysis.__module__.startswith("drift.") and (name in EARLIER or name in drift.__all__):
        return f"{name} {REVISION[name]}" if name in REVISION else name
    return f"{analysis.__module__}.{name}"


def earlier_name(analysis: Callable[..., Any]) -> str:
    """The name that earlier versions stored its results under; "" where theirs are not read."""
    name = analysis.__qualname__
    if stored_name(analysis) == name:
        return EARLIER.get(name, "")
    return "" if name in REVISION and analysis.__module__.startswith("drift.") else f"{analysis.__module__}.{name}"
