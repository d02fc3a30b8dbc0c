"""Losses on grids as labelled datasets: surfaces, barriers, basins, adaptive grids, smooth interpolants, fitted minima.

`surface.surface` evaluates any sweep; most other functions take its result.
"""

from landscape.results import pictures

pictures.register()  # `.plot()` on the datasets
