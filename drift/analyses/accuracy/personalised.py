"""How accurate the global model is at each client, before and after the client has tuned it to its own data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import described, resolve_round
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.training.client import Client, Update
from drift.training.data import dealt
from drift.training.model_parts import frozen, head_mask
from landscape.model.samples import Samples
from landscape.plugins import unknown
from landscape.results.progress import with_progress
from landscape.sweep.evaluate import evaluate

Part = Literal["all", "body", "head"]
"""What a client tunes; the rest stays as it is."""


@analysis("client", cost="training")
def personal_accuracy(
    run: Run, *, round: int = -1, epochs: int = 1, part: Part = "all", clients: Sequence[int] | None = None
) -> xr.Dataset:
    """Loss and accuracy of a global model on what each client holds out, and after local fine-tuning.

    A client starts from the global model at a round's end and trains by the local settings of that round with fresh
    minibatches; nothing of it goes into the run. This is FedBABU's fine-tuning, open to every method.

    Source: Oh et al. 2022, section 5 (one epoch of the whole model); methods.md 2.4.

    Args:
        round: Whose global model.
        epochs: Of fine-tuning.
        part: What is tuned: everything, the body, or the head.
        clients: By default all that hold samples out.

    Returns:
        accuracy, tuned_accuracy (fractions 0-1), loss, tuned_loss (nats) and held_out (samples) over client; attributes
        mean_accuracy and mean_tuned_accuracy weigh clients by what they hold out.

    Raises:
        LookupError: If the round kept no global model, or no client holds samples out.
        ValueError: If epochs is below 1, the part is unknown or a model does not tell it apart, or a client of
            `clients` is not there or holds no samples out.
    """
    if epochs < 1:
        raise ValueError(f"epochs is {epochs}; give 1 or more.")
    if part not in get_args(Part):
        raise ValueError(unknown("part of a model", part, get_args(Part)))
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
    if clients is not None and (empty := sorted(set(clients) - {client.id for client, _ in starts})):
        raise ValueError(f"client {empty[0]} of run {run.name} holds no samples out; name clients that do.")
    rows = []
    for client, held in with_progress(starts, run.context.progress):
        tuned = _tuned(client, part)
        models = (client.start, client.buffers), (tuned.theta, tuned.buffers)
        rows.append([value for model in models for value in _measured(run, *model, held)])
    values = dict(zip(_VALUES, np.array(rows).T, strict=True))
    sizes = np.array([len(held) for _, held in starts])
    found = xr.Dataset(
        {name: ("client", column) for name, column in values.items()} | {"held_out": ("client", sizes)},
        coords={"client": [client.id for client, _ in starts]},
        attrs={
            "analysis": "personal_accuracy",
            "source": "Oh et al. 2022, section 5",
            "round": index,
            **{f"mean_{name}": float(np.average(values[name], weights=sizes)) for name in _MEANS},
        },
    )
    return described(found, {**_ABOUT, "held_out": ("samples held out", "samples"), "client": ("client", "1")})


def _starts(run: Run, index: int, wanted: Iterable[int], epochs: int) -> list[tuple[Client, Samples]]:
    """The clients that hold samples out, and these; they are about to tune the global model at the end of a round."""
    record, experiment, train = run.round(index), run.experiment, run.task.samples["train"]
    end = record.kept("end")
    local = run.method.schedule(experiment.local, index, experiment.rounds)
    local = local.model_copy(update={"epochs": epochs, "steps": None, "persist_optimizer": False})
    parts, held = dealt(experiment, run.dataset, index)
    flat = run.task.flat(end)
    return [
        (
            Client(
                id=client,
                index=index,
                seed=experiment.seed,
                samples=train[torch.from_numpy(parts[client])],
                start=end,
                buffers=record.end_buffers,
                local=local,
                flat=flat,
                replicate=1,  # the round's own training had the minibatches of replicate 0
            ),
            train[torch.from_numpy(held[client])],
        )
        for client in wanted
        if len(held[client])
    ]


def _tuned(client: Client, part: Part) -> Update:
    correction = None
    if part != "all":
        head = head_mask(client.flat.module, client.flat.layout, f"part={part}")
        correction = frozen(head if part == "body" else ~head, client.local.weight_decay)
    return client.train(correction)


def _measured(run: Run, theta: Tensor, buffers: Tensor, samples: Samples) -> tuple[float, float]:
    """Loss and accuracy of a model."""
    own = buffers[None] if len(buffers) else None
    found = evaluate(run.task, theta[None], torch.ones(1, 1), split=samples, metrics=("loss", "error"), buffers=own)
    return float(found["loss"][0]), 1 - float(found["error"][0])


_VALUES = ("loss", "accuracy", "tuned_loss", "tuned_accuracy")

_ABOUT = {
    "loss": ("loss on held-out samples", "nats"),
    "accuracy": ("accuracy on held-out samples", "fraction"),
    "tuned_loss": ("loss after fine-tuning", "nats"),
    "tuned_accuracy": ("accuracy after fine-tuning", "fraction"),
}

_MEANS = ("accuracy", "tuned_accuracy")
