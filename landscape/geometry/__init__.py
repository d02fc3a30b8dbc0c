"""Where to evaluate: lines, planes, simplices, curves, directions and trajectories through models.

Most functions return a `sweep.grid.Sweep`. Only `curves` and `alignment` evaluate the model.
"""
