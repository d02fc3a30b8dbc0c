"""The round loop: broadcast, local training, aggregation, evaluation, record."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift import store
from drift.client import Client, Update
from drift.engines import serial
from drift.experiment import Experiment
from drift.gram import gram
from drift.keys import cohort
from drift.method import Cohort, Setting, State
from drift.read import read
from drift.rounds import Round
from drift.run import Run
from drift.setting import Data, build_task, read_data
from landscape.affine import evaluate

Progress = Callable[[Round], None]
"""Called with the record of every round that was written."""


class Diverged(RuntimeError):
    """Every client of a round, or the new global model, is non-finite; the round's record is kept."""


@dataclass(frozen=True)
class Server:
    """What a run carries from round to round.

    Args:
        theta, buffers: Global model (d,) and floating buffers (b,).
        previous: Mean client update of the last round, client minus start, shape (d,).
        state: The method's server state.
        clients: What each client keeps, by client id.
        next: Index of the next round.
    """

    theta: Tensor
    buffers: Tensor
    previous: Tensor
    state: State
    clients: dict[int, State]
    next: int = 0

    def tensors(self) -> State:
        """Everything as named tensors."""
        flat = {"theta": self.theta, "buffers": self.buffers, "previous": self.previous}
        flat |= {f"server.{name}": value for name, value in self.state.items()}
        for client, state in self.clients.items():
            flat |= {f"client.{client}.{name}": value for name, value in state.items()}
        return flat

    @classmethod
    def of(cls, tensors: State, next: int) -> Server:
        """Inverse of `tensors`."""
        state = {name.removeprefix("server."): value for name, value in tensors.items() if name.startswith("server.")}
        clients: dict[int, State] = {}
        for name, value in tensors.items():
            if name.startswith("client."):
                _, client, rest = name.split(".", 2)
                clients.setdefault(int(client), {})[rest] = value
        return cls(tensors["theta"], tensors["buffers"], tensors["previous"], state, clients, next)


