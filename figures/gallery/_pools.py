"""Runs whose clients grow pools of different numbers of models, the FedAvg runs of their setting, and their curves."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.axes import Axes

from drift.runs.run import Run
from figures.axes import curves, method_looks
from figures.gallery import _runs, _stack
from figures.selection.groups import largest_group

COMMAND = "fedscape sweep lss-cifar10-dir1-quick --grid method=lss method.candidates=2,3,4"


def split_by_candidates(runs: Sequence[Run]) -> tuple[dict[int, list[Run]], list[Run]]:
    """Runs of a method by the models in a client's pool, alike in all else but the seed, and FedAvg's in their setting.

    Of several such groups, that with most numbers of models, then with most runs, the first among equals.

    Raises:
        LookupError: If no group has two numbers of models.
    """

    def but_size(run: Run) -> str:
        single = run.method.model_copy(update={run.method.pool_option: 1})
        return f"{_setting(run)} {single!r} {run.experiment.local!r}"

    pooled = (run for run in runs if run.method.pool_size)
    best = largest_group(pooled, but_size, lambda group: (len(_sizes(group)), len(group)))
    if len(_sizes(best)) < 2:
        raise _runs.missing("these runs have fewer than two sizes of a client's pool", COMMAND)
    others = [run for run in runs if run.label == "fedavg" and _setting(run) == _setting(best[0])]
    return {size: [run for run in best if run.method.pool_size == size] for size in _sizes(best)}, others


def stack_over_models(runs: Sequence[Run], compute: _stack.Compute) -> xr.Dataset:
    """Results over models (in the pool of a client) and seed; those of FedAvg, by seed, as fedavg_NAME.

    Raises:
        LookupError: If no two runs of a method with pools differ in the number of models.
    """
    pools, others = split_by_candidates(runs)
    results = [_stack.stack_runs(group, compute).isel(algorithm=0, drop=True) for group in pools.values()]
    sizes = ("models", list(pools), {"long_name": "models trained by a client", "units": "1"})
    joined = xr.concat(results, "models", join="outer", combine_attrs="drop").assign_coords(models=sizes)
    joined = joined.assign_attrs(method=next(iter(pools.values()))[0].label)
    if others:
        plain = _stack.stack_runs(others, compute).isel(algorithm=0, drop=True).reindex(seed=joined.seed.values)
        joined = joined.assign({f"fedavg_{name}": values for name, values in plain.data_vars.items()})
    return _stack.name_runs(joined, [run for group in [*pools.values(), others] for run in group])


def draw_over_models(ds: xr.Dataset, name: str, ax: Axes) -> None:
    """Draw a variable of `stack_over_models`: the method over its number of models, FedAvg, if any, as a level."""
    curves.line_with_band(
        ds[name], ax=ax, over="models", **method_looks.line_look(ds.attrs["method"], marker="o", markersize=3)
    )
    if f"fedavg_{name}" not in ds:
        return
    ends = xr.DataArray([float(ds.models.min()), float(ds.models.max())], dims="models")
    level = ds[f"fedavg_{name}"].expand_dims(models=ends.values)
    look = {**method_looks.line_look("fedavg", linewidth=1.0), "linestyle": "--"}  # a level, not a curve over models
    curves.line_with_band(level, ax=ax, over="models", **look)


def _setting(run: Run) -> str:
    spec = run.experiment
    start = None if spec.init is None else (spec.init.digest, spec.init.head)
    return f"{spec.task!r} {spec.clients!r} {spec.rounds} {start}"


def _sizes(runs: Sequence[Run]) -> list[int]:
    return sorted({run.method.pool_size for run in runs})
