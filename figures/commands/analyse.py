"""fedscape analyse: any analysis of a run, by the name of its function."""

from __future__ import annotations

import ast
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from figures import console
from figures.commands.opening import opened
from figures.commands.options import (
    AnalysisName,
    Cluster,
    Data,
    Json,
    Options,
    RunName,
    Runs,
    Task,
    Workers,
    arguments,
    require_file,
    require_folder,
)
from landscape import plugins

if TYPE_CHECKING:
    import xarray as xr

File = Annotated[
    Path | None,
    Parameter(
        name=["--out", "-o"],
        help="File for the numbers: .csv (one value per row), .vtk or .ply (a surface for ParaView), .zarr (for "
        "xarray). By default they are only stored in the run's folder.",
    ),
]

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

DRIFT = Path(__file__).resolve().parents[2] / "drift"
"""The package whose analyses there are."""

SUFFIXES = (".csv", ".vtk", ".ply", ".zarr")
"""Of files that numbers are written to."""


@dataclass(frozen=True)
class Analysis:
    """A public function of `drift` that takes a run and returns a dataset, found in the source."""

    name: str
    module: str
    description: str
    options: tuple[str, ...]


def analyse(
    name: AnalysisName,
    run: RunName,
    /,
    *,
    set: Options = None,
    out: File = None,
    runs: Runs = Path("runs"),
    data: Data = None,
    task: Task = None,
    metric: Metric = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    json: Json = False,
) -> None:
    """Compute an analysis of a run; the result is stored in the run's folder and not computed again.

    With --workers or --cluster the points of planes and lines are evaluated in parallel, and with --workers also the
    local trainings that an analysis repeats; the numbers stay the same.

    Example: `fedscape analyse coherence fedavg-digits --out coherence.csv`

    Args:
        name: Name of an analysis (fedscape list analyses, which also names the options of each).
        run: One run: its folder, or its name in --runs, or the beginning of that name (fedscape runs lists them).
    """
    known = analyses()
    plain = name.replace("-", "_")
    chosen = known.get(SHORT.get(plain, plain))
    if chosen is None:
        raise ValueError(plugins.unknown("analysis", name, [*known, *SHORT]))
    if out is not None and out.suffix not in SUFFIXES:
        raise ValueError(f"cannot write {str(out)!r}; the suffix says the format: {', '.join(SUFFIXES)}.")
    if out is not None:
        (require_folder if out.suffix == ".zarr" else require_file)(out)
    options, ready = arguments(set), opened(run, runs, data, task)
    from drift.runs.own_metrics import Measure
    from drift.simulation.sweep_points import crew

    function = getattr(importlib.import_module(chosen.module), chosen.name)
    plugins.require_options(chosen.name, function, options)
    measures = [Measure.loaded(text) for text in metric or ()]
    found, staff = ready.with_measures(measures), crew(workers, cluster)
    if "workers" in chosen.options and "workers" not in options:  # it trains again
        options["workers"] = workers
        if cluster is not None:
            console.say(f"{chosen.name} trains clients on this machine, by --set workers=N in N processes; {POINTS}")
    with console.parts(f"{chosen.name} of {found.name}") as part:
        result = found.with_progress(part, console.say).with_crew(staff).cached(function, **options)
    if json:
        console.put_json(result.to_dict())
    else:
        console.put(repr(result))
    console.say(f"kept in {found.folder / 'results'}")
    if out is not None:
        _write(result, out)
        console.say(f"written to {out}")


def analyses() -> dict[str, Analysis]:
    """Every analysis by name; nothing is imported."""
    found = {}
    for path in sorted(DRIFT.rglob("*.py")):
        module = ".".join(("drift", *path.relative_to(DRIFT).with_suffix("").parts))
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and _is_analysis(node):
                arguments = [one.arg for one in (*node.args.args[1:], *node.args.kwonlyargs) if one.arg != "partial"]
                first = (ast.get_docstring(node) or "").partition("\n")[0]
                found[node.name] = Analysis(node.name, module, first, tuple(arguments))
    return dict(sorted(found.items()))


def _write(ds: xr.Dataset, path: Path) -> None:
    """Write a dataset in the format of the path's suffix, whole or not at all."""
    if path.suffix == ".zarr":
        from landscape.results import zarr_files

        zarr_files.save(ds, path)
        return
    from drift.store.atomic_write import write_bytes
    from landscape.results.export import exported

    write_bytes(path, exported(ds, path.suffix.removeprefix(".")))


def _is_analysis(node: ast.FunctionDef) -> bool:
    if node.name.startswith("_") or not node.args.args or node.returns is None:
        return False
    if len(node.args.args) - 1 > len(node.args.defaults) or None in node.args.kw_defaults:
        return False  # it needs more than a run
    annotation = node.args.args[0].annotation
    return annotation is not None and (ast.unparse(annotation), ast.unparse(node.returns)) == ("Run", "xr.Dataset")
