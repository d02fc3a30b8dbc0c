"""Where to evaluate: lines, planes, simplices, curves, directions and trajectories through models.

Each function returns a `sweep.grid.Sweep`; nothing is evaluated here but what finding the place needs.
"""
