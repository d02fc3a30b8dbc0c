"""FedBN, normalisation layers that stay with the clients."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.config.method_values import Setting, State
from drift.training.client import Client, Update
from drift.training.model_layers import norm_mask, require_normalised
from drift.training.validation import require_held_out
from landscape.model.task import Task
from landscape.sweep.evaluate import model_metrics


class FedBN(Method):
    """Clients receive everything but the normalisation layers, whose parameters and statistics they keep.

    They begin with the received ones. The evaluated global model has the mean of the uploaded normalisation layers.
    Layers are found by their type; the LSS paper's code looks for "bn" in names of parameters.

    `own_metrics` records own_loss and own_accuracy: each client that has trained so far measures the global model
    with its own normalisation layers on its held-out samples, weighted by their number (papers.md 2.4).

    Source: Li et al. 2021, algorithm 1; a baseline of the LSS paper.
    """

    requires = (require_normalised,)
    stateful: ClassVar[bool] = True
    personal: ClassVar[bool | None] = True

    own_metrics: bool = Field(False, description="evaluate each client's own model on what it holds out as well")

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError where clients hold nothing out that their own models could be measured on."""
        if self.own_metrics:
            require_held_out(experiment, f"{self.name()} with own_metrics")

    def client_numbers(self, task: Task) -> int:
        """Its normalisation layers."""
        return int(norm_mask(task.model, task.layout, self.name()).sum()) + task.layout.buffer_size

    def prepare(self, client: Client) -> Client:
        """The client with its own normalisation layers, once it has any."""
        mask = _mask(client)
        start = client.start.clone()
        if "norm" in client.state:
            start[mask] = client.state["norm"]
        return replace(client, start=start, buffers=client.state.get("buffers", client.buffers))

    def finish(self, client: Client, update: Update) -> Update:
        """The normalisation layers to keep."""
        layers = {"norm": update.theta[_mask(client)], "buffers": update.buffers}
        return replace(update, state={**update.state, **layers})

    def measured(
        self, setting: Setting, end: Tensor, clients: Mapping[int, State], held: Sequence[np.ndarray]
    ) -> dict[str, float]:
        """own_loss (nats) and own_accuracy (a fraction) if requested and at least one client holds out samples."""
        if not self.own_metrics:
            return {}
        task, total, count = setting.task, dict.fromkeys(("loss", "error"), 0.0), 0
        norm = norm_mask(task.model, task.layout, self.name())
        for client, state in sorted(clients.items()):
            if "norm" not in state or not len(held[client]):
                continue
            model = end.clone()
            model[norm] = state["norm"].to(end)
            fixed, samples = state["buffers"].to(setting.device), task.samples["train"][torch.from_numpy(held[client])]
            metrics = model_metrics(task, model.to(setting.device), fixed, split=samples, metrics=tuple(total))
            count += len(held[client])
            for name in total:
                total[name] += len(held[client]) * metrics[name]
        return {"own_loss": total["loss"] / count, "own_accuracy": 1 - total["error"] / count} if count else {}


def _mask(client: Client) -> Tensor:
    return norm_mask(client.flat.module, client.flat.layout, FedBN.name()).to(client.start.device)
