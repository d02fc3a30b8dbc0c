"""Recomputation of lost rounds from the round before, where that gives the same bits."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from drift.config.method_values import State
from drift.parallel.threads import torch_threads
from drift.runs.run import Run
from drift.simulation.description import versions
from drift.simulation.one_round import run_round
from drift.store import files
from drift.store.round_record import PREVIOUS, START, Round
from drift.training.server import Server


class Inexact(Exception):
    """A round whose bits cannot be recomputed; the message states why."""


@dataclass(frozen=True)
class Recomputed:
    """A recomputed round: its record, its starting point, and the evidence that its bits are right.

    Its metric `seconds` is missing: how long the lost one took is not known.
    """

    record: Round
    source: str
    proof: str


def recompute_rounds(run: Run, indices: Sequence[int], intact: Sequence[int]) -> list[Recomputed]:
    """Consecutive rounds of a run, computed again and checked against what follows them.

    The server before a round is known exactly before round 0, and after a round that kept its models where the method
    keeps nothing between rounds. The last one must lead to the start, the norm of the start and that of the mean
    update which the next round recorded, or to the run's state; where both are lost, versions must be those that
    trained the run.

    Args:
        run: The run.
        indices: The rounds, ascending, no gap.
        intact: Rounds that can be read.

    Raises:
        Inexact: If the bits cannot be recomputed, or do not fit the rest of the run.
        LookupError: If the data are not there.
        ValueError: If the data have changed.
    """
    first, last = indices[0], indices[-1]
    source = "the initial model" if first == 0 else f"round {first - 1}"
    with torch_threads(run.experiment.threads):
        server = Server.fresh(run.setting) if first == 0 else server_after(run, first - 1, intact)
        records = []
        for _ in indices:
            record, server = run_round(run.setting, run.dataset, server)
            record.metrics["seconds"] = float("nan")
            records.append(record)
    proof = _proof(run, last, server, intact)
    return [Recomputed(record, source, proof) for record in records]


def recompute_state(run: Run, intact: Sequence[int]) -> Server:
    """The server after the last round of a run, as it was when that was committed.

    Raises:
        Inexact: If it cannot be recomputed, or rounds before are missing.
    """
    readable = [index for index in intact if _finite(files.read_round(run.folder, index))]
    if not readable or readable != list(range(len(readable))):
        raise Inexact(f"the state follows the last round, and only rounds {readable} are whole")
    return server_after(run, readable[-1], intact)


def server_after(run: Run, index: int, intact: Sequence[int]) -> Server:
    """The server after a recorded round.

    Raises:
        Inexact: If the record does not hold all of it.
    """
    if index not in intact:
        raise Inexact(f"it follows from round {index}, which is lost too")
    if name := _memory(run):
        raise Inexact(f"{run.method.name()} keeps {name} between rounds, which no round's file contains completely")
    record = files.read_round(run.folder, index)
    if record.end is None or record.clients is None:
        raise Inexact(f"it follows from round {index}, which kept no client models or no global model")
    if run.experiment.keep.dtype != "float32":
        raise Inexact("the run keeps client models rounded (keep.dtype), and their mean is part of what follows")
    weights = run.experiment.cohort_weights(record.sizes)
    return Server(record.end, record.end_buffers, record.mean_update(weights), {}, {}, index + 1)


def _memory(run: Run) -> str:
    """The state that a run keeps between rounds in addition to models; "" if none."""
    if run.experiment.local.persist_optimizer:
        return "the clients' optimisers"
    if run.experiment.clients.late:
        return "the models that late clients start from"
    if run.method.stateful:
        return "a state of every client"
    if run.method.initial(run.setting, run.task.theta):
        return "a state of the server"
    try:
        stored = run.stored_state()
    except files.Damaged:
        return ""
    names = [name for name in stored.tensors if name.startswith("server.")]
    names += [f"client.{client}" for client in stored.clients]
    return f"a state ({names[0]})" if names else ""


def _proof(run: Run, last: int, server: Server, intact: Sequence[int]) -> str:
    if last + 1 in intact:
        following = files.read_round(run.folder, last + 1)
        start = run.method.broadcast(server.state, server.theta, last + 1)
        momentum = run.method.momentum(server.state)
        expected = server.previous if momentum is None else momentum
        same = following.start is None or torch.equal(following.start, start)
        for row, vector in ((START, start), (PREVIOUS, expected)):
            square = following.gram[row, row]
            same = same and bool(torch.isclose(vector.double() @ vector.double(), square, rtol=_ROUNDING, atol=0.0))
        return _require_same(same, f"and leads to the start of round {last + 1}")
    try:
        stored = run.stored_state()
        if stored.next == last + 1:
            clients = server.clients
            same = _equal(server.tensors(), stored.tensors) and clients.keys() == stored.clients.keys()
            same = same and all(_equal(clients[client], stored.clients[client]) for client in clients)
            return _require_same(same, "and leads to the run's state")
    except files.Damaged:
        pass
    if run.about["versions"] != versions():
        raise Inexact(f"nothing whole follows it, and the run was trained by {run.about['versions']}")
    return "by the same versions"


def _equal(mine: State, stored: State) -> bool:
    return mine.keys() == stored.keys() and all(torch.equal(mine[name], stored[name]) for name in mine)


_ROUNDING = 1e-12
"""Upper bound on the relative difference of float64 sums of the same squares in another order."""


def _require_same(same: bool, proof: str) -> str:
    if not same:
        raise Inexact(
            "trained again, it has other bits than the rest of the run needs; was the run trained by other versions "
            "(fedscape show) or on another machine?"
        )
    return proof


def _finite(record: Round) -> bool:
    return len(record.ids) > 0 and (record.end is None or bool(torch.isfinite(record.end).all()))
