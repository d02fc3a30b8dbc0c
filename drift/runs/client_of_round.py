"""A client of a recorded round, as it was before it trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from drift.runs.client_state import carried
from drift.training.client import Client
from drift.training.data import client_samples

if TYPE_CHECKING:
    from drift.runs.run import Run


def recorded_client(run: Run, index: int, client: int, replicate: int = 0) -> Client:
    """Client `client` of round `index`, ready to train again; replicate 0 repeats what was recorded.

    Raises:
        LookupError: If the round kept no start, or the method's clients keep state that was not recorded.
    """
    record, experiment = run.round(index), run.experiment
    index = record.index  # -1 means the last
    start, train = record.kept("start"), run.task.samples["train"]
    parts, held = client_samples(experiment, run.dataset, index)
    return Client(
        id=client,
        index=index,
        seed=experiment.seed,
        samples=train[torch.from_numpy(parts[client])],
        start=start,
        buffers=record.start_buffers,
        local=run.method.schedule(experiment.local, index, experiment.rounds),
        flat=run.task.flat(start),
        held_out=train[torch.from_numpy(held[client])],
        state=carried(run, index, client) if run.method.stateful or experiment.local.persist_optimizer else {},
        server=record.sent,
        replicate=replicate,
    )
