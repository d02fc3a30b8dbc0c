"""Numbers of every round of a run as one labelled dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.results.progress import with_progress

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
    for row, index in enumerate(with_progress(indices, run.context.progress)):
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


def parameters(run: Run) -> int:
    """Number d of parameters, from the layout in the run's description."""
    return sum(prod(shape) for _, shape in run.about["layout"])


def relative(weights: Iterable[float] | Tensor) -> Tensor:
    """Weights scaled to sum 1, float64; NaN where they sum to 0."""
    values = torch.as_tensor(weights).double()
    return values / values.sum()


def resolve_round(run: Run, index: int, what: str) -> int:
    """The round meant by `index` among those that kept "clients" or "globals".

    Raises:
        LookupError: If the run has no such round, or it kept none; lists those that did.
    """
    kept = run.kept(what)
    if -len(kept) <= index < 0:
        return kept[index]
    if index not in kept:
        run.require_round(index)
        text = ", ".join(map(str, kept[:20])) or "none"
        raise LookupError(
            f"run {run.name} kept no {what} in round {index}; kept: {text}. Train with --set keep.{what}=all."
        )
    return index


def selected_rounds(run: Run, what: str, rounds: Sequence[int] | None, default: int | None) -> list[int]:
    """Rounds that kept "clients" or "globals": those asked for, else at most `default` of all, evenly spaced.

    Raises:
        LookupError: If a round that was asked for does not exist or kept none; lists those that did.
    """
    if rounds is not None:
        return [resolve_round(run, index, what) for index in rounds]
    return evenly_spaced(run.kept(what), default)


def evenly_spaced(indices: Sequence[int], count: int | None) -> list[int]:
    """At most `count` of `indices`, evenly spaced, first and last included; all where `count` is None."""
    if not indices:
        return []
    places = np.linspace(0, len(indices) - 1, len(indices) if count is None else min(count, len(indices)))
    return [indices[place] for place in sorted({round(float(place)) for place in places})]


def buffers_or_none(buffers: Tensor) -> Tensor | None:
    """Buffers (b,) as analyses of `landscape` take them: None where the model has none."""
    return buffers if len(buffers) else None
