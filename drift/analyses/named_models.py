"""Models of a round by name: "start", "end", "mean", "client 3", and "round 12" for another global model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from drift.analyses.per_round import buffers_or_none, global_model
from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.model.batchnorm import calibration_of, normalisers, recalibrate

NAMES = '"start", "end", "mean", "client 3" or "round 12"'
"""What a model may be called, for messages."""


@dataclass(frozen=True)
class NamedModel:
    """A model of a round: its name, parameters (d,) and buffers (b,), None where it has none."""

    name: str
    theta: Tensor
    buffers: Tensor | None


def named_models(run: Run, index: int, names: Sequence[str]) -> list[NamedModel]:
    """The models of a round that are called so.

    "start" is what the clients received, "end" the new global model, "mean" the size-weighted mean of the clients,
    "client K" the model of a client of the cohort, and "round T" the global model after round T. The batch statistics
    of the mean are recomputed on training samples, as on planes.

    Args:
        run: Run of the models.
        index: Number of the round; negative ones count from the last complete one.
        names: One name per model.

    Raises:
        ValueError: If a name is none of these, or the cohort holds no such client.
        LookupError: If the round kept no such model.
    """
    record = run.round(index)
    return [_model(run, record, str(name)) for name in names]


def _model(run: Run, record: Round, name: str) -> NamedModel:
    if name in ("start", "end"):
        buffers = record.start_buffers if name == "start" else record.end_buffers
        return NamedModel(name, record.kept(name), buffers_or_none(buffers))
    if name == "mean":
        return NamedModel(name, record.fma, _mean_buffers(run, record))
    if not (parsed := re.fullmatch(r"(client|round) (\d+)", name)):
        raise ValueError(f"no model is called {name!r}; give {NAMES}.")
    number = int(parsed[2])
    if parsed[1] == "client":
        ids, clients = record.ids.tolist(), record.kept("clients")
        if number not in ids:
            raise ValueError(f"round {record.index} of {run.name} has no client {number}; its cohort is {ids}.")
        place = ids.index(number)
        buffers = record.client_buffers[place] if len(record.client_buffers) else record.client_buffers
        return NamedModel(name, clients[place], buffers_or_none(buffers))
    model = global_model(run, number)
    return NamedModel(name, model.theta, model.buffers)


def _mean_buffers(run: Run, record: Round) -> Tensor | None:
    """Buffers of the clients' mean: their mean, with batch statistics recomputed."""
    if not record.client_buffers.numel():
        return None
    mean: Tensor = record.shares.to(record.client_buffers) @ record.client_buffers
    if not normalisers(run.task.model):
        return mean
    return recalibrate(run.task, record.fma, mean, calibration_of(run.task, "train"))
