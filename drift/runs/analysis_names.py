"""Names under which results of analyses are stored; they do not depend on the file of an analysis."""

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
"""Names under which earlier versions stored results: the module of the analysis at that time, and its name."""

REVISION = {"coherence": 2, "basin_rounds": 2}
"""Revision of analyses that compute something else now; results of earlier revisions are not read."""


def stored_name(analysis: Callable[..., Any]) -> str:
    """The name under which results are stored: the public name, or module and name for analyses from outside."""
    name = analysis.__qualname__
    if analysis.__module__.startswith("drift.") and (name in EARLIER or name in drift.__all__):
        return f"{name} {REVISION[name]}" if name in REVISION else name
    return f"{analysis.__module__}.{name}"


def earlier_name(analysis: Callable[..., Any]) -> str:
    """The name under which earlier versions stored results; "" if those are not read."""
    name = analysis.__qualname__
    if stored_name(analysis) == name:
        return EARLIER.get(name, "")
    return "" if name in REVISION and analysis.__module__.startswith("drift.") else f"{analysis.__module__}.{name}"
