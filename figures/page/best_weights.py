"""The best weights of a round as a result that a run stores, for a live page and for one that is sent."""

import xarray as xr

from drift.analyses.landscapes.round_weights import MOST, Lowest, Weights, lowest_weights
from drift.runs.run import Run
from figures.page.sampled import Samples
from figures.page.stage_round import cached


def best_weights(run: Run, index: int, split: str, samples: Samples) -> Lowest:
    """`lowest_weights`, sought once for each round and selection of samples."""
    ds = cached(run, sought_weights, round=index, split=split, samples=min(samples or MOST, MOST))
    single = {str(name): values.item() for name, values in ds.items() if not values.ndim}
    return Lowest(Weights.from_values(ds.weights.values), **single)


def sought_weights(run: Run, *, round: int, split: str, samples: int) -> xr.Dataset:
    """The fields of `lowest_weights`."""
    lowest = lowest_weights(run, round, split, samples)
    return xr.Dataset({**vars(lowest), "weights": ("client", lowest.weights.row)})
