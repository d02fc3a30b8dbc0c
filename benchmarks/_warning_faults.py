"""A federated mean some of whose clients, or whose local rate, fail from a round on, for `benchmarks.early_warning`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.config.experiment import Local
from drift.method import Method
from drift.training.client import Client, Update

CLASSES = 10


class Faulty(Method):
    """FedAvg with a fault from round `begin` on:

    scaled   some clients send factor D_k in place of D_k
    grows    some clients send factor^(rounds since `begin` + 1) D_k
    labels   some clients train on the next class in place of each label
    copies   all clients send the update of the first one, with noise of a twentieth of its length
    rate     all clients train at factor times the rate
    """

    first: ClassVar[dict[tuple[int, int, float], Tensor]] = {}

    fault: Literal["scaled", "grows", "labels", "copies", "rate"] = "scaled"
    clients: tuple[int, ...] = (3,)
    begin: int = Field(4, ge=0)
    factor: float = 10.0

    def schedule(self, local: Local, index: int, rounds: int) -> Local:
        """The local settings, with the changed rate."""
        usual = super().schedule(local, index, rounds)
        changed = self.fault == "rate" and index >= self.begin
        return usual.model_copy(update={"lr": usual.lr * self.factor}) if changed else usual

    def local(self, client: Client) -> Update:
        """The local training, with the fault in what is sent."""
        if client.index < self.begin or (client.id not in self.clients and self.fault != "copies"):
            return super().local(client)
        if self.fault == "labels":
            targets = (client.samples.targets + 1) % CLASSES
            return super().local(replace(client, samples=replace(client.samples, targets=targets)))
        update = super().local(client)
        if self.fault == "copies":  # clients train in the order of their numbers, in one process
            key = client.seed, client.index, float(client.start.sum())
            delta = self.first.setdefault(key, update.theta) - client.start
            noise = torch.randn(len(delta), generator=client.generator("noise"))
            return replace(update, theta=client.start + delta + 0.05 * delta.norm() / noise.norm() * noise)
        power = client.index - self.begin + 1 if self.fault == "grows" else 1
        factor = 1.0 if self.fault == "rate" else self.factor**power
        return replace(update, theta=client.start + factor * (update.theta - client.start))
