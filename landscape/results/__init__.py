"""Results as labelled datasets: stored in zarr, exported to other programs, with progress on the way.

Independent of models.
"""
