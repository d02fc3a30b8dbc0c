"""Diagnosis of a run: its state, tested causes with their gains, and advice.

`diagnose.diagnose` is the entry.
"""

from landscape import earlier

__getattr__ = earlier.names_of(__name__, "drift.diagnosis.diagnose")
