"""Experiments: their settings, how they are read, what identifies them, and the contract of methods.

`experiment.Experiment` holds all settings; `load.read` makes one from a file, a preset or a run.
"""
