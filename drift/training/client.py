"""One client of one round: its data, what it received, plain local training, and copies on another device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from drift.config.experiment import Local
from drift.config.method_values import State
from drift.config.random_keys import generator, key
from drift.training.correction import Correction
from drift.training.optimizer import Optimizer
from drift.training.unequal_clients import compressed
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples

Gradient = Callable[[Flat, Samples], Tensor]
"""(workspace, minibatch) -> loss () in nats; leaves the minibatch's gradient in the workspace."""


@dataclass(frozen=True)
class Update:
    """What a client returns: model (d,), buffers (b,), optimiser steps, mean training loss in nats, state, report."""

    theta: Tensor
    buffers: Tensor
    steps: int
    loss: float
    state: State = field(default_factory=dict)
    report: State = field(default_factory=dict)


@dataclass(frozen=True)
class Client:
    """A local training to be done.

    Args:
        id, index, seed: Client, round and experiment seed; with `replicate` they key all randomness.
        samples: The client's training data.
        held_out: Data that the client keeps for validation (clients.valid_ratio); may be empty.
        start, buffers: Model (d,) and floating buffers (b,) received.
        local: Local settings as scheduled for this round.
        state: What this client kept from earlier rounds.
        server: The server's state, as far as the method broadcasts it.
        flat: Workspace; its content is not preserved.
        replicate: 0 is the recorded training; others repeat it with fresh randomness.
        stream: Number of one of several trainings, if each draws its own dropout.
        present: Start (d,) of the round for a late client, whose own `start` is that of an earlier round.
    """

    id: int
    index: int
    seed: int
    samples: Samples
    start: Tensor
    buffers: Tensor
    local: Local
    flat: Flat
    held_out: Samples | None = None
    state: State = field(default_factory=dict)
    server: State = field(default_factory=dict)
    replicate: int = 0
    stream: int | None = None
    present: Tensor | None = None

    def __repr__(self) -> str:
        """One line: number, round, samples, size of the model."""
        return f"Client({self.id} of round {self.index}: {len(self.samples)} samples, {len(self.start)} parameters)"

    def purpose(self, what: str) -> tuple[int | str, ...]:
        """Key of a random draw of this client in this round."""
        return (self.index, self.id, what) if self.replicate == 0 else (self.index, self.id, what, self.replicate)

    def generator(self, what: str) -> torch.Generator:
        """Generator for a random draw of this client in this round."""
        return generator(self.seed, *self.purpose(what))

    def batches(self, *, epochs: int | None = None, order: torch.Generator | None = None) -> Iterator[Samples]:
        """Minibatches of freshly shuffled epochs; samples are gathered once per epoch.

        The last partial batch is kept unless `local.drop_last`; a batch of one is dropped where there are
        batch statistics, unless `local.batch` is 1. A client with one sample then trains on nothing.
        `local.steps` replaces the number of epochs by a number of batches.
        """
        for numbers in self.orders(epochs=epochs, order=order):
            yield from self.samples[numbers.to(self.samples.targets.device)].blocks(self.local.batch)

    @property
    def batches_per_epoch(self) -> int:
        """Number of minibatches that an epoch yields."""
        local = self.local
        least = 2 if local.batch > 1 and self.flat.has_batch_statistics else 1
        full, rest = divmod(len(self.samples), local.batch)
        return full + int(rest >= least and not (full and local.drop_last))

    def orders(self, *, epochs: int | None = None, order: torch.Generator | None = None) -> Iterator[Tensor]:
        """Sample numbers that the minibatches of each epoch take, one after the other."""
        order = order if order is not None else self.generator("batches")
        local, n, done, most = self.local, len(self.samples), 0, self.batches_per_epoch
        limit = local.steps if epochs is None else None
        epochs = local.epochs if epochs is None else epochs
        while most and (epochs > 0 if limit is None else done < limit):
            count = most if limit is None else min(most, limit - done)
            shuffled = torch.randperm(n, generator=order)
            yield shuffled if count * local.batch >= n else shuffled[: count * local.batch]
            done += count
            epochs -= 1

    def train(
        self,
        correction: Callable[[Tensor, Tensor], None] | None = None,
        *,
        gradient: Gradient | None = None,
        batches: Iterable[Samples] | None = None,
        rate: Callable[[int], float] | None = None,
    ) -> Update:
        """Minibatch training of the received model by the local optimiser.

        Args:
            correction: (gradient (d,), theta (d,)) -> None, adds to each minibatch gradient in place, as a proximal
                term does; a `Correction` may hold entries as well.
            gradient: Takes the place of the loss's own gradient, as a sharpness-aware one does.
            batches: Minibatches; those of the client's local settings where not given.
            rate: Factor of the local rate at step 0, 1, ..
        """
        flat = self.flat
        flat.load(self.start, self.buffers)
        optimizer = Optimizer(flat.theta, flat.grad, self.local)
        optimizer.restore(self.state)
        gradient = Flat.gradient if gradient is None else gradient
        pinned = correction.pinned(flat.theta) if isinstance(correction, Correction) else None
        losses, steps = torch.zeros((), dtype=torch.float64, device=flat.theta.device), 0
        with self.randomness():
            flat.training(True)
            for batch in self.batches() if batches is None else batches:
                losses += gradient(flat, batch)
                if correction is not None:
                    correction(flat.grad, flat.theta)
                optimizer.step(1.0 if rate is None else rate(steps))
                if pinned is not None:
                    pinned.restore(flat.theta)
                steps += 1
            flat.training(False)
        loss = float(losses) / steps if steps else float("nan")
        state = {**self.state, **optimizer.state()}
        return Update(flat.theta.clone(), flat.buffers.clone(), steps, loss, state)

    def sent(self, update: Update) -> Update:
        """The update as the server receives it: its model is the start of the round plus the decoded update."""
        if self.present is None and self.local.compress == "none":
            return update
        start = self.start if self.present is None else self.present
        return replace(update, theta=start + compressed(update.theta - self.start, self.local))

    def randomness(self) -> ForkedSeed:
        """Context in which global randomness (dropout) is this client's own; the caller's is restored."""
        stream = () if self.stream is None else ("candidate", self.stream)
        return ForkedSeed(key(self.seed, *self.purpose("dropout"), *stream))