def simulate(
    source: str | Path | Experiment,
    *overrides: str,
    runs: str | Path = "runs",
    data: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Run:
    """A trained run; what is on disk already is not trained again.

    The run lies in `runs/<slug>-<hash>`. Stopped at any moment and called again, it goes on and gives the
    same bits as if it had never been stopped.

    Args:
        source: What to train: a preset's name, a TOML file or an experiment.
        overrides, options: Changed settings, as in `drift.read`: "method.window=5" or method="ima".
        runs: Folder of all runs.
        data: Folder of the datasets.
        progress: Called after every round.

    Raises:
        Diverged: If nothing finite is left to go on with.
        OSError: If the run would not fit the disk, or the disk is full.
        RuntimeError: If another process trains the same run.
    """
    experiment = read(source, *overrides, **options)
    folder = Path(runs) / experiment.slug
    run = Run(folder, Path(data) if data is not None else None)
    if run.committed >= experiment.rounds:
        return run
    threads = torch.get_num_threads()
    torch.set_num_threads(experiment.threads)
    try:
        content = read_data(experiment, run.data)
        task = build_task(experiment, content)
        size = task.layout.size + task.layout.buffer_size
        with store.locked(folder):
            store.require_space(folder, experiment, size, run.committed)
            _describe(folder, experiment, content, task.layout.parameters)
            setting = Setting(task, experiment, content.samples.get("proxy"))
            for record in rounds(setting, content, _resume(run, setting), folder):
                if progress is not None:
                    progress(record)
    finally:
        torch.set_num_threads(threads)
    return run


def rounds(setting: Setting, data: Data, server: Server, folder: Path) -> Iterator[Round]:
    """The remaining rounds of a run, each written to `folder` before it is yielded."""
    experiment = setting.experiment
    while server.next < experiment.rounds:
        begun = time.perf_counter()
        record, server = play(setting, data, server)
        record.metrics["seconds"] = time.perf_counter() - begun
        store.write_round(folder, record, experiment.keep, experiment.rounds)
        if not bool(torch.isfinite(server.theta).all()):
            raise Diverged(
                f"round {record.index}: no finite model is left (clients excluded: "
                f"{record.extras.get('excluded', torch.zeros(0)).tolist()}); its record is kept in {folder}. "
                "Lower local.lr or check the data."
            )
        store.write_tensors(folder / "state.safetensors", server.tensors(), {"next": server.next})
        yield record


def play(setting: Setting, data: Data, server: Server) -> tuple[Round, Server]:
    """One round: its record, and the server after it."""
    experiment, method, index = setting.experiment, setting.experiment.method, server.next
    start = method.broadcast(server.state, server.theta, index)
    drawn = cohort(experiment.seed, index, experiment.clients.number, experiment.clients.per_round)
    everyone = np.arange(experiment.clients.number) if experiment.clients.train_all else drawn
    updates = dict(zip(everyone.tolist(), _train(setting, data, server, start, everyone), strict=True))
    kept = {client: update.state for client, update in updates.items() if update.state}
    after = replace(server, clients={**server.clients, **kept}, next=index + 1)

    finite = [client for client in drawn.tolist() if bool(torch.isfinite(updates[client].theta).all())]
    excluded = torch.tensor(sorted(set(drawn.tolist()) - set(finite)), dtype=torch.int64)
    if not finite:
        nothing = torch.full_like(start, torch.nan)
        record = _empty(index, start, server.buffers, excluded)
        return record, replace(after, theta=nothing)

    group = _gather(experiment, data, server, index, start, finite, updates)
    outcome = method.aggregate(setting, server.state, group)
    client_buffers = torch.stack([updates[client].buffers for client in finite])
    averaged = group.weights.to(server.buffers) @ client_buffers
    buffers = method.buffers(setting, outcome.end, averaged) if len(averaged) else averaged
    momentum = method.momentum(server.state)
    expected = server.previous if momentum is None else momentum
    deltas = group.deltas
    record = Round(
        index=index,
        ids=group.ids,
        sizes=group.sizes,
        weights=outcome.weights,
        gram=gram(start, expected, outcome.end - start, deltas),
        metrics=_metrics(setting, outcome.end, buffers, group, [updates[client].loss for client in finite]),
        start=start,
        end=outcome.end,
        clients=group.clients,
        start_buffers=server.buffers,
        end_buffers=buffers,
        client_buffers=client_buffers,
        extras={**outcome.extras, **({"excluded": excluded} if len(excluded) else {})},
    )
    previous = group.weights.to(deltas) @ deltas
    return record, replace(after, theta=outcome.end, buffers=buffers, previous=previous, state=outcome.state)


def _train(setting: Setting, data: Data, server: Server, start: Tensor, ids: np.ndarray) -> list[Update]:
    experiment, method = setting.experiment, setting.experiment.method
    local = method.schedule(experiment.local, server.next, experiment.rounds)
    flat, train = setting.task.flat(start), setting.task.samples["train"]
    jobs = (
        Client(
            id=client,
            index=server.next,
            seed=experiment.seed,
            samples=train[torch.from_numpy(data.parts[client])],
            start=start,
            buffers=server.buffers,
            local=local,
            flat=flat,
            state=server.clients.get(client, {}),
            server=server.state,
        )
        for client in ids.tolist()
    )
    return serial.train(method, jobs)


def _gather(
    experiment: Experiment,
    data: Data,
    server: Server,
    index: int,
    start: Tensor,
    ids: list[int],
    updates: dict[int, Update],
) -> Cohort:
    sizes = torch.from_numpy(data.sizes()[ids])
    weights = sizes.double() if experiment.clients.weighting == "samples" else (sizes > 0).double()
    if not bool(weights.any()):  # a cohort without samples leaves the model as it is
        weights = torch.ones(len(ids), dtype=torch.float64)
    found = [updates[client] for client in ids]
    return Cohort(
        index=index,
        theta=server.theta,
        start=start,
        ids=torch.tensor(ids, dtype=torch.int64),
        sizes=sizes,
        weights=weights / weights.sum(),
        clients=torch.stack([update.theta for update in found]),
        steps=torch.tensor([update.steps for update in found], dtype=torch.int64),
        reports={name: torch.stack([update.report[name] for update in found]) for name in found[0].report},
    )


def _metrics(setting: Setting, end: Tensor, buffers: Tensor, group: Cohort, losses: list[float]) -> dict[str, float]:
    local = float(group.weights @ torch.nan_to_num(torch.tensor(losses, dtype=torch.float64)))
    found = {"local_loss": local}
    experiment = setting.experiment
    last = group.index == experiment.rounds - 1
    if (last or group.index % experiment.evaluate_every == 0) and bool(torch.isfinite(end).all()):
        held = buffers[None] if len(buffers) else None
        test = evaluate(setting.task, end[None], torch.ones(1, 1).to(end), split="test", buffers=held)
        found |= {name: float(value) for name, value in test.items()}
        found["accuracy"] = 1 - found["error"]
    return found


def _empty(index: int, start: Tensor, buffers: Tensor, excluded: Tensor) -> Round:
    none = torch.zeros(0, dtype=torch.int64)
    return Round(
        index=index,
        ids=none,
        sizes=none,
        weights=torch.zeros(0, dtype=torch.float64),
        gram=gram(start, torch.zeros_like(start), torch.zeros_like(start), torch.zeros(0, len(start))),
        start=start,
        end=start.clone(),
        clients=torch.zeros(0, len(start)),
        start_buffers=buffers,
        end_buffers=buffers,
        client_buffers=torch.zeros(0, len(buffers)),
        extras={"excluded": excluded},
    )


def _resume(run: Run, setting: Setting) -> Server:
    """The server as it was left; a fresh one where nothing was trained yet."""
    if (run.folder / "state.safetensors").exists():
        return Server.of(*run.state())
    theta, method = setting.task.theta, setting.experiment.method
    return Server(theta, setting.task.buffers, torch.zeros_like(theta), method.initial(setting, theta), {})


def _describe(
    folder: Path, experiment: Experiment, data: Data, parameters: tuple[tuple[str, tuple[int, ...]], ...]
) -> None:
    """Write run.json, or check that the one there describes the same data.

    Raises:
        ValueError: If the data have changed since the run was begun.
    """
    path = folder / "run.json"
    if path.exists():
        before = store.read_json(path)
        if before["fingerprint"] != data.fingerprint:
            raise ValueError(
                f"dataset {experiment.task.dataset} has fingerprint {data.fingerprint}, {folder.name} was trained on "
                f"{before['fingerprint']}; restore the data or train into another folder (--runs DIR)."
            )
        return
    store.write_json(
        path,
        {
            "experiment": experiment.resolved(),
            "hash": experiment.hash,
            "fingerprint": data.fingerprint,
            "classes": list(data.classes),
            "layout": [[name, list(shape)] for name, shape in parameters],
            "engine": "serial",
            "versions": versions(),
        },
    )


def versions() -> dict[str, str]:
    """What the bits of a run depend on beside its settings."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
    }
