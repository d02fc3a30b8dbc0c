"""DP-FedAvg, clipped updates and Gaussian noise."""

from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Outcome, Setting, State
from drift.config.random_keys import generator
from drift.training.client import Client, Update


class DPFedAvg(Method):
    """w' = w + sum_k d_k min(1, C / |d_k|) / (q W) + N(0, (z C / (q W))^2), with d_k the client updates.

    C is `clip`, z is `noise`, the noise multiplier. All clients have weight 1, so that q W, the expected weight of a
    round, is clients.per_round even if fewer updates arrive. Clients clip before they send, the server adds noise.

    fedscape states z and computes no privacy budget. An accountant, such as that of Opacus or of dp-accounting,
    computes it from z, the share clients.per_round / clients.number and the number of rounds. The record holds all
    updates and is not private. Batch statistics are averaged as they are: a model without them suits better.

    Unlike the paper: cohorts have a fixed size; there every client joins with probability q.

    Extras: clip_factor of each client, sigma of the noise, and noise (d,). The recorded weights are equal.

    Source: McMahan et al. 2018, algorithm 1 with flat clipping, weights 1 and the fixed-denominator estimator.
    """

    extra_models: ClassVar[int] = 1
    changes_sent: ClassVar[bool] = True

    clip: float = Field(1.0, gt=0, description="C: largest norm of an update that passes as it is")
    noise: float = Field(0.1, ge=0, description="z: noise multiplier")

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError where clients change their updates after they were clipped."""
        if experiment.local.compress != "none":
            raise ValueError("dpfedavg clips updates, whose norms compression would change; set local.compress=none.")

    def finish(self, client: Client, update: Update) -> Update:
        """The update, clipped."""
        delta = update.theta - client.start
        factor = (self.clip / delta.double().norm()).clamp(max=1.0).nan_to_num(1.0)
        return replace(update, theta=client.start + delta * factor.to(delta), report={"clip_factor": factor})

    def mean_weights(self, experiment: Experiment, sizes: Tensor) -> Tensor:
        """Equal ones over the expected number of clients, also where fewer send."""
        return torch.full(sizes.shape, 1 / experiment.clients.per_round, dtype=torch.float64)

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The start plus the sum of the updates over the expected number of clients."""
        m, expected = len(cohort.ids), setting.experiment.clients.per_round
        weights = torch.full((m,), 1 / m, dtype=torch.float64)
        theta = cohort.theta + cohort.mean_update(weights) * (m / expected)
        return Combined(theta, weights, {"clip_factor": cohort.reports["clip_factor"]})

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """The aggregate with noise."""
        sigma = self.noise * self.clip / setting.experiment.clients.per_round
        source = generator(setting.experiment.seed, "privacy", cohort.index)
        noise = sigma * torch.randn(cohort.theta.shape, generator=source, dtype=cohort.theta.dtype)
        extras = {**combined.extras, "sigma": torch.tensor(sigma, dtype=torch.float64), "noise": noise}
        return Outcome(combined.theta + noise, combined.weights, state, extras)
