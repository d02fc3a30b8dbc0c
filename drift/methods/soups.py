"""Soups on clients: the mean of many trainings with random settings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field, field_validator
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.config.random_keys import rng
from drift.training.client import Client, Update
from drift.training.model_layers import require_head
from drift.training.validation import require_held_out, validate, validation_samples
from landscape.model.batchnorm import recompute_statistics
from landscape.model.samples import Samples


@dataclass(frozen=True)
class Candidate:
    """A model (d,) with its buffers (b,), at its best epoch, and its validation error."""

    theta: Tensor
    buffers: Tensor
    error: float


class Soups(Method):
    """Clients send the mean of 32 candidates trained with random settings; the uniform mean by default.

    Each starts at the received model with settings from the lists, and is taken at its epoch of least validation error.

    uniform: the mean of all. greedy: in order of their error, a candidate joins if the mean's error does not rise.
    Batch statistics are those of the mean on the client's data. The server is FedAvg's.

    Source: Wortsman et al. 2022, uniform and greedy soups; ranges and budget of the LSS paper's code.
    """

    candidates: int = Field(32, ge=1, description="models trained by a client")
    lrs: tuple[float, ...] = Field((1e-4, 5e-4, 1e-5), min_length=1, description="rates to draw from")
    batches: tuple[int, ...] = Field((32, 64, 128), min_length=1, description="batch sizes to draw from")
    dropouts: tuple[float, ...] = Field((0.0, 0.1, 0.3), min_length=1, description="of the features, to draw from")
    weight_decays: tuple[float, ...] = Field((5e-4, 5e-5, 5e-6), min_length=1, description="weight decays to draw from")
    selection: Literal["uniform", "greedy"] = Field("uniform", description="which candidates the mean is of")
    dropout_stream: Literal["shared", "own"] = Field("shared", description="random numbers that candidates drop by")

    @property
    def trainings(self) -> int:
        """Each candidate takes its own."""
        return self.candidates

    @field_validator("lrs", "batches", "dropouts", "weight_decays")
    @classmethod
    def _not_negative(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if min(values) < 0:
            raise ValueError(f"{min(values)} is negative; give numbers from 0 on.")
        return values

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError where clients hold no validation data, train for steps, or keep moments."""
        require_held_out(experiment, self.name())
        local = experiment.local
        if local.steps is not None or local.persist_optimizer:
            what = "local.steps" if local.steps is not None else "local.persist_optimizer"
            raise ValueError(
                f"{self.name()} trains many models for whole epochs with new optimisers; leave {what} out."
            )

    def local(self, client: Client) -> Update:
        """Train the candidates and mix them."""
        validation = validation_samples(client)
        candidates, steps, loss = [], 0, 0.0
        for number in range(self.candidates):
            candidate, update = self._candidate(client, number, validation)
            candidates.append(candidate)
            steps += update.steps
            loss += update.loss / self.candidates
        selected = candidates if self.selection == "uniform" else greedy(client, candidates, validation)
        mean = _load_mean(client, selected)
        buffers = recompute_statistics(client.flat, client.samples)
        count = torch.tensor(len(selected), dtype=torch.int64)
        return replace(update, theta=mean, buffers=buffers, steps=steps, loss=loss, report={"ingredients": count})

    def _candidate(self, client: Client, number: int, validation: Samples) -> tuple[Candidate, Update]:
        draw = rng(client.seed, *client.purpose("soup"), number)
        local = client.local.model_copy(
            update={
                "lr": float(draw.choice(self.lrs)),
                "batch": int(draw.choice(self.batches)),
                "weight_decay": float(draw.choice(self.weight_decays)),
            }
        )
        dropout = float(draw.choice(self.dropouts))
        job = replace(client, local=local, stream=number if self.dropout_stream == "own" else None)
        order, best = client.generator(f"candidate-{number}"), Candidate(client.start, client.buffers, float("inf"))

        def batches() -> Iterator[Samples]:
            nonlocal best
            for _ in range(local.epochs):
                yield from job.batches(epochs=1, order=order)
                wrong = validate(job, validation)[1]
                if wrong < best.error:
                    best = Candidate(job.flat.theta.clone(), job.flat.buffers.clone(), wrong)

        head = require_head(client.flat.module, self.name())
        handle = head.register_forward_pre_hook(
            lambda layer, received: (F.dropout(received[0], dropout, training=layer.training),)
        )
        try:
            update = job.train(batches=batches())
        finally:
            handle.remove()
        return best, update


def greedy(client: Client, candidates: list[Candidate], validation: Samples) -> list[Candidate]:
    """Candidates in order of their error, each kept if the mean with it has no larger error than without.

    Source: Wortsman et al. 2022, recipe 1.
    """
    ingredients: list[Candidate] = []
    least = float("inf")
    for candidate in sorted(candidates, key=lambda candidate: candidate.error):
        attempt = [*ingredients, candidate]
        _load_mean(client, attempt)
        recompute_statistics(client.flat, client.samples)
        wrong = validate(client, validation)[1]
        if wrong <= least:
            ingredients, least = attempt, wrong
    return ingredients


def _load_mean(client: Client, candidates: list[Candidate]) -> Tensor:
    """The mean model (d,) of candidates; it and their mean buffers are loaded into the client's workspace."""
    mean = torch.stack([candidate.theta for candidate in candidates]).mean(0)
    client.flat.load(mean, torch.stack([candidate.buffers for candidate in candidates]).mean(0))
    return mean
