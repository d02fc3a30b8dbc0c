"""Results as labelled datasets: stored in netCDF, exported to other programs, with progress on the way.

Independent of models.
"""
