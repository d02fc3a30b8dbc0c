"""SWA on clients: the mean of iterates along a longer local training."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.config.method import Method
from drift.training.client import Client, Update, steps
from landscape.model.batchnorm import recompute_statistics
from landscape.model.samples import Samples


class SWA(Method):
    """Clients train for `cycles` times the local epochs and send the mean of their models at the end of each cycle.

    The rate is constant, or falls linearly within every cycle from the local rate to `lr_end` times it. Batch
    statistics are those of the mean on the client's data. One cycle is FedAvg. The server is FedAvg's.

    Source: Izmailov et al. 2018, algorithm 1; budget of the LSS paper, 4 cycles of 8 epochs.
    """

    cycles: int = Field(4, ge=1, description="models in the mean")
    schedule_lr: Literal["constant", "cyclic"] = Field("constant", description="rate within a cycle")
    lr_end: float = Field(0.01, gt=0, le=1, description="cyclic: factor of the rate at the end of a cycle")

    @property
    def trainings(self) -> int:
        """Each cycle takes its own."""
        return self.cycles

    def local(self, client: Client) -> Update:
        """The mean over cycles."""
        total = torch.zeros_like(client.start)
        order = client.generator("batches")
        per_cycle = max(1, steps(client))

        def batches() -> Iterator[Samples]:
            for _ in range(self.cycles):
                yield from client.batches(order=order)
                total.add_(client.flat.theta)

        def rate(step: int) -> float:
            done = (step % per_cycle + 1) / per_cycle
            return 1.0 if self.schedule_lr == "constant" else (1 - done) + self.lr_end * done

        update = client.train(batches=batches(), rate=rate)
        mean: Tensor = total / self.cycles
        client.flat.load(mean, update.buffers)
        return replace(update, theta=mean, buffers=recompute_statistics(client.flat, client.samples))
