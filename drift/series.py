"""Numbers of every round of a run as one labelled dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.experiment import Experiment
from drift.rounds import Round
from drift.run import Run
from landscape.progress import counted

Measured = Mapping[str, float | Tensor]
"""Values of one round by name: a number, or one value for each client of the cohort, shape (m,)."""

About = Mapping[str, tuple[str, str]]
"""long_name and units of variables, by name."""


def series(run: Run, measure: Callable[[Round], Measured], about: About, *, analysis: str, source: str) -> xr.Dataset:
    """What `measure` gives in every round: numbers over `round`, values of a cohort over `round` and `client`.

    Clients that were not in the cohort have NaN, and so has every variable that a round lacks. A variable that no
    round has is NaN over `round`.

    Args:
        run: Gives the records and the number of clients K; its `progress` hears of the rounds.
        measure: Values of a round; a tensor (m,) holds one for each of its clients.
        about: Every variable.
        analysis, source: For the attributes of the dataset.
    """
    indices, clients = run.rounds(), run.experiment.clients.number
    found: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    for row, index in enumerate(counted(indices, run.progress)):
        record = run.round(index)
        for name, value in measure(record).items():
            per_client = isinstance(value, Tensor) and value.ndim > 0
            dims, shape = (
                (("round", "client"), (len(indices), clients)) if per_client else (("round",), (len(indices),))
            )
            _, values = found.setdefault(name, (dims, np.full(shape, np.nan)))
            values[(row, record.ids.numpy()) if per_client else row] = np.asarray(value, dtype=np.float64)
    coords: dict[str, list[int]] = {"round": indices}
    if any("client" in dims for dims, _ in found.values()):
        coords["client"] = list(range(clients))
    for name in about:
        found.setdefault(name, (("round",), np.full(len(indices), np.nan)))
    dataset = xr.Dataset(
        {name: found[name] for name in about}, coords=coords, attrs={"analysis": analysis, "source": source}
    )
    return described(dataset, about)


def described(dataset: xr.Dataset, about: About) -> xr.Dataset:
    """The same dataset with long_name and units on its variables and coordinates."""
    everything = {"round": ("round", "1"), "client": ("client", "1"), **about}
    copy = dataset.copy()
    for name in copy.variables:
        if name in everything:
            copy[name].attrs.update(zip(("long_name", "units"), everything[str(name)], strict=True))
    return copy


def shares(experiment: Experiment, record: Round) -> Tensor:
    """Weights of the cohort by samples, or uniform where the experiment says so; sum 1, shape (m,), float64.

    Clients without samples have 0; where no client has any, all count the same.
    """
    counts = record.sizes.double() if experiment.clients.weighting == "samples" else (record.sizes > 0).double()
    if not bool(counts.any()):
        counts = torch.ones_like(counts)
    return counts / counts.sum()


def parameters(run: Run) -> int:
    """Number d of parameters, from the layout in the run's description."""
    return sum(prod(shape) for _, shape in run.about["layout"])


def relative(weights: Iterable[float] | Tensor) -> Tensor:
    """Weights scaled to sum 1, float64; NaN where they sum to 0."""
    values = torch.as_tensor(weights).double()
    return values / values.sum()
