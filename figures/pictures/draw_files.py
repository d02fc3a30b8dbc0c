"""A named figure from runs to files: picture as PDF, PNG and SVG; beside it numbers as netCDF and CSV, and texts."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.analyses.rounds.batch_statistics import statistics_remark
from drift.runs.run import Run
from drift.store.files import Damaged
from figures import gallery
from figures.gallery._checked import runs_of
from figures.looks import literal, look
from figures.selection import sampling_error
from figures.selection.identity import sample_counts
from figures.selection.run_selection import join_names, require_runs, required_runs, subset
from landscape import plugins
from landscape.plugins.outside import is_outside
from landscape.results import netcdf_files
from landscape.results.atomic_write import write_bytes
from landscape.results.export import export_bytes

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

FORMATS = ("pdf", "png", "svg")
"""Formats that a picture is written in by default."""


def draw(
    name: str,
    runs: Sequence[Run] | str | Path,
    folder: str | Path = "out/figures",
    *,
    stem: str = "",
    formats: Sequence[str] = FORMATS,
    **options: Any,
) -> list[Path]:
    """Draw a named figure into files: PDF, PNG, SVG, its numbers as a netCDF file and as a CSV table, and its caption.

        figures.draw("norms-rounds", [run], "out/figures", formats=["pdf"])

    The caption is STEM.tex (\\caption and \\label), STEM.txt and, for readers who cannot see the picture, STEM.alt.txt;
    tables are also written as STEM.table.tex (booktabs), .table.md and .table.html.
    The picture and the attributes of the numbers state what is shown: methods, data, partition, seeds, rounds, samples.
    `fedscape figures draw` writes the same files.

    Args:
        name: Name of the figure, as in `fedscape figures list`.
        runs: The figure draws all of them, or refuses; of `figures.gallery.AnyOf` it may draw a part. Or the
            netCDF file of numbers that was written next to a picture of this figure: drawn again, without runs.
        folder: Where the files go.
        stem: What the files are called; else the figure's name.
        formats: Of the picture, of pdf, png, svg and eps.
        options: Of the figure, such as round=12; and words of its look (`figures.looks.look.Look`), such as
            width="column", style="ieee" or paired_to="fedavg". A word that the figure has as an option of its own is
            that option.

    Returns:
        Paths of the files, pictures first.

    Raises:
        ValueError, LookupError: If there is no such figure, or it refuses the runs or an option of the look.
    """
    folder = Path(folder)
    os.environ.setdefault("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    from figures.axes.footnote import footnote
    from figures.looks import style
    from figures.selection import substance
    from figures.texts.write import write

    style.require_formats(formats)
    words, options = split_words(name, options)
    figure_plugin, plain = gallery.load(name), gallery.file_stem(name)
    called = stem or plain
    numbers, table = folder / f"{called}.nc", folder / f"{called}.csv"
    with look.drawing(look.read(**words)) as drawing:
        ds, read = _data(name, runs, words, options)
        samples = _test_samples(ds, runs_of(ds, read)) if read else int(ds.attrs.get("test_samples", 0)) or None
        evaluates = read and getattr(figure_plugin, "COST", "") != "seconds"  # others draw recorded numbers
        odd = _odd_statistics(runs_of(ds, read)) if evaluates else str(ds.attrs.get("odd_statistics", "")).splitlines()
        ds = ds.assign_attrs(odd_statistics="\n".join(odd)) if odd else ds
        ds = ds.assign_attrs({"figure": plain, **gallery.origin(name), "test_samples": samples or 0})
        figure = figure_plugin.draw(ds)
        if drawing.notes:
            ds = ds.assign_attrs(band=literal.plain(drawing.noted()))
        needs = getattr(figure_plugin, "NEEDS", "")
        if remarks := [*map(literal.plain, substance.remarks(figure, ds, needs=needs, samples=samples)), *odd]:
            ds = ds.assign_attrs(remarks="; ".join(remarks))
            if drawing.look.note:
                footnote(figure, f"Note: {'; '.join(remarks)}.")
        netcdf_files.save(ds, numbers)
        write_bytes(table, export_bytes(ds, "csv"))
        paths = style.save(figure, folder / called, formats)
    plt.close(figure)
    headline = plugins.describe("figures.gallery", name) if plain in gallery.names() else plain
    return [*paths, numbers, table, *write(folder / called, headline, ds, figure, samples=samples)]


def picture(
    name: str,
    runs: Sequence[Run] | str | Path,
    *,
    ax: Axes | None = None,
    subfigure: SubFigure | None = None,
    **options: Any,
) -> Figure:
    """A named figure as a figure of matplotlib, alone or as a part of another one.

        figure = figures.picture("norms-rounds", [run])
        figures.save(figure, "norms")

    Args:
        name, runs, options: As in `figures.draw`.
        ax: Axes of another figure, whose place in its grid the figure takes.
        subfigure: Part of another figure (`Figure.subfigures`) that it is drawn into.

    Returns:
        The figure, or the part of the other one that was drawn into.

    Raises:
        ValueError, LookupError: As `figures.draw`.
    """
    words, options = split_words(name, options)
    figure_plugin = gallery.load(name)
    with look.drawing(look.read(**words), ax=ax, subfigure=subfigure):
        return figure_plugin.draw(_data(name, runs, words, options)[0])


def split_words(name: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Words of a look and options of a figure, from both.

    A word that the figure has as an option is that option, but for ranges of rounds, which are of the look.

    Raises:
        ValueError: If the figure has neither, or an option has another type.
    """
    figure_plugin = gallery.load(name)
    accepted = inspect.signature(figure_plugin.data).parameters
    words = {
        word: value
        for word, value in options.items()
        if word in look.WORDS and (word not in accepted or (word == "rounds" and isinstance(value, str | slice)))
    }
    rest = {option: value for option, value in options.items() if option not in words}
    if "paired_to" in words and "reference" in accepted and "number" in accepted:
        rest["reference"] = words.pop("paired_to")
    require_options(name, rest)
    return words, rest


