"""Numbers of the record for a figure, as far as a run has them: the file of a finished run has some of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.per_round import ABOUT
from drift.analyses.per_round import result as labelled
from drift.runs.run import Run
from figures.looks import look, words
from figures.selection.run_selection import narrow

Analysis = Callable[..., xr.Dataset]


def numbers_of_record(run: Run, analysis: Analysis, names: Sequence[str], **options: Any) -> xr.Dataset:
    """The result of an analysis; numbers that the file of a run does not have are NaN, and a note names them."""
    result = run.cached(analysis, **options)
    absent = [name for name in names if name not in result]
    if not absent:
        return result
    about, nothing = ABOUT[analysis.__name__], np.full(result.sizes["round"], np.nan)
    text = words.listed([about[name][0] for name in absent])
    look.current().remark(f"not drawn, as files of runs do not have it: {text}; give their folders")
    return labelled(result.assign(dict.fromkeys(absent, ("round", nothing))), about)


def with_metric(result: xr.Dataset, run: Run, name: str) -> xr.Dataset:
    """A result with a recorded metric, over the rounds of both; beside means of rounds a note says what it is of."""
    if result.attrs.get("block", 1) > 1:
        look.current().remark(f"test {name}: of single rounds")
    metric = run.metrics()[[name]]
    return xr.merge([result, metric], join="outer", combine_attrs="override", compat="no_conflicts")


def present(ds: xr.Dataset, names: Sequence[str]) -> list[str]:
    """Those of some variables that have a value."""
    return [name for name in names if bool(ds[name].notnull().any())]


def having(runs: Sequence[Run], analysis: Analysis) -> Sequence[Run]:
    """The runs without the files that do not hold an analysis.

    Raises:
        LookupError: If no run is left; what the first file lacks.
        ValueError: If such a file has to be drawn.
    """
    selected = []
    for run in runs:
        try:
            run.cached(analysis)
        except LookupError:
            if run.folder.is_dir():
                raise
        else:
            selected.append(run)
    _ = selected or [run.cached(analysis) for run in runs]
    return narrow(runs, selected, f"their files hold no {analysis.__name__}")
