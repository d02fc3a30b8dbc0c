"""Results as labelled datasets: stored in zarr, exported to other programs, with progress on the way.

Independent of models.
"""

from landscape import earlier

__getattr__ = earlier.moved_names(__name__, "landscape.results.zarr_files")
