"""SWAD on clients: the dense mean of iterates between a start and an end found by validation."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.training.client import Client, Update
from drift.training.validation import require_held_out, validate, validation_samples
from landscape.model.batchnorm import recompute_statistics
from landscape.model.samples import Samples


class SWAD(Method):
    """Clients train for `cycles` times the local epochs and send the mean of all iterates of the epochs found by
    `valley`, from the validation loss after every epoch; where there is no valley, the last iterate.

    Batch statistics are those of the mean on the client's data. The server is FedAvg's.

    Unlike the paper: losses are computed once per epoch.

    Source: Cha et al. 2021, algorithm 1; budget of the LSS paper, 4 times 8 epochs.
    """

    corrections: ClassVar[tuple[str, ...]] = ("its valley included the epochs by which its end is noticed",)
    gaps: ClassVar[tuple[str, ...]] = ("valley",)

    cycles: int = Field(4, ge=1, description="training lasts this many times the local epochs")
    patience_start: int = Field(3, ge=1, description="N_s, epochs that the first one must not be above")
    patience_end: int = Field(6, ge=1, description="N_e, epochs above the threshold that end it, none of them in it")
    tolerance: float = Field(1.3, gt=0, description="r: the threshold over the mean loss at the start")

    @property
    def trainings(self) -> int:
        """Each cycle takes its own."""
        return self.cycles

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError where clients hold no validation data, or train for steps instead of epochs."""
        require_held_out(experiment, self.name())
        if experiment.local.steps is not None:
            raise ValueError("swad validates after every epoch and local.steps replaces epochs; leave local.steps out.")

    def local(self, client: Client) -> Update:
        """The mean of the valley."""
        validation, order = validation_samples(client), client.generator("batches")
        losses: list[float] = []
        sums: list[tuple[Tensor, int]] = []

        def batches() -> Iterator[Samples]:
            for _ in range(self.cycles * client.local.epochs):
                total, count = torch.zeros_like(client.start), 0
                for batch in client.batches(epochs=1, order=order):
                    yield batch
                    total.add_(client.flat.theta)
                    count += 1
                sums.append((total, count))
                losses.append(validate(client, validation)[0])

        update = client.train(batches=batches())
        epochs = valley(losses, self.patience_start, self.patience_end, self.tolerance)
        steps = 0 if epochs is None else sum(count for _, count in sums[epochs])
        if epochs is None or not steps:
            return replace(update, report={"valley": torch.full((2,), torch.nan)})
        mean = torch.stack([total for total, _ in sums[epochs]]).sum(0) / steps
        client.flat.load(mean, update.buffers)
        report = {"valley": torch.tensor([epochs.start, epochs.stop], dtype=torch.float32)}
        return replace(update, theta=mean, buffers=recompute_statistics(client.flat, client.samples), report=report)


def valley(losses: list[float], first: int, last: int, tolerance: float) -> slice | None:
    """The epochs to average over, from validation losses after each; None where the loss never settles.

    It starts at the first epoch whose loss is the least of it and the `first` - 1 after it. The threshold is
    `tolerance` times the mean of these. From the epoch after these on, and with no epoch before the start, the search
    is for the first epoch i at which the last `last` losses are all above the threshold: these belong to the valley no
    more, which ends with epoch i - `last`. Without one it ends with the last epoch. The start belongs to it always.
    """
    for start in range(len(losses) - first + 1):
        window = losses[start : start + first]
        if losses[start] > min(window):
            continue
        threshold = tolerance * sum(window) / first
        for end in range(start + max(first, last - 1), len(losses)):
            after = end - last + 1
            if min(losses[after : end + 1]) > threshold:
                return slice(start, max(after, start + 1))
        return slice(start, len(losses))
    return None
