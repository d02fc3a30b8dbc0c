"""Experiments: settings, reading, identity, and the interface of methods.

`experiment.Experiment` has all settings; `load.read` reads one from a file, a preset or a run.
"""
