"""Diagnosis of a run: its state, tested causes with their gains, and advice.

`diagnose.diagnose` is the entry.
"""

from landscape import earlier

__getattr__ = earlier.moved_names(__name__, "drift.diagnosis.diagnose")