class ForkedSeed:
    """Context with the global generator seeded; the caller's state comes back at the end."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __enter__(self) -> None:
        self.before = torch.get_rng_state()
        # torch.manual_seed keeps a formatted stack for a GPU that never starts, which costs as much as a small step
        seeded = torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed
        seeded(self.seed)

    def __exit__(self, *error: object) -> None:
        torch.set_rng_state(self.before)


def steps(client: Client) -> int:
    """Number tau of optimiser steps in plain local training: the batches that `client.batches()` yields."""
    per_epoch, local = client.batches_per_epoch, client.local
    return local.steps if per_epoch and local.steps is not None else local.epochs * per_epoch


def to_device(client: Client, device: torch.device, flat: Flat) -> Client:
    """The client with its data and models on a device; the same object if it is there already.

    Args:
        flat: Workspace on that device.
    """
    if client.start.device == device:
        return client
    held_out = client.held_out
    return replace(
        client,
        samples=client.samples.to(device=device),
        held_out=None if held_out is None else held_out.to(device=device),
        start=client.start.to(device),
        present=None if client.present is None else client.present.to(device),
        buffers=client.buffers.to(device),
        state=_moved(client.state, device),
        server=_moved(client.server, device),
        flat=flat,
    )


def to_cpu(update: Update) -> Update:
    """The update in the memory of the CPU, where rounds are aggregated and recorded."""
    cpu = torch.device("cpu")
    if update.theta.device == cpu and update.buffers.device == cpu:
        return update
    state, report = _moved(update.state, cpu), _moved(update.report, cpu)
    return replace(update, theta=update.theta.to(cpu), buffers=update.buffers.to(cpu), state=state, report=report)


def _moved(state: State, device: torch.device) -> State:
    return {name: value.to(device) for name, value in state.items()}
