"""Labelled results of analyses, values per round, and the rounds that an analysis takes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.runs.run import Run
from drift.store.number_ranges import spans
from drift.store.round_record import Round
from landscape.model.task import Task
from landscape.results.labelled import labelled
from landscape.results.parsed_text import from_toml

Measured = Mapping[str, float | Tensor]
"""Values of one round by name: a number, or one value per client of the cohort, shape (m,)."""

Rows = Sequence[Mapping[str, Any]]
"""Values of several rounds, one mapping per round: numbers or arrays by name."""

About = Mapping[str, tuple[str, str]]
"""long_name and units of variables and coordinates, by name."""

ROUNDS = 5
"""Default number of rounds of most analyses that compute more than they read."""

_QUANTITIES = from_toml((Path(__file__).parent / "quantities.toml").read_bytes())

ABOUT: dict[str, About] = {
    name: {key: (text, units) for key, (text, units, *_) in table.items()} for name, table in _QUANTITIES.items()
}
"""long_name and units of what an analysis measures, by its name; "coordinates" are the usual ones."""

DIMS: dict[str, dict[str, tuple[str, ...]]] = {
    name: {key: tuple(dims) for key, (_, _, *dims) in table.items()} for name, table in _QUANTITIES.items()
}
"""Dimensions beside `round` of what an analysis measures, where they are the same in every run."""


def result(
    variables: xr.Dataset | Mapping[str, Any],
    about: About | None = None,
    coords: Mapping[str, Any] | None = None,
    **attrs: Any,
) -> xr.Dataset:
    """A dataset whose variables and coordinates have long_name and units.

    Args:
        variables: A dataset, or (dimensions, values) by name, with long_name and units behind them or in `about`.
        about: long_name and units by name; those in `ABOUT["coordinates"]` need none.
        coords: Coordinates, where `variables` is no dataset.
        attrs: Attributes of the dataset; a new result has `analysis` and `source`.
    """
    dataset = variables.copy() if isinstance(variables, xr.Dataset) else labelled(variables, None, coords)
    texts = {**ABOUT["coordinates"], **(about or {})}
    for name in dataset.variables:
        if name in texts:
            dataset[name].attrs.update(zip(("long_name", "units"), texts[str(name)], strict=True))
    return dataset.assign_attrs(attrs)


def series(run: Run, measure: Callable[[Round], Measured], about: About, *, analysis: str, source: str) -> xr.Dataset:
    """Values of `measure` in every round: numbers over `round`, values of a cohort over `round` and `client`.

    Clients outside the cohort have NaN, and so has every variable that a round lacks. A variable that no round has is
    NaN over `round`. The records have no models (`Run.without_models`).

    Args:
        run: Supplies the records and the number of clients K.
        measure: Values of a round; a tensor (m,) has one value per client of its cohort.
        about: long_name and units of every variable.
        analysis, source: Attributes of the dataset.
    """
    indices, clients = run.rounds(), run.experiment.clients.number
    columns: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    for row, record in zip(run.context.track(range(len(indices))), run.without_models(indices), strict=True):
        for name, value in measure(record).items():
            per_client = isinstance(value, Tensor) and value.ndim > 0
            dims, shape = (
                (("round", "client"), (len(indices), clients)) if per_client else (("round",), (len(indices),))
            )
            _, values = columns.setdefault(name, (dims, np.full(shape, np.nan)))
            values[(row, record.ids.numpy()) if per_client else row] = np.asarray(value, dtype=np.float64)
    coords: dict[str, list[int]] = {"round": indices}
    if any("client" in dims for dims, _ in columns.values()):
        coords["client"] = list(range(clients))
    for name in about:
        columns.setdefault(name, (("round",), np.full(len(indices), np.nan)))
    return result({name: columns[name] for name in about}, about, coords, analysis=analysis, source=source)


def stack_rows(
    rows: Rows, names: Iterable[str], coords: Mapping[str, Sequence[Any]], dims: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Variables over `round` from one mapping of values per round; NaN where a round lacks a value.

    Args:
        rows: Values by name, one mapping per round.
        names: Of the variables; those of coordinates are left out.
        coords: Coordinates of all dimensions.
        dims: Dimensions beside `round`, of the variables that have any.
    """
    variables = {}
    for name in [name for name in names if name not in coords]:
        dims_of = dims.get(name, ())
        shape = [len(coords[dim]) for dim in dims_of]
        values = [np.broadcast_to(row.get(name, np.nan), shape) for row in rows]
        variables[name] = (("round", *dims_of), np.array(values, dtype=float).reshape(len(rows), *shape))
    return variables


