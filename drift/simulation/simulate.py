"""The round loop: train, record and commit rounds until the run is complete."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from drift.config.experiment import Experiment
from drift.config.initial_model import store_initial_model
from drift.config.load import read
from drift.config.method_values import Setting
from drift.engines import client_pool, require_one_pool
from drift.engines.choice import Choice, choose_device, choose_engine
from drift.parallel.threads import torch_threads
from drift.plugins import trust
from drift.record.early_warning import Stop, StopRule
from drift.runs.context import Context
from drift.runs.run import Run
from drift.runs.watched_rounds import watched_numbers
from drift.simulation.background_writer import Writer
from drift.simulation.description import describe_stop, described, require_unchanged, write_description
from drift.simulation.disk_space import client_numbers, require_space
from drift.simulation.one_round import train_round
from drift.store import chain, files, links, locks, numpy_files, paths, round_headers
from drift.store.round_record import Round
from drift.training.data import Data, build_task, read_data
from drift.training.server import Server, first_cohort
from landscape.plugins.outside import require_lasting
from landscape.results import atomic_write
from landscape.sweep import memory

RoundProgress = Callable[[Round], None]
"""Called with the record of every round that was written."""


class Diverged(RuntimeError):
    """Every client of a round, or the new global model, is non-finite; the round's record is kept."""


def simulate(
    source: str | Path | Experiment,
    *overrides: str,
    runs: str | Path = "runs",
    data: str | Path | None = None,
    progress: RoundProgress | None = None,
    workers: int = 1,
    cluster: str | None = None,
    until: int | None = None,
    stop: Stop | str | None = None,
    **options: Any,
) -> Run:
    """A trained run; what is on disk already is not trained again.

        run = drift.simulate("digits-shards2", method="fedavg", rounds=5)
        run.round(-1).end  # the last global model

    The run lies in `runs/<slug>-<hash>`. Stopped at any moment and called again, it resumes and gives the
    same bits as if it had never been stopped.

    Args:
        source: What to train: a preset's name, a TOML file or an experiment.
        overrides, options: Changed settings, as in `drift.read`: "method.window=5" or method="ima".
        runs: Folder of all runs.
        data: Folder of the datasets.
        progress: Called after every round.
        workers: Processes that share the clients of a round; the bits are those of one.
        cluster: Address of a Dask scheduler, such as tcp://host:8786, whose workers share them in place of these.
        until: Stop after this many rounds; the same call without it resumes. None: train all rounds.
        stop: "early warning", or a function of (number of a round, its numbers), called after each recorded round,
            first of those on disk. A text that it returns ends the training at once, is warned of and stands in
            `run.about["stopped"]`. The same call trains no further; without `stop` it resumes.

    Raises:
        Diverged: If no finite model is left.
        OSError: If the run would not fit the disk, or the disk is full.
        LookupError: If a file of the run is damaged or of another run, or a round before the commit point is missing.
        RuntimeError: If another process trains the same run.
    """
    experiment = read(source, *overrides, **options)
    require_one_pool(workers, cluster)
    for name in trust.names_in(experiment.resolved()):
        require_lasting(name)
    folder = Path(runs) / experiment.slug
    numpy_files.require_text(folder.absolute())
    run = Run(folder, Context(Path(data) if data is not None else None))
    done, reason = run.committed, ""
    rule = StopRule(stop, experiment.rounds, "loss", folder)
    about = described(folder, experiment)
    round_headers.complete_rounds(folder, done, gaps=False)
    if done:
        (known := chain.read(folder)).require(*known.wrong)
    last = experiment.rounds if until is None else min(until, experiment.rounds)
    if done >= last and about:
        return run
    if rule.reason:
        with locks.locked(folder):
            describe_stop(folder, rule.reason)
        return run
    with torch_threads(experiment.threads):
        content = read_data(experiment, run.context.data)
        task = build_task(experiment, content, folder)
        size = task.layout.size + task.layout.buffer_size
        require_space(folder, experiment, size, done, carried=client_numbers(experiment, task))
        setting = Setting(task, experiment, content.samples.get("proxy"))
        fresh = Server.fresh(setting)  # a method that does not suit the model raises before anything is written
        asked = _device(about, setting, content, fresh, alone=workers == 1 and cluster is None)  # so does a device
        with locks.locked(folder):
            atomic_write.clear(folder, folder / "rounds", folder / paths.CLIENTS)
            store_initial_model(folder, experiment.init)
            resumed = (folder / paths.STATE).exists()
            server = Server.from_stored(run.stored_state()) if resumed else fresh
            about = described(folder, experiment)  # another process may have begun it
            device = (
                _device(about, setting, content, server, alone=workers == 1 and cluster is None) if about else asked
            )
            setting = replace(setting, device=torch.device(device.name))
            engine = _engine(about, setting, content, server)
            if about:
                require_unchanged(about, experiment, content)
            else:
                write_description(folder, experiment, content, task.layout.parameters, engine, device)
            setting = replace(setting, engine=engine.name)
            describe_stop(folder, "")
            with client_pool(setting, content, folder, workers=workers, cluster=cluster) as pool:
                setting = replace(setting, crew=pool)
                with closing(rounds(setting, content, server, folder, last, immediate=stop is not None)) as records:
                    for record in records:
                        if progress is not None:
                            progress(record)
                        if reason := rule.judge(record.index, watched_numbers(run, record)):
                            break
            if reason and record.index + 1 < experiment.rounds:
                describe_stop(folder, reason)
    return Run(folder, run.context)


