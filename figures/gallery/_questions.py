"""Figures by the question that they answer, in the order of the gallery."""

from __future__ import annotations

QUESTIONS: dict[str, tuple[str, ...]] = {
    "valley": (
        *("planes-clients", "plane-round", "planes-overlay", "planes-classes", "planes-settings", "planes-random"),
        *("planes-projected", "planes-adaptive", "planes-statistics", "barriers-clients", "barriers-pool"),
        *("curve-modes", "lines-aligned", "model-map"),
    ),
    "path": (
        *("trajectory-plane", "lines-fma-ima", "lines-globals", "basin-rounds", "topology-rounds"),
        "topology-distances",
    ),
    "accuracy": (
        *("accuracy-rounds", "settings-rounds", "accuracy-setting", "accuracy-panels", "accuracy-curves"),
        *("accuracy-early-late", "numbers-rounds", "accuracy-table", "accuracy-after", "rounds-target"),
        *("ranking-table", "cost-table"),
    ),
    "drift": (
        *("variance-rounds", "gain-alpha", "layers-drift", "norms-rounds", "locality-rounds", "coherence-rounds"),
        *("coherence-groups", "clients-round", "noise-rounds", "product-gap", "update-causes", "early-warning"),
    ),
    "averaging": (
        *("counterfactual-rounds", "what-if-rounds", "error-averaged", "bias-rounds", "decomposition-rounds"),
        *("gap-scaling", "ntk-clients", "drift-curvature"),
    ),
    "weights": (
        *("weights-learned", "weights-round", "simplex-weights", "simplex-optima", "simplex-settings"),
        *("weights-corrupted", "weight-factors", "server-epochs", "shrink-rounds", "gws-setting", "gamma-table"),
        *("regularisation-rounds", "regularisation-histogram"),
    ),
    "sharpness": (
        *("hessian-density", "eigen-rounds", "eigen-slice", "trace-rounds", "layers-rounds", "sharpness-ball"),
        *("sharpness-minibatch", "sharpness-models", "robustness-table", "scale-invariance"),
        "weight-histogram",
    ),
    "data": (
        *("labels-partition", "labels-scatter", "heterogeneity-rounds", "samples-round", "accuracies-clients"),
        "accuracies-models",
    ),
}
"""Names of figures by the word of their question."""

HEADINGS = {
    "valley": "Does the average lie in a valley?",
    "path": "How does the model move across the landscape?",
    "accuracy": "Which method is more accurate, and from when on?",
    "drift": "How far do clients drift, and do they agree?",
    "averaging": "What does averaging cost or gain?",
    "weights": "What weights does the server learn?",
    "sharpness": "How sharp is the minimum?",
    "data": "Whose data are where?",
}
"""Questions by their word."""