def require_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that a figure does not have, or values of another type.

    Raises:
        ValueError: With what is accepted.
    """
    plugins.require_options(f"figure {gallery.file_stem(name)}", gallery.load(name).data, options)


def _data(
    name: str, runs: Sequence[Run] | str | Path, words: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[xr.Dataset, Sequence[Run]]:
    """Data of a figure and the runs that they are of; data that were written next to a picture come without runs.

    Raises:
        ValueError: If these are of another figure, or words or options ask for other data.
    """
    if not isinstance(runs, str | Path):
        require_runs(runs)
        return _readable(gallery.load(name).data, runs, options)
    ds, plain = netcdf_files.load(runs), gallery.file_stem(name)
    if (other := gallery.file_stem(str(ds.attrs.get("figure", plain)))) != plain:
        raise ValueError(f"{runs} has the numbers of figure {other}, not of {plain}.")
    if asked := [*options, *(word for word in OF_RUNS if words.get(word))]:
        raise ValueError(f"{asked[0]} asks for other numbers than {runs} has; give the runs, or leave it out.")
    return ds, []


OF_RUNS = ("methods", "paired_to", "rounds")
"""Words of a look that choose what is drawn."""


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


def _odd_statistics(runs: Sequence[Run]) -> list[str]:
    """What is odd about the batch statistics of last global models; with the names of runs if there are several."""
    on_disk = (run for run in runs if run.folder.is_dir())  # a file of a campaign has no models
    remarks = [(run.name, remark) for run in on_disk if (remark := statistics_remark(run))]
    return [f"{name}: {remark}" if len(runs) > 1 else remark for name, remark in remarks]


def _test_samples(ds: xr.Dataset, runs: Sequence[Run]) -> int | None:
    """Test samples behind the accuracies that a figure compares, of the drawn run with fewest; None without any."""
    if not any(sampling_error.accuracy_kind(values) for values in ds.data_vars.values()):
        return None
    by_task = {repr(run.experiment.task): run for run in runs if not run.without_data}
    return min((size for run in by_task.values() if (size := _tested(run)) is not None), default=None)


def _tested(run: Run) -> int | None:
    """Test samples of a run, by its record or else its data; None where it takes both code from outside."""
    if (stated := sample_counts(run).get("test")) is not None or is_outside(run.experiment.task.dataset):
        return stated
    return len(run.dataset.samples["test"])