def rounds(
    setting: Setting, data: Data, server: Server, folder: Path, last: int, *, immediate: bool = False
) -> Generator[Round]:
    """The remaining rounds of a run before round `last`, each written to `folder` before it is yielded.

    A round is written while the next one trains, so it may be yielded after that one was trained; not if `immediate`.
    """
    experiment, path = setting.experiment, folder / "run.json"
    run = links.identity(files.read_json(path)) if path.exists() else ""
    before = chain.read(folder).link_before(server.next)
    with Writer(folder, experiment.keep, experiment.rounds, run, before) as writer:
        while server.next < last:
            begin = time.perf_counter()
            with memory.explain_oom(
                f"round {server.next}", "lower local.batch or clients.per_round, or stop other programs"
            ):
                trained, server = train_round(setting, data, server, paths.round_path(folder, server.next))
            record = trained.record
            record.metrics["seconds"] = time.perf_counter() - begin
            finite = bool(torch.isfinite(server.theta).all())
            writer.put(trained, server if finite else None)
            if not finite:
                writer.flush()
                yield from writer.committed()
                raise Diverged(
                    f"round {record.index}: no finite model is left (clients excluded: "
                    f"{record.extras.get('excluded', torch.zeros(0)).tolist()}); its record is kept in {folder}. "
                    "Lower local.lr or check the data."
                )
            if immediate:
                writer.flush()
            yield from writer.committed(_PATIENCE * record.metrics["seconds"])
        writer.flush()
        yield from writer.committed()


_PATIENCE = 0.002
"""Fraction of a round's time to wait for its file, so that long rounds are reported when they end."""


def _engine(about: Mapping[str, Any], setting: Setting, data: Data, server: Server) -> Choice:
    """The engine that a begun run has, else the one that its experiment asks for."""
    if about:
        return Choice(about["engine"], about.get("engine_reason", ""))
    asked = setting.experiment.engine
    clients = [] if asked == "serial" else first_cohort(setting, data, server)
    return choose_engine(asked, setting.experiment.method, clients)


def _device(about: Mapping[str, Any], setting: Setting, data: Data, server: Server, *, alone: bool) -> Choice:
    """The device on which a run was begun, else the one that its experiment asks for.

    Raises:
        ValueError: If it is not there, or other processes are to share the clients, which train on CPUs.
    """
    asked = setting.experiment.device
    if about:
        choice = Choice(about.get("device", "cpu"), about.get("device_reason", ""))
        if choice.name != "cpu" and not (alone and torch.cuda.is_available()):
            raise ValueError(
                f"{setting.experiment.slug} was begun on a GPU and would not keep its bits here; continue on a machine "
                "with a GPU, in one process, or train another run with --set device=cpu."
            )
        return choice
    if asked == "cuda" and not alone:
        raise ValueError("device is cuda, and --workers and --cluster train on CPUs; leave one of them out.")
    if asked == "cpu" or (asked == "auto" and not torch.cuda.is_available()):
        return choose_device(asked, setting.task, setting.experiment.method, [])
    if not alone:
        return Choice("cpu", "other processes share the clients")
    return choose_device(asked, setting.task, setting.experiment.method, first_cohort(setting, data, server))
