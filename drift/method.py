"""The contract of methods by the path that plug-ins import; it is defined in `drift.config.method`."""

from drift.config.method import (
    Beta,
    Cohort,
    Combined,
    Method,
    Outcome,
    Setting,
    State,
    Weighting,
    averaging,
    load,
    names,
    weighted,
)

__all__ = [
    "Beta",
    "Cohort",
    "Combined",
    "Method",
    "Outcome",
    "Setting",
    "State",
    "Weighting",
    "averaging",
    "load",
    "names",
    "weighted",
]
