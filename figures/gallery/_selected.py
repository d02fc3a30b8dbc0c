"""What a file computes of one run, or of each run, as the data of a figure of runs; which runs is decided here."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import xarray as xr

from drift.runs.run import Run
from figures.gallery import _cases, _runs, _stack
from figures.selection.run_selection import narrow, select_runs

Compute = Callable[..., xr.Dataset]
"""Takes a run and the options of a figure."""

Select = Callable[..., Sequence[Run]]
"""Takes runs and, by keyword, options that the figure has too."""


def comparable(runs: Sequence[Run]) -> Sequence[Run]:
    """All runs of one setting."""
    return _runs.select_comparable(runs)


def of_first_seed(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs of one setting with the smallest seed."""
    selected = comparable(runs)
    first = min(run.experiment.seed for run in selected)
    once = [run for run in selected if run.experiment.seed == first]
    return narrow(selected, once, "this figure shows one seed")


def of_method(runs: Sequence[Run], *, method: str | None = None) -> Sequence[Run]:
    """The runs of one method."""
    return _runs.runs_of_method(runs, method)


def preferring(*usual: str) -> Select:
    """The runs of the methods that are asked for; by default of these, where two are among the runs of a setting."""

    def select(runs: Sequence[Run], *, methods: Sequence[str] | None = None) -> Sequence[Run]:
        return _runs.prefer_methods(_runs.select_comparable(select_runs(runs, methods)), methods, usual)

    return select


def suited(suits: Callable[[Run], object], **refusal: str) -> Select:
    """The runs of one setting of those that suit a figure; words as `_runs.select_suited` takes them."""
    return lambda runs: comparable(_runs.select_suited(runs, suits, **refusal))


def one_run(compute: Compute) -> Compute:
    """The data of a figure of one run, that of `_runs.one_run`, which the options method and seed choose."""
    return one_suited_run(lambda run: True, what="", command="", why="")(compute)


def one_suited_run(
    suits: Callable[[Run], object], usual: str = "fedavg", **refusal: str
) -> Callable[[Compute], Compute]:
    """The data of a figure of one run of those that suit it; words as `_runs.select_suited` takes them."""

    def of_run(compute: Compute) -> Compute:
        def data(
            runs: Sequence[Run], *, method: str | None = None, seed: int | None = None, **options: Any
        ) -> xr.Dataset:
            some = _runs.select_suited(select_runs(runs, method, seed), suits, **refusal) if refusal["what"] else runs
            run = _runs.one_run(some, method, seed, usual)
            return _stack.name_runs(compute(run, **options), [run])

        return _offer(data, compute, _parameters(data)[:-1])

    return of_run


def each_run(*stated: str, select: Select = comparable, by: bool = False) -> Callable[[Compute], Compute]:
    """The data of a figure of several runs: what is computed of each, along `algorithm` and `seed`.

    Args:
        stated: Options whose values are attributes of the data.
        select: Of all runs, those that are shown.
        by: With an option `by`, a setting whose values have data of their own, along `case`.
    """
    cases = inspect.Parameter("by", inspect.Parameter.KEYWORD_ONLY, default="", annotation="str")
    selecting = [*_parameters(select), *[cases] * by]

    def of_runs(compute: Compute) -> Compute:
        usual = {parameter.name: parameter.default for parameter in _parameters(compute)[1:]}

        def data(runs: Sequence[Run], **options: Any) -> xr.Dataset:
            fixed = {name: options.pop(name, default) for name, default in usual.items()}
            setting = options.pop("by", "")

            def stack(some: Sequence[Run]) -> xr.Dataset:
                return _stack.stack_runs(select(some, **options), lambda run: compute(run, **fixed))

            ds = _cases.stack_cases(runs, setting, stack)
            return ds.assign_attrs({name: _plain(fixed[name]) for name in stated})

        return _offer(data, compute, selecting)

    return of_runs


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _offer(data: Compute, compute: Compute, parameters: Sequence[inspect.Parameter]) -> Compute:
    """`data` with its own parameters, then the options of `compute`; else as that one is."""
    shown = wraps(compute)(data)
    shown.__signature__ = inspect.Signature([*parameters, *_parameters(compute)[1:]])  # type: ignore[attr-defined]
    return shown


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value  # netCDF has no truth values
