"""Adaptive server optimisers on the mean update: what FedAdam, FedYogi and FedAdagrad have in common."""

from abc import abstractmethod
from math import sqrt
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from drift.config.method import Method
from drift.config.method_values import Beta, Cohort, Combined, Outcome, Setting, State


class FedOpt(Method):
    """The server treats the mean client update d (client minus start) as a negative gradient.

        M' = beta1 M + (1 - beta1) d,  V' by the subclass,  w' = w + server_lr M' / (sqrt(V') + tau)

    Every entry of w has its own M and V. A cohort without samples leaves everything as it is.
    """

    moments: ClassVar[tuple[str, ...]] = ("momentum", "variance", "steps")

    server_lr: float = Field(0.01, gt=0, description="eta_g")
    beta1: Beta = Field(0.9, description="share of M that stays per round")
    tau: float = Field(1e-3, gt=0, description="keeps the denominator from 0")
    initial_variance: float = Field(0.0, ge=0, description="V_0; tau^2 in Reddi et al.")

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """No momentum, V_0, no steps."""
        variance = torch.full_like(theta, self.initial_variance)
        return {"momentum": torch.zeros_like(theta), "variance": variance, "steps": torch.zeros((), dtype=torch.int64)}

    @abstractmethod
    def variance(self, before: Tensor, squares: Tensor) -> Tensor:
        """V' (d,) from V and the squared update, shape (d,)."""

    def rate(self, steps: int) -> float:
        """Server rate of step 1, 2, ..."""
        return self.server_lr

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """One step of the server's optimiser."""
        if not bool((cohort.sizes > 0).any()):
            return Outcome(cohort.theta, combined.weights, state, combined.extras)
        update = combined.theta - cohort.start
        momentum = torch.lerp(update, state["momentum"], self.beta1)
        variance = self.variance(state["variance"], update.square())
        steps = state["steps"] + 1
        end = cohort.theta + self.rate(int(steps)) * momentum / (variance.sqrt() + self.tau)
        after = {"momentum": momentum, "variance": variance, "steps": steps}
        return Outcome(end, combined.weights, after, combined.extras)


def bias_corrected(server_lr: float, beta1: float, beta2: float, steps: int) -> float:
    """Rate that undoes the pull of zero initial moments: server_lr sqrt(1 - beta2^t) / (1 - beta1^t)."""
    return server_lr * sqrt(1 - beta2**steps) / (1 - beta1**steps)
