"""Which runs are evaluated in a moment, so that no process of its own is started for it."""

from __future__ import annotations

from drift.runs.run import Run

QUICK = 20_000_000
"""Parameters times test samples up to which a model is evaluated in a few milliseconds."""


def is_small(run: Run) -> bool:
    """Whether models of a run are evaluated in a moment."""
    samples = run.about.get("samples", {}).get("test", 0)
    return 0 < run.layout.size * samples < QUICK
