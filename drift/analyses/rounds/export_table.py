"""The series of a run as one table, and its file."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import xarray as xr

from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.variance import drift_variances
from drift.runs.run import Run
from landscape.results.export import csv_text

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".parquet")
"""Suffixes of files that a table is written to."""


def table(run: Run) -> pd.DataFrame:
    """Every number of every round: one row per round, metrics first, then coherence and drift variances.

    Units are in `table.attrs["units"]`, by column. Missing numbers are NaN. Where a recorded number is called as one of
    drift, the latter is "drift.coherence".

    Raises:
        LookupError: If the run has no complete round.
    """
    run.require_round(-1)
    tables = [run.metrics(), run.cached(coherence), run.cached(drift_variances)]
    columns: dict[str, xr.DataArray] = {}
    for table in tables:
        for name, values in table.items():
            if values.dims == ("round",) and values.dtype.kind in "fiub":
                columns[f"drift.{name}" if name in columns else str(name)] = values
    dataset = xr.Dataset({name: values.variable for name, values in columns.items()}, coords={"round": run.rounds()})
    frame = dataset.to_dataframe()[list(columns)]
    frame.attrs["units"] = {name: values.attrs.get("units", "") for name, values in columns.items()}
    return frame


def table_file(frame: pd.DataFrame, suffix: str) -> bytes:
    """A table as the content of a file.

    Raises:
        ValueError: If the suffix is none of `SUFFIXES`.
        LookupError: If the suffix is .parquet and pyarrow is not installed.
    """
    if suffix == ".csv":
        return csv_text(frame.reset_index())
    if suffix != ".parquet":
        raise ValueError(f"cannot write a table as {suffix!r}; the suffixes are {', '.join(SUFFIXES)}.")
    content = BytesIO()
    try:
        frame.reset_index().to_parquet(content, engine="pyarrow", index=False)
    except ImportError as reason:
        raise LookupError("Parquet needs pyarrow; pip install 'fedscape[parquet]', or write .csv.") from reason
    return content.getvalue()
