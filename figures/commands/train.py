"""fedscape train, fedscape compare."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from figures.commands.options import (
    Cluster,
    Data,
    ExperimentName,
    Integer,
    Json,
    Memory,
    Runs,
    Settings,
    Workers,
    experiment_names,
    method_names,
    several,
)
from figures.commands.requirements import require_folder, require_names
from figures.texts import console

if TYPE_CHECKING:
    from drift.runs.run import Run
    from drift.simulation.compare import RunProgress
    from drift.simulation.crossed_settings import RefusedSettings
    from drift.store.round_record import Round

COLUMNS = {
    name: name
    for name in [
        "method",
        "dataset",
        "partition",
        "seeds",
        "done",
        "rounds",
        "accuracy",
        "accuracy_std",
        "best",
        "loss",
        "seconds",
    ]
}
COLUMNS |= {"accuracy": "last-10 accuracy", "accuracy_std": "std over seeds", "loss": "last-10 loss"}


def train(
    experiment: Annotated[str, Parameter(completer=experiment_names)],
    /,
    *,
    set: Settings = None,
    runs: Runs = Path("runs"),
    data: Data = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Train one run; rounds on disk are not trained again.

    If you stop it, the same command resumes it. With --workers or --cluster the clients of a round are trained in
    parallel. The result has the same bits, and you may resume a run with another number of processes.

    Example: `fedscape train digits-shards2 --set method=fedprox rounds=20`

    Args:
        experiment: Name of a preset (fedscape list experiments), path of a TOML file, or folder of a run.
    """
    require_names(experiment, set)
    from drift.config.load import read
    from drift.plugins.trust import names_in
    from drift.runs.context import Context
    from drift.runs.run import Run
    from drift.simulation.simulate import simulate
    from drift.store.memory_budget import limited

    spec = read(experiment, *(set or ()))
    run = Run(runs / spec.slug, Context(data))
    before, total = run.committed, spec.rounds
    if before < total:
        require_folder(run.folder)
    state = {0: "", total: "all on disk"}.get(before, f"{before} on disk, going on")
    console.say(f"{run.name}: {total} rounds{f', {state}' if state else ''}")
    with limited(memory), naming_whole_rounds([run]), console.progress("training", total) as step:

        def report(record: Round) -> None:
            step(record.index + 1, "")
            console.say(_line(record, total))

        step(before, "")
        simulate(spec, runs=runs, data=data, progress=report, workers=workers, cluster=cluster)
    last = run.round(-1)
    if json:
        console.put_json({"run": run.name, "folder": str(run.folder), "rounds": total, **last.metrics})
        return
    console.put(str(run.folder))
    allow = "".join(f" --trust {name}" for name in names_in(spec.resolved()))
    console.say(f"see it:  fedscape show {run.folder}{allow}\n         fedscape figures gallery {run.folder}{allow}")


def compare(
    experiment: ExperimentName,
    /,
    *,
    methods: Annotated[list[str], several("--methods", "NAME", completer=method_names)],
    seeds: Annotated[list[Integer], several("--seeds", "INT")],
    set: Settings = None,
    runs: Runs = Path("runs"),
    data: Data = None,
    workers: Workers = 1,
    memory: Memory = None,
    json: Json = False,
) -> int:
    """Train several methods and seeds of one experiment and tabulate them.

    For one seed, all methods have the same initial model, partition, cohorts and batches; runs on disk are not trained
    again. If a method refuses the setting, its reason is shown, and the others train. Exit code 2 if one was refused or
    stopped early.

    Example: `fedscape compare digits-shards2 --methods fedavg fedprox --seeds 0 1 2`

    Args:
        methods: Methods to train, one or more (fedscape list methods).
        seeds: Seeds of each method, one or more, whole numbers from 0.
    """
    require_names(experiment, set, [f"method={method}" for method in methods])
    from drift.runs.context import Context
    from drift.runs.run import Run
    from drift.simulation.compare import summary, train_all
    from drift.simulation.crossed_settings import cross_settings
    from drift.store.memory_budget import limited

    refused: list[RefusedSettings] = []
    experiments = cross_settings(experiment, {"method": methods, "seed": seeds}, *(set or ()), hear=refused.append)
    planned = [Run(runs / spec.slug, Context(data)) for spec in experiments]
    if any(run.committed < spec.rounds for run, spec in zip(planned, experiments, strict=True)):
        require_folder(runs)
    with (
        limited(memory),
        naming_whole_rounds(planned),
        progress_of_all(len(experiments), sum(spec.rounds for spec in experiments)) as report,
    ):
        trained = train_all(experiments, runs=runs, data=data, workers=workers, progress=report, hear=refused.append)
    left_out = _left_out(refused)
    console.table([*summary(trained), *(left_out if json else [])], COLUMNS, json=json)
    for row in left_out:
        seeds_of = f"seed{'s' if len(row['seeds']) > 1 else ''} {', '.join(map(str, row['seeds']))}"
        console.say(f"{row['method']} is not trained, {seeds_of}: {row['refused']}")
    console.say(f"runs: {runs}")
    return 2 if refused or any(run.committed < run.experiment.rounds for run in trained) else 0


def _left_out(refused: list[RefusedSettings]) -> list[dict[str, Any]]:
    """One row per method and reason, with all its seeds."""
    rows: dict[tuple[str, str], list[int]] = {}
    for entry in refused:
        rows.setdefault((entry.settings["method"], entry.reason), []).append(entry.settings["seed"])
    return [{"method": method, "seeds": seeds, "refused": reason} for (method, reason), seeds in rows.items()]


@contextmanager
def progress_of_all(number: int, total: int) -> Iterator[RunProgress]:
    """A report for `drift.simulation.compare`: one bar over the rounds of all runs, one line per finished run."""
    done: dict[str, int] = {}
    with console.progress(f"training {number} runs", total) as step:

        def report(name: str, rounds: int, rounds_in_all: int) -> None:
            if rounds == rounds_in_all and done.get(name) != rounds_in_all:
                finished = sum(1 for rounds_done in done.values() if rounds_done == rounds_in_all) + 1
                console.say(f"{name}: {rounds_in_all} rounds ({finished} of {number} runs)")
            done[name] = rounds
            step(sum(done.values()), f"{name.partition('-')[0]} {rounds}/{rounds_in_all}")

        yield report


@contextmanager
def naming_whole_rounds(runs: list[Run]) -> Iterator[None]:
    """Turns a full disk into a line that names the last whole rounds and how to go on."""
    try:
        yield
    except OSError as reason:
        if reason.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        existing = next(parent for parent in [runs[0].folder, *runs[0].folder.parents] if parent.exists())
        complete = "; ".join(f"{run.name} is whole up to round {run.committed - 1}" for run in runs if run.committed)
        raise OSError(
            f"the disk is full ({shutil.disk_usage(existing).free / 1e6:.0f} MB free at {existing})"
            f"{f'; {reason.filename} could not be written' if reason.filename else ''}. "
            f"{complete or 'No round is whole yet'}. Free space or keep less (--set keep.clients='every 10, last 3' is "
            "another run), then repeat the command: it resumes there."
        ) from reason


def _line(record: Round, total: int) -> str:
    words = [f"round {record.index} ({record.index + 1} of {total})"]
    for name, unit in (("accuracy", ""), ("loss", " nats"), ("seconds", " s")):
        if name in record.metrics:
            words.append(f"{name} {record.metrics[name]:.4g}{unit}")
    if "excluded" in record.extras:
        words.append(f"excluded as non-finite: clients {record.extras['excluded'].tolist()}")
    return "  ".join(words)
