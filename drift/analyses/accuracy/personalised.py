"""Accuracy of a global model per client, before and after fine-tuning on the data of the client."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import ABOUT, resolve_round, result
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.training.client import Client, Update
from drift.training.data import client_samples
from drift.training.model_layers import freeze, head_mask
from drift.training.server import Server
from drift.training.server import clients as round_clients
from drift.training.validation import validation_samples
from landscape.model.samples import Samples
from landscape.sweep.evaluate import model_metrics

Layers = Literal["all", "body", "head"]
"""Part of a model that a client tunes; the rest is frozen."""


@analysis("client", cost="training")
def personal_accuracy(
    run: Run, *, round: int = -1, epochs: int = 1, layers: Layers = "all", clients: Sequence[int] | None = None
) -> xr.Dataset:
    """Loss and accuracy of a global model on the held-out samples of each client, before and after fine-tuning.

    A client starts from the global model at the end of a round and trains by the local settings of that round with
    fresh minibatches; the run does not change. This is FedBABU's fine-tuning, for every method.

    Source: Oh et al. 2022, section 5 (one epoch of the whole model); papers.md 2.4.

    Args:
        run: Run to analyse.
        round: Round of the global model.
        epochs: Epochs of fine-tuning.
        layers: Part of the model that is tuned: everything, the body, or the head.
        clients: By default all that have held-out samples.

    Returns:
        accuracy, tuned_accuracy (fractions 0-1), loss, tuned_loss (nats) and held_out (samples) over client; attributes
        mean_accuracy and mean_tuned_accuracy weigh clients by their held-out samples.

    Raises:
        LookupError: If the round kept no global model, or no client has held-out samples.
        ValueError: If epochs is below 1, the model does not distinguish the part, or a client of `clients` does not
            exist or has no held-out samples.
    """
    if epochs < 1:
        raise ValueError(f"epochs is {epochs}; give 1 or more.")
    index = resolve_round(run, round, "globals")
    number = run.experiment.clients.number
    if absent := [client for client in clients or () if not 0 <= client < number]:
        raise ValueError(f"run {run.name} has no client {absent[0]}; it has 0 to {number - 1}.")
    starts = _starts(run, index, range(number) if clients is None else clients, epochs)
    if not starts:
        raise LookupError(
            f"no client of run {run.name} holds samples out; train with --set clients.valid_ratio=0.2, or name clients "
            "that do."
        )
    if clients is not None and (empty := sorted(set(clients) - {client.id for client in starts})):
        raise ValueError(f"client {empty[0]} of run {run.name} holds no samples out; name clients that do.")
    rows = []
    for client in run.context.track(starts):
        tuned, samples = _fine_tune(client, layers), validation_samples(client)
        models = (client.start, client.buffers), (tuned.theta, tuned.buffers)
        rows.append([value for model in models for value in _loss_and_accuracy(run, *model, samples)])
    values = dict(zip(_VALUES, np.array(rows).T, strict=True))
    sizes = np.array([len(validation_samples(client)) for client in starts])
    return result(
        {name: ("client", column) for name, column in {**values, "held_out": sizes}.items()},
        ABOUT["personal_accuracy"],
        {"client": [client.id for client in starts]},
        analysis="personal_accuracy",
        source="Oh et al. 2022, section 5",
        round=index,
        **{f"mean_{name}": float(np.average(values[name], weights=sizes)) for name in _MEANS},
    )


def _starts(run: Run, index: int, ids: Iterable[int], epochs: int) -> list[Client]:
    """The clients with held-out samples, ready to tune the global model at the end of a round."""
    record, experiment = run.round(index), run.experiment
    end = record.kept("end")
    local = run.method.schedule(experiment.local, index, experiment.rounds)
    local = local.model_copy(update={"epochs": epochs, "steps": None, "persist_optimizer": False})
    parts, held_out = client_samples(experiment, run.dataset, index)
    server = Server(end, record.end_buffers, end, {}, {}, index)
    usable = np.array([client for client in ids if len(held_out[client])], np.int64)
    ready = round_clients(run.setting, parts, held_out, server, end, usable)
    # the round's own training had the minibatches of replicate 0
    return [replace(client, local=local, replicate=1) for client in ready]


def _fine_tune(client: Client, layers: Layers) -> Update:
    correction = None
    if layers != "all":
        head = head_mask(client.flat.module, client.flat.layout, f"part={layers}")
        correction = freeze(head if layers == "body" else ~head, client.local.weight_decay)
    return client.train(correction)


def _loss_and_accuracy(run: Run, theta: Tensor, buffers: Tensor, samples: Samples) -> tuple[float, float]:
    values = model_metrics(run.task, theta, buffers, split=samples, metrics=("loss", "error"))
    return values["loss"], 1 - values["error"]


_VALUES = ("loss", "accuracy", "tuned_loss", "tuned_accuracy")


_MEANS = ("accuracy", "tuned_accuracy")
