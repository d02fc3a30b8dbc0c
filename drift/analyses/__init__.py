"""Analyses of recorded runs: functions of a run that return a labelled dataset.

`per_round` labels results and selects rounds, `evaluate_on` evaluates sweeps; each family has a folder. `fedscape list
analyses` lists them.
"""

from landscape.results import pictures

pictures.register()  # `.plot()` on the datasets
