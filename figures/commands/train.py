"""fedscape train, fedscape compare."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from figures import console
from figures.commands.options import Cluster, Data, Json, Runs, Settings, Workers, require_folder

if TYPE_CHECKING:
    from drift.rounds import Round
    from drift.run import Run

COLUMNS = {
    "method": "method",
    "dataset": "dataset",
    "partition": "partition",
    "seeds": "seeds",
    "done": "done",
    "rounds": "rounds",
    "accuracy": "last-10 accuracy",
    "accuracy_std": "std over seeds",
    "best": "best",
    "loss": "last-10 loss",
    "seconds": "seconds",
}


def train(
    experiment: str,
    /,
    *,
    set: Settings = None,
    runs: Runs = Path("runs"),
    data: Data = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    json: Json = False,
) -> None:
    """Train one run; what is on disk already is not trained again.

    Stopped at any moment, the same command goes on where it was. Workers, or those of a cluster, share the clients of
    a round; they change no bit and may be others when a run goes on.

    Args:
        experiment: Name of a preset (fedscape list experiments) or path of a TOML file.
    """
    from drift.read import read
    from drift.run import Run
    from drift.simulate import simulate

    wanted = read(experiment, *(set or ()))
    run = Run(runs / wanted.slug, data)
    before, total = run.committed, wanted.rounds
    if before < total:
        require_folder(run.folder)
    known = {0: "", total: "all on disk"}.get(before, f"{before} on disk, going on")
    console.say(f"{run.name}: {total} rounds{f', {known}' if known else ''}")
    with naming_whole_rounds([run]), console.progress("training", total) as step:

        def report(record: Round) -> None:
            step(record.index + 1, "")
            console.say(_line(record, total))

        step(before, "")
        simulate(wanted, runs=runs, data=data, progress=report, workers=workers, cluster=cluster)
    last = run.round(-1)
    if json:
        console.put_json({"run": run.name, "folder": str(run.folder), "rounds": total, **last.metrics})
        return
    console.put(str(run.folder))
    own = f" --trust {wanted.task.model}" if ":" in wanted.task.model else ""
    console.say(f"see it:  fedscape show {run.folder}\n         fedscape figures gallery {run.folder}{own}")


def compare(
    experiment: str,
    /,
    *,
    methods: Annotated[list[str], Parameter(consume_multiple=True, negative="", help="Methods to train.")],
    seeds: Annotated[list[int], Parameter(consume_multiple=True, negative="", help="Seeds of each method.")],
    set: Settings = None,
    runs: Runs = Path("runs"),
    data: Data = None,
    workers: Workers = 1,
    json: Json = False,
) -> int:
    """Train several methods and seeds of one experiment and tabulate them; exit code 2 if one stopped early.

    All see the same initial model, partition, cohorts and batches for a seed; runs on disk are not trained again.

    Args:
        experiment: Name of a preset (fedscape list experiments) or path of a TOML file.
    """
    from drift.compare import summary, train_all
    from drift.read import read
    from drift.run import Run

    wanted = [read(experiment, *(set or ()), method=method, seed=seed) for method in methods for seed in seeds]
    planned = [Run(runs / one.slug, data) for one in wanted]
    if any(run.committed < one.rounds for run, one in zip(planned, wanted, strict=True)):
        require_folder(runs)
    with naming_whole_rounds(planned), progress_of_all(len(wanted), sum(one.rounds for one in wanted)) as report:
        trained = train_all(wanted, runs=runs, data=data, workers=workers, progress=report)
    console.table(summary(trained), COLUMNS, json=json)
    console.say(f"runs: {runs}")
    return 2 if any(run.committed < run.experiment.rounds for run in trained) else 0


@contextmanager
def progress_of_all(number: int, total: int) -> Iterator[Report]:
    """A report for `drift.compare`: one bar over the rounds of all runs, one line a finished run."""
    done: dict[str, int] = {}
    with console.progress(f"training {number} runs", total) as step:

        def report(name: str, rounds: int, whole: int) -> None:
            if rounds == whole and done.get(name) != whole:
                finished = sum(1 for one in done if done[one] == whole) + 1
                console.say(f"{name}: {whole} rounds ({finished} of {number} runs)")
            done[name] = rounds
            step(sum(done.values()), f"{name.partition('-')[0]} {rounds}/{whole}")

        yield report


@contextmanager
def naming_whole_rounds(runs: list[Run]) -> Iterator[None]:
    """Turns a full disk into a line that names the last whole rounds and how to go on."""
    try:
        yield
    except OSError as reason:
        if reason.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        place = next(parent for parent in [runs[0].folder, *runs[0].folder.parents] if parent.exists())
        held = "; ".join(f"{run.name} is whole up to round {run.committed - 1}" for run in runs if run.committed)
        raise OSError(
            f"the disk is full ({shutil.disk_usage(place).free / 1e6:.0f} MB free at {place}). "
            f"{held or 'No round is whole yet'}. Free space or keep less (--set keep.clients='every 10, last 3' is "
            "another run), then give the same command again: it goes on from there."
        ) from reason


def _line(record: Round, total: int) -> str:
    parts = [f"round {record.index} ({record.index + 1} of {total})"]
    for name, unit in (("accuracy", ""), ("loss", " nats"), ("seconds", " s")):
        if name in record.metrics:
            parts.append(f"{name} {record.metrics[name]:.4g}{unit}")
    if "excluded" in record.extras:
        parts.append(f"excluded as non-finite: clients {record.extras['excluded'].tolist()}")
    return "  ".join(parts)


if TYPE_CHECKING:
    from drift.compare import Report
