"""Results of several runs in one dataset: along method and seed, or panel by panel where grids differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import xarray as xr

from drift.run import Run
from figures import style

Compute = Callable[[Run], xr.Dataset]


def comparable(runs: Sequence[Run]) -> list[Run]:
    """The runs of one setting (task, clients, rounds): that with most methods and runs, the first among equals.

    Raises:
        LookupError: If there are no runs.
    """
    if not runs:
        raise LookupError(absent("no run was given", "fedscape train digits-shards2"))
    groups: dict[str, list[Run]] = {}
    for run in runs:
        spec = run.experiment
        clients = spec.clients.model_copy(update={"valid_ratio": 0.0})  # some methods need data held out
        groups.setdefault(f"{spec.task!r} {clients!r} {spec.rounds}", []).append(run)
    return max(groups.values(), key=lambda group: (len({run.label for run in group}), len(group)))


def of(runs: Sequence[Run], *labels: str) -> list[Run]:
    """The runs of these methods; all where there is none."""
    return [run for run in runs if run.label in labels] or list(runs)


def one(runs: Sequence[Run], label: str) -> Run:
    """The run of a method with the smallest seed among comparable ones; that of another method where it has none."""
    return min(of(comparable(runs), label), key=lambda run: run.experiment.seed)


def with_planes(runs: Sequence[Run], label: str) -> tuple[Run, list[int]]:
    """The run of `one`, and its rounds that kept three clients or more.

    Raises:
        LookupError: If it kept none; names a command that trains a run which does.
    """
    run = one(runs, label)
    kept = run.kept("clients")
    if not kept or run.experiment.clients.per_round < 3:
        command = "fedscape train digits-shards2 --set keep.clients=all"
        raise LookupError(absent(f"run {run.name} kept no round with three clients", command))
    return run, kept


def absent(what: str, command: str) -> str:
    """The sentence for runs that are not there."""
    return f"{what}; train one: {command}"


def stacked(runs: Sequence[Run], compute: Compute) -> xr.Dataset:
    """Results of runs of one setting along `algorithm` and `seed`; NaN where a method was not run with a seed.

    Raises:
        ValueError: If two runs have one method and seed, or their coordinates differ.
    """
    known: dict[tuple[str, int], Run] = {}
    for run in runs:
        before = known.setdefault((run.label, run.experiment.seed), run)
        if before.folder != run.folder:
            raise ValueError(
                f"{before.name} and {run.name} are both {run.label} with seed {run.experiment.seed}; "
                "give runs that differ in method or seed only."
            )
    found = {place: compute(run).drop_attrs(deep=False) for place, run in known.items()}
    algorithms, seeds = style.order(name for name, _ in known), sorted({seed for _, seed in known})
    nothing = next(iter(found.values())).map(_missing)
    rows = [
        _joined([found.get((name, seed), nothing) for seed in seeds], "seed", list(known.values()))
        for name in algorithms
    ]
    whole = _joined(rows, "algorithm", list(known.values()))
    return described(whole.assign_coords(seed=seeds, algorithm=algorithms), list(known.values()))


def beside(parts: Sequence[xr.Dataset], dim: str = "panel") -> xr.Dataset:
    """Surfaces with different grids in one dataset: joined by position, their coordinates kept as variables.

    `part(ds, i)` gives the i-th back.
    """
    by_position = []
    for part in parts:
        places = {f"at_{name}": (name, values.values, values.attrs) for name, values in part.coords.items()}
        about = {f"is_{name}": value for name, value in part.attrs.items() if name in _KEPT}
        by_position.append(part.drop_vars(list(part.coords)).assign(places).assign(about).drop_attrs(deep=False))
    return xr.concat(by_position, dim, join="exact", combine_attrs="drop_conflicts")


def part(ds: xr.Dataset, index: int, dim: str = "panel") -> xr.Dataset:
    """The surface at a position of what `beside` made, with its own coordinates."""
    chosen = ds.isel({dim: index})
    places = {str(name): values for name, values in chosen.items() if str(name).startswith("at_")}
    about = {str(name): values for name, values in chosen.items() if str(name).startswith("is_")}
    attrs = {name.removeprefix("is_"): values.item() for name, values in about.items()}
    coords = {name.removeprefix("at_"): (values.dims, values.values, values.attrs) for name, values in places.items()}
    return chosen.drop_vars([*places, *about]).assign_coords(coords).assign_attrs(attrs)


def described(ds: xr.Dataset, runs: Sequence[Run]) -> xr.Dataset:
    """The dataset with the names of the runs that it comes from."""
    return ds.assign_attrs(runs=", ".join(run.name for run in runs))


_KEPT = ("analysis", "isometric", "round", "first", "second", "label")


def _missing(values: xr.DataArray) -> xr.DataArray:
    empty = values.where(False) if values.dtype.kind == "f" else values.astype(float).where(False)
    return empty.assign_attrs(values.attrs)


def _joined(parts: list[xr.Dataset], dim: str, runs: list[Run]) -> xr.Dataset:
    try:
        return xr.concat(parts, dim, join="exact", data_vars="all", coords="minimal", compat="equals")
    except ValueError as reason:
        names = ", ".join(run.name for run in runs)
        raise ValueError(f"results of {names} do not have the same coordinates; give runs of equal length.") from reason
