"""Named figures from runs to files: picture as PDF, PNG and SVG, numbers as zarr and CSV beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.parallel.process_pool import processes
from drift.plugins.reserved_names import USER_TASK
from drift.runs.run import Run
from drift.runs.run import open as open_run
from drift.store.atomic_write import write_bytes
from drift.store.files import Damaged
from figures import gallery
from figures.gallery._checked import runs_of
from figures.selection import sampling_error
from figures.selection.run_selection import join_names, required_runs, subset
from landscape import plugins
from landscape.results import zarr_files
from landscape.results.export import export_bytes

if TYPE_CHECKING:
    import xarray as xr

Job = tuple[Sequence[Run], Mapping[str, Any]]
"""Runs and options of a figure."""

Outcome = list[Path] | str
"""Files written, or the reason why these runs do not allow the figure."""


def draw_one(name: str, runs: Sequence[Run], folder: Path, *, stem: str = "", **options: Any) -> list[Path]:
    """Files of one figure: pictures, then its numbers as a zarr folder and as a table, a row a value.

    The picture and the attributes of the numbers state what is shown: methods, data, partition, seeds, rounds, samples.

    Args:
        runs: The figure draws all of them, or refuses; of `figures.gallery.AnyOf` it may draw a part.
        stem: What the files are called; else the figure's name.
        options: Of the figure's data().

    Raises:
        ValueError, LookupError: If there is no such figure, or the runs do not allow it.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    from figures import style
    from figures.axes.footnote import footnote
    from figures.selection import substance

    require_options(name, options)
    figure_plugin, plain = gallery.load(name), gallery.file_stem(name)
    ds, runs = _readable(figure_plugin.data, runs, options)
    ds = ds.assign_attrs(gallery.origin(name))
    called = stem or plain
    numbers, table = folder / f"{called}.zarr", folder / f"{called}.csv"
    figure = figure_plugin.draw(ds)
    needs, samples = getattr(figure_plugin, "NEEDS", ""), _test_samples(ds, runs_of(ds, runs))
    if remarks := substance.remarks(figure, ds, needs=needs, samples=samples):
        ds = ds.assign_attrs(remarks="; ".join(remarks))
        footnote(figure, f"Note: {'; '.join(remarks)}.")
    zarr_files.save(ds, numbers)
    write_bytes(table, export_bytes(ds, "csv"))
    paths = style.save(figure, folder / called)
    plt.close(figure)
    return [*paths, numbers, table]


def require_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that a figure does not have, or values of another type.

    Raises:
        ValueError: With what is accepted.
    """
    plugins.require_options(f"figure {gallery.file_stem(name)}", gallery.load(name).data, options)


def _readable(
    data: Callable[..., xr.Dataset], runs: Sequence[Run], options: Mapping[str, Any]
) -> tuple[xr.Dataset, Sequence[Run]]:
    """Data of a figure and the runs that it may show: of a folder without those with a damaged file, which it names.

    Raises:
        Damaged: If such a run was named itself, or no run is left.
    """
    unreadable: dict[str, str] = {}
    while True:
        try:
            ds = data(runs, **options)
        except Damaged as reason:
            broken = {run.folder: run.name for run in runs if run.folder.resolve() in reason.path.resolve().parents}
            rest = [run for run in runs if run.folder not in broken]
            if not broken or not rest or any(run.folder in broken for run in required_runs(runs)):
                raise
            unreadable |= dict.fromkeys(broken.values(), " ".join(str(reason).split()))
            runs = subset(runs, rest)
        else:
            return (_with_unreadable(ds, unreadable) if unreadable else ds), runs


def _with_unreadable(ds: xr.Dataset, unreadable: Mapping[str, str]) -> xr.Dataset:
    """The data with the runs that could not be read among those left out, in full and in the picture's small line."""
    lines = [f"{name}: left out, it cannot be read: {why}" for name, why in unreadable.items()]
    brief = [f"left out, as they cannot be read: {join_names(list(unreadable))}"]
    return ds.assign_attrs(
        left_out="\n".join(filter(None, [str(ds.attrs.get("left_out", "")), *lines])),
        left_out_brief="; ".join(filter(None, [str(ds.attrs.get("left_out_brief", "")), *brief])),
    )


def _test_samples(ds: xr.Dataset, runs: Sequence[Run]) -> int | None:
    """Test samples behind the accuracies that a figure compares, of the drawn run with fewest; None without any."""
    if not any(sampling_error.accuracy_kind(values) for values in ds.data_vars.values()):
        return None
    by_task = {
        repr(run.experiment.task): run
        for run in runs
        if run.context.user_task is not None or run.experiment.task.dataset != USER_TASK
    }
    return min((len(run.dataset.samples["test"]) for run in by_task.values()), default=None)


def draw_all(
    jobs: Mapping[str, Job],
    folder: Path,
    *,
    workers: int = 1,
    progress: Callable[[float, str], None] | None = None,
    task: str | None = None,
) -> dict[str, Outcome]:
    """Several figures; one that its runs do not allow has the reason in place of its files.

    Each figure may choose among its runs; `left_out` tells which it did not draw.

    Args:
        jobs: Runs and options by figure name.
        folder: Where the files go.
        workers: Processes; each draws one figure after the other on one thread.
        progress: Called with (figures done, name of the last one).
        task: A task in place of the recorded one, FILE.py:FUNCTION, for workers; the runs given here have it already.
    """
    outcomes: dict[str, Outcome] = {}
    step = progress or (lambda done, note: None)
    if workers <= 1:
        for name, (runs, options) in jobs.items():
            step(len(outcomes), name)
            fresh = [replace(run) for run in runs]  # what it held is freed
            outcomes[name] = outcome_of(name, fresh, folder, options)
        step(len(outcomes), "")
        return outcomes
    with processes(workers) as pool:
        pending = {
            pool.submit(attempt, name, [run.folder for run in runs], _data(runs), folder, dict(options), task): name
            for name, (runs, options) in jobs.items()
        }
        for job in as_completed(pending):
            outcomes[pending[job]] = job.result()
            step(len(outcomes), pending[job])
    return {name: outcomes[name] for name in jobs}


def attempt(
    name: str,
    folders: list[Path],
    data: Path | None,
    folder: Path,
    options: dict[str, Any],
    task: str | None = None,
) -> Outcome:
    """Outcome of one figure, from folders of runs and of datasets; fit to be sent to another process."""
    return outcome_of(name, [open_run(path, data=data, task=task) for path in folders], folder, options)


def left_out(files: Sequence[Path]) -> list[str]:
    """Lines on the runs that a drawn figure left out, from the numbers among its files."""
    lines = (str(zarr_files.load(path).attrs.get("left_out", "")) for path in files if path.suffix == ".zarr")
    return [line for text in lines for line in text.splitlines()]


def outcome_of(name: str, runs: Sequence[Run], folder: Path, options: Mapping[str, Any], stem: str = "") -> Outcome:
    """Files of one figure of some of these runs, or the reason why they do not allow it."""
    try:
        return draw_one(name, gallery.AnyOf(runs), folder, stem=stem, **options)
    except (ValueError, LookupError) as reason:
        if isinstance(reason, KeyError | IndexError):
            raise
        return " ".join(str(reason).split())


def _data(runs: Sequence[Run]) -> Path | None:
    return runs[0].context.data if runs else None
