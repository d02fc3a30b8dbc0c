"""Analyses of recorded runs: functions of a run that return a labelled dataset.

`per_round` and `evaluate_on` are shared by all; each family has a folder. `fedscape list analyses` lists them.
"""
