"""Results of several runs in one dataset: along method and seed, or panel by panel where grids differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from drift.runs.run import Run
from figures import style
from figures.selection import setting_text
from figures.selection.groups import differing, settings
from figures.selection.run_selection import apart, asked, narrowed, required, variant
from figures.selection.run_selection import part as part_of

Compute = Callable[[Run], xr.Dataset]


def comparable(runs: Sequence[Run], over: Collection[str] = ()) -> Sequence[Run]:
    """The runs of one setting (task, clients, rounds): that with most methods and runs, the first among equals.

    Where runs of one method differ in more than their seed, those that have to be drawn are taken, else the most.

    Args:
        over: Settings that the figure compares, by keys as `_keys.value` takes them: runs of one method may differ in
            these too.

    Raises:
        LookupError: If there are no runs.
        ValueError: If runs of several settings have to be drawn; names the settings.
    """
    if not runs:
        raise LookupError(absent("no run was given", "fedscape train digits-shards2"))
    groups: dict[str, list[Run]] = {}
    for run in runs:
        spec = run.experiment
        clients = spec.clients.model_copy(update={"valid_ratio": 0.0})  # some methods need data held out
        groups.setdefault(f"{spec.task!r} {clients!r} {spec.rounds}", []).append(run)
    needed = {run.folder for run in required(runs)}
    whole = [group for group in groups.values() if needed <= {run.folder for run in group}]
    if not whole:
        raise ValueError(
            "this figure shows runs of one setting, and the runs that were named differ in "
            f"{apart(list(groups.values()), ('task', 'clients', 'rounds'))}. Name the runs of one setting, or give a "
            "folder of runs to choose from (figures.gallery.AnyOf in Python)."
        )
    largest: list[Run] = max(whole, key=lambda group: (len({run.label for run in group}), len(group)))
    return part_of(runs, _without_variants(largest, needed, over))


def _without_variants(group: Sequence[Run], needed: set[Path], over: Collection[str]) -> list[Run]:
    """Of each method, the runs that differ in their seed and `over` only: all that have to be drawn, else the most."""
    free = [place for key in over for place in setting_text.places(key)]
    variants: dict[str, dict[str, list[Run]]] = {}
    for run in group:
        variants.setdefault(run.label, {}).setdefault(variant(run, free), []).append(run)
    selected: set[Path] = set()
    for some in variants.values():
        named = [runs for runs in some.values() if needed & {run.folder for run in runs}]
        selected |= {run.folder for runs in named or [max(some.values(), key=len)] for run in runs}
    return [run for run in group if run.folder in selected]


def preferred(runs: Sequence[Run], methods: Sequence[str] | None, usual: Sequence[str]) -> Sequence[Run]:
    """The runs of these methods; by default those of the usual methods, where a figure may choose and they are there.

    Raises:
        LookupError: If no run is of a method that was asked for; names the methods of the runs.
    """
    if methods is not None:
        return asked(runs, methods)
    needed = {run.folder for run in required(runs)}
    return part_of(runs, [run for run in runs if run.label in usual or run.folder in needed] or runs)


def of_method(runs: Sequence[Run], method: str | None, seed: int | None = None, usual: str = "fedavg") -> Sequence[Run]:
    """The comparable runs of one method: the one asked for; by default the usual one, else the first in legends.

    Raises:
        LookupError: If no run is of the method or of the seed asked for; names those that there are.
        ValueError: If runs of other methods have to be drawn.
    """
    some = comparable(asked(runs, method, seed))
    labels = [usual] if any(run.label == usual for run in some) else style.order(run.label for run in some)
    selected = [run for run in some if run.label == labels[0]]
    return narrowed(
        some, selected, "this figure shows one method; choose it by the option method, as in --set method=fedavg"
    )


def one(runs: Sequence[Run], method: str | None, seed: int | None = None, usual: str = "fedavg") -> Run:
    """The run of `of_method` with the smallest seed.

    Raises:
        LookupError: If no run is of the method or of the seed asked for; names those that there are.
        ValueError: If other runs have to be drawn too.
    """
    some = comparable(asked(runs, method, seed))
    if len(needed := required(some)) > 1:
        first = min(needed, key=lambda run: run.experiment.seed)
        narrowed(
            some,
            [first],
            "this figure shows one run; choose it by the options method and seed, as in --set method=fedavg seed=1",
        )
    if needed:
        return needed[0]
    return min(of_method(some, method, seed, usual), key=lambda run: run.experiment.seed)


def with_planes(runs: Sequence[Run], method: str | None, seed: int | None = None) -> tuple[Run, list[int]]:
    """The run of `one`, and its rounds that kept three clients or more.

    Raises:
        LookupError: If it kept none; names a command that trains a run which does.
    """
    run = one(runs, method, seed)
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
        ValueError: If two runs of one method have one seed or differ in other settings, or coordinates differ.
    """
    known: dict[tuple[str, int], Run] = {}
    firsts: dict[str, Run] = {}
    for run in runs:
        if variant(first := firsts.setdefault(run.label, run)) != variant(run):
            names = ", ".join(name for name in differing([settings(first), settings(run)]) if name != "seed")
            raise ValueError(
                f"{first.name} and {run.name} are both {run.label}, and differ in {names}; give runs that differ in "
                "method or seed only."
            )
        before = known.setdefault((run.label, run.experiment.seed), run)
        if before.folder != run.folder:
            if run.seed is None or before.seed is None:
                unsaid = before.name if before.seed is None else run.name
                raise ValueError(
                    f"{before.name} and {run.name} are both {run.label}, and nobody said the seed of {unsaid}; give it "
                    "where the run is recorded or imported: seed=N in Recorder, recorded and record_checkpoints, "
                    "fedscape import --set seed=N."
                )
            names = ", ".join(differing([settings(before), settings(run)])) or "nothing"
            raise ValueError(
                f"{before.name} and {run.name} are both {run.label} with seed {run.experiment.seed}, and differ in "
                f"{names}; give runs that differ in method or seed only."
            )
    whole = {place: compute(run) for place, run in known.items()}
    found = {place: one.drop_attrs(deep=False) for place, one in whole.items()}
    algorithms, seeds = style.order(name for name, _ in known), sorted({seed for _, seed in known})
    nothing = next(iter(found.values())).map(_missing)
    rows = [
        _joined([found.get((name, seed), nothing) for seed in seeds], "seed", list(known.values()))
        for name in algorithms
    ]
    joined = _joined(rows, "algorithm", list(known.values())).assign_attrs(_common(list(whole.values())))
    return described(joined.assign_coords(seed=seeds, algorithm=algorithms), list(known.values()))


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


_SHOWN = ("round", "split", "samples")
"""Attributes of a result: which round it is of, and which samples its numbers are averaged over."""

_KEPT = ("analysis", "isometric", "first", "second", "label", *_SHOWN)


def _common(results: Sequence[xr.Dataset]) -> dict[str, Any]:
    """What all results show alike: those of _SHOWN that have one value."""
    first = results[0].attrs
    return {
        name: first[name]
        for name in _SHOWN
        if name in first and all(result.attrs.get(name) == first[name] for result in results)
    }


def _missing(values: xr.DataArray) -> xr.DataArray:
    empty = values.where(False) if values.dtype.kind == "f" else values.astype(float).where(False)
    return empty.assign_attrs(values.attrs)


def _joined(parts: list[xr.Dataset], dim: str, runs: list[Run]) -> xr.Dataset:
    try:
        return xr.concat(parts, dim, join="exact", data_vars="all", coords="minimal", compat="equals")
    except ValueError as reason:
        names = ", ".join(run.name for run in runs)
        raise ValueError(f"results of {names} do not have the same coordinates; give runs of equal length.") from reason
