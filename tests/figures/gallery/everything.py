"""Writes what leaves a folder of runs by every kind of writer: `python everything.py RUNS OUT FIGURE ..`."""

from __future__ import annotations

import sys
from pathlib import Path

from gallery_runs import suited

from drift.analyses.rounds import export_table
from drift.runs import export_model
from drift.runs.run import open as open_run
from figures import cli
from figures.commands._draw_files import draw_all
from figures.commands._tiny_options import options
from figures.page.report import report
from landscape.results.export import FORMS


def everything(folder: Path, out: Path, names: list[str]) -> None:
    """Tables, models, surfaces, a report, and the named figures that the runs allow."""
    folders = sorted(path.parent for path in folder.glob("*/run.json"))
    runs, first = [open_run(one) for one in folders], str(folders[0])
    lines = [
        ["export", first, "-o", str(out / f"run{suffix}")]
        for suffix in (*export_table.SUFFIXES, *export_model.SUFFIXES)
    ]
    surface = ["analyse", "round_plane", first, "--set", "points=3", "-o"]
    lines += [[*surface, str(out / f"plane.{form}")] for form in FORMS if form != "tidy"]
    lines.append([*surface, str(out / "plane_tidy.csv"), "--tidy"])
    for line in lines:
        cli.app(line, exit_on_error=False)
    outcomes = draw_all({name: (suited(name, runs), options(name)) for name in names}, out)
    (out / "left_out.txt").write_text("".join(f"{one}\n" for one in outcomes.values() if isinstance(one, str)))
    report(runs[:1], out / "report.html", points=2)


if __name__ == "__main__":
    everything(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
