"""The contract of methods by the path that plug-ins import; it is defined in `drift.config.method`."""

from drift.config.method import Method, load, names
from drift.config.method_values import Beta, Cohort, Combined, Outcome, Setting, State, Weighting, averaging
from drift.store.column_blocks import weighted_models

__all__ = ["Beta", "Cohort", "Combined", "Method", "Outcome", "Setting", "State", "Weighting"]
__all__ += ["averaging", "load", "names", "weighted_models"]
