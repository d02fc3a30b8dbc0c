"""The report: one self-contained page about several runs, to be opened anywhere without a network."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from drift.parallel.job_pool import require_workers
from drift.runs.run import Run
from figures import gallery
from figures.page.content import content
from figures.page.front_end import front_end
from figures.page.packed import zipped
from figures.page.remembered_runs import Failed, PageProgress
from figures.page.sampled import FOLDS, SAMPLES
from figures.page.start import Start
from figures.selection.groups import groups
from figures.selection.run_selection import require_runs
from figures.texts import console
from landscape.results.atomic_write import write_bytes

TEMPLATES = Path(__file__).resolve().parent / "templates"

LARGEST, MOST = 10_000_000, 5
"""Bytes of a page at most, so that it can be sent by mail, and heavy parts that are named where it has more."""


def report(
    runs: Sequence[Run],
    path: str | Path = "report.html",
    *,
    points: int = 15,
    samples: int | Literal["all"] = SAMPLES,
    figures: Sequence[str] | None = (),
    workers: int = 1,
    task: str | None = None,
    address: str = "",
    what_if: dict[str, Any] | None = None,
    progress: PageProgress | None = None,
    failed: Failed | None = None,
) -> Path:
    """Write a page with the landscapes, the drift, the numbers and the settings of runs, and return its path.

    The page loads nothing when it is opened: its scripts and data are inside, compressed. Analyses are read from the
    runs' folders, or computed and stored there. The file appears when it is complete.

    Args:
        runs: Any runs; those that differ in their seed only are summarised as one method.
        path: File to write; its folder is made.
        points: Grid points per axis of a landscape.
        samples: Samples that landscapes, centre offset and eigenvalues are averaged over at most, selected at random,
            or "all"; the page says of how many they are a part, and their standard error.
        figures: Names of figures (`fedscape figures list`; FILE.py:NAME for your own) that the page also shows.
            None: the page is the stage alone, without tables, curves and figures.
        workers: Processes that share the work.
        task: A task in place of the recorded one, FILE.py:FUNCTION, for these processes; the runs given here have it
            already.
        address: Where the page begins, as the stage writes it after its own address: #round=12&view=relief. Samples,
            split and grid in it are those of the landscapes. By default the last round.
        what_if: What the weights of the clients in the address gave, as the stage writes it; the page shows it.
        progress: Called with the number of runs analysed, out of len(runs), and the name of the present work. The
            present run counts by its finished parts: landscapes, numbers, curves. Each is also a line for the run's
            `announce` (`Run.with_progress`).
        failed: Collects the pictures that could not be drawn; the page has the reason in their place. Without it, each
            is a warning.

    Raises:
        LookupError: If no run was given, or one has no complete round.
        ValueError: If the file cannot be written, there is no such figure, points is below 2, samples below 20 or
            workers below 1; before anything is computed. If the page would have more than `LARGEST` bytes.
    """
    path, step = Path(path), progress or (lambda done, note: None)
    if points < 2:
        raise ValueError(f"points is {points}; a landscape needs 2 or more an axis.")
    if samples != "all" and (not isinstance(samples, int) or samples < FOLDS):
        raise ValueError(f"samples is {samples!r}; give {FOLDS} or more, which a standard error needs, or 'all'.")
    require_workers(workers)
    for name in figures or ():
        gallery.require(name)
    require_runs(runs)
    groups(runs)
    _require_writable(path)
    failures = Failed() if failed is None else failed
    most = None if samples == "all" else samples
    start = Start.read(address, points, most, what_if, figures is None)
    shown = content(runs, start, most, step, failures, figures or (), workers, task)
    if len(text := page(shown).encode()) > LARGEST:
        raise ValueError(f"{path} has {len(text) / 1e6:.1f} MB, {LARGEST / 1e6:g} at most; {_heavy(shown)}.")
    write_bytes(path, text)
    if failed is None:
        for name, reason in failures.reasons.items():
            warnings.warn(f"{path}: {name} {reason}", stacklevel=2)
    return path


def _heavy(content: dict[str, Any]) -> str:
    """What makes a page heavy, the heaviest first."""
    named = content.get("drawn", {}).get("named", [])
    parts = {f"--figures {item.name}": len(item.picture + item.data) for item in named}
    parts |= {f"run {run['label']}": len(zipped(json.dumps(run).encode())) for run in content["scene"]["runs"]}
    ordered = sorted(parts, key=lambda name: -parts[name])
    return "leave out some of " + ", ".join(f"{name} ({parts[name] / 1e6:.1f} MB)" for name in ordered[:MOST])


def page(content: dict[str, Any]) -> str:
    """The page as text, from the values of the template."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=lambda value: console.printable(value) if type(value) is str else value,  # names from elsewhere
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    read = lambda name: (TEMPLATES / f"report.{name}").read_text(encoding="utf-8")  # noqa: E731
    front = front_end()
    names = [name for name in ("scene", "figures") if name in content]
    parts: dict[str, str] = {name: json.dumps(content[name], separators=(",", ":"), allow_nan=False) for name in names}
    parts["stage"] = front["stage_js"]
    if "figures" in content:
        parts |= {"plotly": get_plotlyjs(), "page": "\n".join(map(read, ("looks.js", "csv.js", "js")))}
    texts = {"css": read("css"), "unpack": read("unpack.js"), "stage_css": front["stage_css"]}
    packed = {name: zipped(text.encode()) for name, text in parts.items()}
    return environment.get_template("report.html.j2").render(**content, **texts, packed=packed)


def _require_writable(path: Path) -> None:
    """Raise ValueError if no file can be made next to `path`; none is left there."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file to write, such as {path / 'report.html'}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as reason:
        problem = reason.strerror or reason
        raise ValueError(f"cannot write {path}: {problem}; give a file in a folder that can be written.") from None
