"""FedAvgM, momentum on the server."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.config.method import Method
from drift.config.method_values import Beta, Cohort, Combined, Outcome, Setting, State
from drift.plugins.bundles import shipped_bundles


class FedAvgM(Method):
    """M' = beta M + (1 - beta) d and w' = w + server_lr M', with d the mean client update, client minus start.

    FedEve's gain takes the place of 1 - beta. With form = "sum", M' = beta M + d. Nesterov's step is
    beta M' + (1 - beta) d, or beta M' + d. beta = 0 is FedAvg.

    Unlike the paper: form is ema, as in FedEve's code; the sum's steps are 1 / (1 - beta) times as long.

    Source: Hsu et al. 2019, section 4.3 (sum); the FedEve author's code (ema, 0.9, rate 1).
    """

    moments: ClassVar[tuple[str, ...]] = ("momentum",)
    bundles = shipped_bundles("fedavgm")

    server_lr: float = Field(1.0, gt=0, description="eta_g")
    beta: Beta = Field(0.9, description="share of the momentum that stays per round")
    form: Literal["ema", "sum"] = Field("ema", description="ema as in FedEve's code; sum as in the original and Flower")
    nesterov: bool = Field(False, description="go on from the new momentum")

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """No momentum."""
        return {"momentum": torch.zeros_like(theta)}

    def momentum(self, state: State) -> Tensor | None:
        """The moving average of the mean updates."""
        return state["momentum"] * (1.0 if self.form == "ema" else 1 - self.beta)

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """A step along the momentum; a cohort without samples leaves everything as it is."""
        if not bool((cohort.sizes > 0).any()):
            return Outcome(cohort.theta, combined.weights, state, combined.extras)
        fresh = (combined.theta - cohort.start) * (1 - self.beta if self.form == "ema" else 1.0)
        momentum = self.beta * state["momentum"] + fresh
        direction = self.beta * momentum + fresh if self.nesterov else momentum
        end = cohort.theta + self.server_lr * direction
        return Outcome(end, combined.weights, {"momentum": momentum}, combined.extras)
