"""fedscape analyse: any analysis of a run, by the name of its function."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from drift.runs.registry import Registered, registered
from figures import console
from figures.commands.opening import opened
from figures.commands.options import (
    OUT,
    AnalysisName,
    Cluster,
    Data,
    Json,
    Memory,
    Options,
    RunName,
    Runs,
    Task,
    Workers,
    arguments,
    require_file,
    require_folder,
)
from landscape import outside, plugins

Metric = Annotated[
    list[str] | None,
    Parameter(
        name="--metric",
        negative="",
        metavar="FILE.py:FUNCTION",
        help="Function of your own, (outputs, targets) -> one value per sample, that planes and lines are evaluated "
        "with beside the loss. May be repeated. By default none.",
    ),
]

SHORT = {"plane": "round_plane", "eigenvalues": "eigen_rounds"}

POINTS = "the cluster shares points of planes and lines alone."

SUFFIXES = (".csv", ".vtk", ".ply", ".zarr", ".tex", ".md", ".html")
"""Of files that numbers are written to."""


def analyse(
    name: AnalysisName,
    run: RunName,
    /,
    *,
    set: Options = None,
    out: Annotated[Path | None, OUT] = None,
    runs: Runs = Path("runs"),
    data: Data = None,
    task: Task = None,
    metric: Metric = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Compute an analysis of a run; the result is stored in the run's folder and not computed again.

    With --workers or --cluster the points of planes and lines are evaluated in parallel, and with --workers also the
    local trainings that an analysis repeats; the numbers stay the same.

    Example: `fedscape analyse coherence fedavg-digits --out coherence.csv`

    Args:
        name: Name of an analysis (fedscape list analyses, which also names the options of each), or FILE.py:FUNCTION
            or module:FUNCTION of your own.
        out: File for the numbers: .csv (one value per row), .vtk or .ply (a surface for ParaView), .zarr (for xarray),
            .tex, .md or .html (a table). By default they are only stored in the run's folder.
    """
    known = analyses()
    if name not in known:  # what is built in comes first
        name = outside.entry_points("drift.analyses").get(name, name)
    analysis = None if outside.is_outside(name) else _registered(name, known)
    if out is not None and out.suffix not in SUFFIXES:
        raise ValueError(f"cannot write {str(out)!r}; the suffix says the format: {', '.join(SUFFIXES)}.")
    if out is not None:
        (require_folder if out.suffix == ".zarr" else require_file)(out)
    options, opened_run = arguments(set), opened(run, runs, data, task)
    from drift.runs.user_task import UserMetric
    from drift.simulation.sweep_points import point_pool
    from drift.store.memory_budget import limited

    function = (
        outside.load(name) if analysis is None else getattr(importlib.import_module(analysis.module), analysis.name)
    )
    plain, accepted = function.__name__, inspect.signature(function).parameters
    plugins.require_options(plain, function, options)
    measures = [UserMetric.load(text) for text in metric or ()]
    measured_run, pool = opened_run.with_measures(measures), point_pool(workers, cluster)
    if "workers" in accepted and "workers" not in options:  # it trains again
        options["workers"] = workers
        if cluster is not None:
            console.say(f"{plain} trains clients on this machine, by --set workers=N in N processes; {POINTS}")
    with limited(memory), console.parts(f"{plain} of {measured_run.name}") as part:
        result = measured_run.with_progress(part, console.say).with_crew(pool).cached(function, **options)
    if json:
        console.put_json(result.to_dict())
    else:
        console.put(repr(result))
    console.say(f"kept in {measured_run.folder / 'results'}")
    if out is not None:
        from drift.store.atomic_write import write_bytes
        from landscape.results import zarr_files
        from landscape.results.export import export_bytes

        if out.suffix == ".zarr":
            zarr_files.save(result, out)
        elif out.suffix in (".tex", ".md", ".html"):
            from figures.texts.table import table
            from figures.texts.table_formats import FORMS

            write_bytes(out, FORMS[out.suffix](table(result)).encode())
        else:
            write_bytes(out, export_bytes(result, out.suffix.removeprefix(".")))
        console.say(f"written to {out}")


def _registered(name: str, known: Mapping[str, Registered]) -> Registered:
    plain = name.replace("-", "_")
    if (analysis := known.get(SHORT.get(plain, plain))) is None:
        raise ValueError(plugins.unknown("analysis", name, [*known, *SHORT, *outside.entry_points("drift.analyses")]))
    return analysis


def analyses() -> dict[str, Registered]:
    """Every analysis by name; nothing heavy is imported."""
    return registered()
