"""Whatever writes files beside training: a sweep, an analysis, a report, two imports, a recorder; each can go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tiny
import torch
from torture.compared import difference
from torture.result_digest import values_digest

from drift.analyses.landscapes.planes import global_line
from drift.importers.bare import record_checkpoints
from drift.importers.checkpoints import import_checkpoints
from drift.record.recorder import Recorder
from drift.runs.run import Run
from drift.simulation.settings_grid import train_grid
from drift.simulation.verify import verify
from figures.page.report import report

SEEDS = (5, 6)
SOURCE = "source"


@dataclass(frozen=True)
class Program:
    """A program that writes below a folder, in which `prepared` laid what it reads.

    Args:
        name: Its name.
        work: Does all of it, or what is left of it.
        found: Text that names all that it wrote.
        alone: Whether it writes in this process alone.
        long: Whether it takes seconds, for which it is left out of the short form of the suite.
    """

    name: str
    work: Callable[[Path], None]
    found: Callable[[Path], str]
    alone: bool = True
    long: bool = False

    def wrong(self, place: Path) -> str:
        """What is wrong with what a stopped program left in a folder; "" if nothing is."""
        for folder in (path.parent for path in place.glob("*/*/run.json")):
            if any((folder / "rounds").glob("*.safetensors")) and (problems := verify(folder)):
                return f"{problems[0]}"
        pages = [path for path in (place / "pages").glob("*") if not path.read_text().rstrip().endswith("</html>")]
        return f"{pages[0].name} was left" if pages else ""


def prepared(place: Path) -> Path:
    """The folder with a whole run, and its models as checkpoints of another program."""
    run = tiny.trained(place / SOURCE, "rounds=4")
    for index in run.rounds():
        record, folder = run.round(index), place / "theirs" / f"round_{index:03d}"
        folder.mkdir(parents=True)
        models = {"global": record.kept("end")} | ({"start": record.kept("start")} if index == 0 else {})
        models |= {f"client_{i}": row for i, row in zip(record.ids.tolist(), record.kept("clients"), strict=True)}
        for name, theta in models.items():
            torch.save(
                {key: value.clone() for key, value in run.task.layout.named(theta).items()}, folder / f"{name}.pt"
            )
    (place / "theirs" / "sizes.json").write_text(json.dumps({str(i): len(part) for i, part in enumerate(run.parts)}))
    return place


def reset(place: Path) -> None:
    """Remove all that a program wrote."""
    for path in (place / "out", place / "pages", _source(place).folder / "results"):
        shutil.rmtree(path, ignore_errors=True)


def _source(place: Path) -> Run:
    (folder,) = (path.parent for path in (place / SOURCE).glob("*/run.json"))
    return Run(folder)


def _sweep(place: Path) -> None:
    experiments = [tiny.experiment("rounds=4", f"seed={seed}") for seed in SEEDS]
    planned = train_grid(experiments, runs=place / "out", workers=2)
    if reasons := [entry.reason for entry in planned if entry.state == "failed"]:
        raise OSError(reasons[0])


def _swept(place: Path) -> str:
    one, two = _source(place), place / "out" / tiny.experiment("rounds=4", "seed=5").slug
    return difference(Run(two), one) or str(sorted(path.parent.name for path in (place / "out").glob("*/run.json")))


def _analyse(place: Path) -> None:
    _source(place).cached(global_line, points=21)


def _analysed(place: Path) -> str:
    return values_digest(_source(place).cached(global_line, points=21))


def _report(place: Path) -> None:
    report([_source(place)], place / "pages" / "report.html", points=3, samples=30)


def _reported(place: Path) -> str:
    return str([path.name for path in (place / "pages").iterdir()])


def _import(place: Path) -> None:
    known = ("task.dataset_options={samples=60}", "seed=5")
    import_checkpoints(place / "theirs", *known, model="linear", dataset="blobs", runs=place / "out")


def _import_bare(place: Path) -> None:
    record_checkpoints(place / "theirs", runs=place / "out")


def _imported(place: Path) -> str:
    (folder,) = (path.parent for path in (place / "out").glob("*/run.json"))
    run = Run(folder)
    return f"{run.name} {run.rounds()} {run.head}"


def _record(place: Path) -> None:
    recorder = Recorder(place / "out" / "recorded")
    model = recorder.model() if recorder.next else {"w": torch.zeros(4)}
    for number in range(recorder.next, 8):
        end = {"w": torch.as_tensor(model["w"]) + number + 1}
        recorder.round(start=model, clients={0: (end, 2), 1: (model, 1)}, end=end, metrics={"loss": 1.0 / (number + 1)})
        model = end


PROGRAMS = (
    Program("analyse", _analyse, _analysed),
    Program("report", _report, _reported, long=True),
    Program("import", _import, _imported),
    Program("import without a model", _import_bare, _imported),
    Program("recorder", _record, _imported),
    Program("sweep", _sweep, _swept, alone=False),
)
