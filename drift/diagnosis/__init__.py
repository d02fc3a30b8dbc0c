"""Diagnosis of a run: its state, tested causes with their gains, and advice.

`diagnose.diagnose` is the entry.
"""