def relative(weights: Iterable[float] | Tensor) -> Tensor:
    """Weights scaled to sum 1, float64; NaN where they sum to 0."""
    values = torch.as_tensor(weights).double()
    return values / values.sum()


def resolve_round(run: Run, index: int, what: str) -> int:
    """Number of the round `index`, which kept "clients" or "globals"; negative ones count from the last such round.

    Raises:
        LookupError: If the run has no such round, or it kept none; lists those that did, unless all clients diverged.
    """
    if index >= 0 and run.keeps(index, what):
        return run.require_round(index)
    available = run.kept(what)
    if -len(available) <= index < 0:
        return available[index]
    run.require_round(index)
    if diverged := diverged_rounds(run, what, [index]):
        raise LookupError(diverged)
    text = ", ".join(map(str, available[:20])) or "none"
    advice = "Name one of these." if run.about.get("imported") else f"Train with --set keep.{what}=all."
    raise LookupError(f"run {run.name} kept no {what} in round {index}; kept: {text}. {advice}")


def selected_rounds(run: Run, what: str, rounds: Sequence[int] | None, default: int | None) -> list[int]:
    """Numbers of `rounds`, which kept "clients" or "globals"; without them at most `default` of all, evenly spaced.

    A round that is named twice, such as the last one by its number and by -1, counts once.

    Raises:
        LookupError: If no round kept them, or a round of `rounds` does not exist or kept none.
        ValueError: If `rounds` is empty.
    """
    if rounds is not None and len(rounds):
        return list(dict.fromkeys(resolve_round(run, index, what) for index in rounds))
    diverged = diverged_rounds(run, what, run.rounds())
    if not (available := run.kept(what)):
        models = {"clients": "client models", "globals": "global model"}[what]
        raise LookupError(diverged or f"run {run.name} kept no {models}; train it with --set keep.{what}=all.")
    if rounds is not None:
        raise ValueError("rounds is empty; give numbers of rounds, or leave it out to take some of all.")
    return evenly_spaced(available, default)


def diverged_rounds(run: Run, what: str, indices: Sequence[int]) -> str:
    """Which of some rounds would have kept "clients" if not all had diverged, as a sentence; "" if there are none.

    These clients are stated to the result that is computed (attribute `excluded`).
    """
    empty = [index for index in indices if what == "clients" and run.keeps(index, least=0) and not run.keeps(index)]
    lost = [record.index for record in run.without_models(empty) if "excluded" in record.extras]
    text = f"all clients of round {spans(lost)} diverged (returned values that are not finite) in run {run.name}"
    return f"{text}; name other rounds." if lost else ""


def evenly_spaced(indices: Sequence[int], count: int | None) -> list[int]:
    """At most `count` of `indices`, evenly spaced in the list, first and last included; all where `count` is None.

    Raises:
        ValueError: If `count` is below 1.
    """
    if count is not None and count < 1:
        raise ValueError(f"{count} rounds were asked for; give 1 or more.")
    if not indices:
        return []
    positions = np.linspace(0, len(indices) - 1, len(indices) if count is None else min(count, len(indices)))
    return [indices[position] for position in sorted({round(float(index)) for index in positions})]


@dataclass(frozen=True)
class GlobalModel:
    """The global model after round `index`: parameters (d,), which carry its buffers where it has any; and its task."""

    index: int
    theta: Tensor
    task: Task = field(repr=False)

    def measure(self, function: Callable[..., xr.Dataset], **options: Any) -> xr.Dataset:
        """Result of a function of (task, theta) of `landscape` at this model."""
        return function(self.task, self.theta, **options)


def global_model(run: Run, index: int) -> GlobalModel:
    """The global model after a round; negative numbers count from the last round that kept it.

    Raises:
        LookupError: If the round kept no global model.
    """
    record = run.round(resolve_round(run, index, "globals"))
    return GlobalModel(record.index, record.kept("end"), run.task)


def join_global_models(
    run: Run,
    rounds: Sequence[int] | None,
    default: int | None,
    compute: Callable[[GlobalModel], xr.Dataset],
    **attrs: Any,
) -> xr.Dataset:
    """Datasets of the global models of several rounds, joined along `round`.

    Args:
        rounds: Rounds; by default at most `default` of those that kept their global model, evenly spaced.
        compute: The dataset of one model.
        attrs: Attributes of the joined dataset; it keeps those that all datasets agree on.

    Raises:
        LookupError: If no round, or one of `rounds`, kept its global model.
    """
    indices = selected_rounds(run, "globals", rounds, default)
    models = [compute(global_model(run, index)) for index in run.context.track(indices)]
    joined = xr.concat(models, "round", join="exact", combine_attrs="drop_conflicts")
    return joined.assign_coords(round=indices).assign_attrs(attrs)
