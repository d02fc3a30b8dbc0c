"""What the gallery page says of each figure, read from `fedscape figures list`, and its order; nothing of Sphinx."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from figures.commands.pictures import list_

QUESTIONS: dict[str, tuple[str, ...]] = {
    "valley": (
        *("planes-clients", "plane-round", "planes-overlay", "planes-classes", "planes-settings", "planes-random"),
        *("planes-projected", "planes-adaptive", "planes-statistics", "barriers-clients", "barriers-pool"),
        *("curve-modes", "lines-aligned"),
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
        *("coherence-groups", "clients-round", "noise-rounds"),
    ),
    "averaging": (
        *("counterfactual-rounds", "what-if-rounds", "error-averaged", "bias-rounds", "decomposition-rounds"),
        *("gap-scaling", "ntk-clients"),
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
"""Figures by the question that they answer, in the order of the page."""

_WRITTEN = {"ima": "IMA", "fedlaw": "FedLAW", "lss": "LSS", "fedeve": "FedEve"}

IMAGES = Path(__file__).parents[1] / "images" / "gallery"
RECORD = IMAGES.parent / "pictures.json"
"""What the pictures of the gallery were drawn from, and their widths on paper."""


def described() -> list[dict[str, Any]]:
    """What `fedscape figures list` says of every figure: name, description, papers, needs, cost."""
    with redirect_stdout(io.StringIO()) as told:
        list_(json=True)
    return json.loads(told.getvalue())


def split(description: str) -> tuple[str, str]:
    """What a figure shows, and where papers have it, which its description ends with in brackets."""
    found = re.fullmatch(r"(.*?)(?: \(([^()]*(?:\([^()]*\)[^()]*)*)\))?\.?", description)
    return (found[1], found[2] or "") if found else (description, "")


def items_of(papers: list[str]) -> str:
    """Items of papers in words, parts of a table as one: "IMA Fig. 6a, Fig. 6b; LSS Table 4"."""
    found: dict[str, dict[str, None]] = {}
    for paper, _, item in (one.partition(" ") for one in papers):
        found.setdefault(_WRITTEN[paper], {})[re.split(r",| \(", item)[0]] = None
    return "; ".join(f"{paper} {', '.join(items)}" for paper, items in found.items())


NOT_DRAWN = {"ranking-table": "needs runs on MovieLens-1M"}
"""Why a figure has no picture, by name."""
