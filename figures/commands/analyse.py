"""fedscape analyse: any analysis of a run, by the name of its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from drift.runs.registry import Registered, registered
from figures.commands import analyse_rounds
from figures.commands.opening import HERE, RunSource
from figures.commands.options import (
    OUT,
    AnalysisName,
    Cluster,
    Json,
    Memory,
    Options,
    RunNames,
    Workers,
    arguments,
    several,
)
from figures.commands.requirements import require_file
from figures.texts import console
from landscape import plugins
from landscape.plugins import outside

if TYPE_CHECKING:
    import xarray as xr

    from drift.runs.run import Run
    from drift.simulation.many_results import Opening

SHORT = {"plane": "round_plane", "eigenvalues": "eigen_rounds"}

POINTS = "the cluster shares points of planes and lines alone."

SUFFIXES = (".csv", ".nc", ".vtk", ".ply", ".tex", ".md", ".html")
"""Of files that numbers are written to."""


def analyse(
    name: AnalysisName,
    run: RunNames,
    /,
    *,
    rounds: Annotated[list[str] | None, several("--rounds", "ROUND")] = None,
    set: Options = None,
    out: Annotated[Path | None, OUT] = None,
    tidy: Annotated[bool, Parameter(negative="--wide", show_default=lambda _: "--wide")] = False,
    source: RunSource = HERE,
    metric: Annotated[list[str] | None, Parameter(negative="", metavar="FILE.py:FUNCTION")] = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    memory: Memory = None,
    json: Json = False,
) -> int:
    """Compute an analysis of runs; results are stored in the folders of the runs and not computed again.

    With --workers or --cluster, processes share the rounds and runs, or the points of a single plane or line. With
    --workers they also share the local trainings that an analysis repeats. The numbers stay the same.

    Example: `fedscape analyse coherence fedavg-digits --out coherence.csv`

    Args:
        name: Name of an analysis (fedscape list analyses, which also names the options of each), or FILE.py:FUNCTION
            or module:FUNCTION of your own.
        out: File for the numbers: .csv (for pandas), .nc (netCDF, for xarray), .vtk or .ply (a surface for ParaView),
            .tex, .md or .html (a table). For several results, write {run} or {round} into its name. By default the
            numbers are only stored in the run's folder.
        rounds: Compute it for each of these rounds: all, kept (those with stored client models), numbers such as 0 10
            -1, or FIRST:LAST; only for an analysis of one round. By default the last one, or that of --set round=N.
        tidy: How .csv is written: --wide has a column per number, as pandas and spreadsheets take it; --tidy has a row
            per value with its variable and units.
        metric: Function of your own, (outputs, targets) -> one value per sample, to evaluate on planes and lines in
            addition to the loss. May be repeated. By default none.
    """
    known = registered()
    if name not in known:  # what is built in comes first
        name = outside.entry_points("drift.analyses").get(name, name)
    analysis = None if outside.is_outside(name) else _registered(name, known)
    if out is not None and out.suffix not in SUFFIXES:
        raise ValueError(f"cannot write {str(out)!r}; the suffix says the format: {', '.join(SUFFIXES)}.")
    if tidy and (out is None or out.suffix != ".csv"):
        raise ValueError(f"--tidy needs a .csv file, and --out is {'not given' if out is None else out}; give one.")
    options, opened_runs = arguments(set), source.open_all(run)
    if rounds is not None and "round" in options:
        raise ValueError("both --rounds and --set round were given; give one of them.")
    reference = name if analysis is None else f"{analysis.module}:{analysis.name}"
    function = outside.load(reference)
    plugins.require_options(function.__name__, function, options)
    addresses = analyse_rounds.result_addresses(opened_runs, rounds, function)
    if out is not None:
        analyse_rounds.require_names(addresses, out)
        for address in addresses:
            require_file(address.path(out))
    from drift.runs.user_task import UserMetric
    from drift.simulation.sweep_points import point_pool
    from drift.store.locks import is_writable
    from drift.store.memory_budget import limited

    pool = point_pool(workers, cluster)
    measures = [UserMetric.load(text) for text in metric or ()]
    addresses = [address.measured(measures) for address in addresses]
    with limited(memory):
        if len(addresses) > 1:
            from drift.simulation.many_results import Opening

            opening = Opening(source.data, source.task, tuple(metric or ()), memory)
            several = (addresses, function, reference, options, opening, out, json)
            return _several(*several, tidy=tidy, workers=workers, cluster=cluster)
        options |= addresses[0].options
        result = _single(addresses[0].run.with_crew(pool), function, options, workers, cluster)
    console.answer([repr(result)], result.to_dict() if json else {}, json=json)
    if is_writable(folder := addresses[0].run.folder / "results"):
        console.say(f"kept in {folder}")
    _write(result, None if out is None else addresses[0].path(out), tidy)
    return 0


def _single(
    run: Run, function: Callable[..., xr.Dataset], options: dict[str, Any], workers: int, cluster: str | None
) -> xr.Dataset:
    """One result; its points, or the trainings that it repeats, are shared."""
    plain = function.__name__
    if "workers" in inspect.signature(function).parameters and "workers" not in options:  # it trains again
        options["workers"] = workers
        if cluster is not None:
            console.say(f"{plain} trains clients on this machine, by --set workers=N in N processes; {POINTS}")
    with console.stages(f"{plain} of {run.name}") as stage:
        return run.with_progress(stage, console.say).cached(function, **options)


def _several(
    addresses: Sequence[analyse_rounds.RunRound],
    function: Callable[..., xr.Dataset],
    reference: str,
    options: dict[str, Any],
    opening: Opening,
    out: Path | None,
    json: bool,
    *,
    tidy: bool,
    workers: int,
    cluster: str | None,
) -> int:
    """Several results, each computed by one process; the table of them, their files, and the exit code."""
    from drift.simulation.many_results import Wanted, compute_results

    wanted = [Wanted(address.run.folder, reference, {**options, **address.options}) for address in addresses]
    with console.stages(f"{function.__name__}, {len(addresses)} results") as stage:
        errors = compute_results(wanted, opening, workers=workers, cluster=cluster, progress=stage)
    rows = []
    for address, job, error in zip(addresses, wanted, errors, strict=True):
        result = None if error is not None else address.run.cached(function, **job.options)
        rows.append(analyse_rounds.row(address, result, error))
        if result is not None:
            rows[-1] |= {"result": result.to_dict()} if json else {}
            _write(result, None if out is None else address.path(out), tidy, quiet=True)
    if json:
        console.put_json(rows)
    else:
        analyse_rounds.put_table(rows)
    done = sum(error is None for error in errors)
    files = "" if out is None else f"; files: {out}"
    console.say(f"{done} of {len(addresses)} results are kept in the folders of their runs{files}")
    return 0 if done == len(addresses) else 2


def _write(result: xr.Dataset, out: Path | None, tidy: bool, *, quiet: bool = False) -> None:
    """Write the numbers in the format of the file's suffix, CSV as a long table if `tidy`."""
    from landscape.results.atomic_write import write_bytes
    from landscape.results.export import export_bytes

    if out is None:
        return
    if out.suffix in (".tex", ".md", ".html"):
        from figures.texts.table import table
        from figures.texts.table_formats import FORMS

        write_bytes(out, FORMS[out.suffix](table(result)).encode())
    else:
        write_bytes(out, export_bytes(result, "tidy" if tidy else out.suffix.removeprefix(".")))
    if not quiet:
        console.say(f"written to {out}")


def _registered(name: str, known: Mapping[str, Registered]) -> Registered:
    plain = name.replace("-", "_")
    if (analysis := known.get(SHORT.get(plain, plain))) is None:
        raise ValueError(plugins.unknown("analysis", name, [*known, *SHORT, *outside.entry_points("drift.analyses")]))
    return analysis
