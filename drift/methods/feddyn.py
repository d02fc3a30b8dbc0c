"""FedDyn, a dynamic regulariser that aligns the clients' optima with the server's."""

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Outcome, Setting, State, Weighting, averaging
from drift.plugins.bundles import shipped_bundles
from drift.store.column_blocks import summed_models, weighted_models
from drift.training.client import Client, Update
from drift.training.correction import Correction


class FedDyn(Method):
    """Clients minimise L_k(w) - <h_k, w> + alpha/2 |w - b|^2 and keep h_k' = h_k - alpha (w_k - b), 0 at first.

    The server keeps h' = h - alpha/K sum_k (w_k - b) over the cohort, K counting all clients, and sets
    w' = mean_k w_k - h' / alpha. Clients without samples are left out.

    Unlike the paper: gradients are clipped at norm 10, as in its authors' code.

    Source: Acar et al. 2021, algorithm 1; alpha of FedLAW's text.
    """

    stateful: ClassVar[bool] = True
    personal: ClassVar[bool | None] = False
    bundles = shipped_bundles("feddyn")

    alpha: float = Field(0.01, gt=0, description="weight of the regulariser")
    clip: float | None = Field(10.0, gt=0, description="largest norm of a local gradient; absent: any")
    norm: Literal["squared", "plain"] = Field("squared", description="of w - b in the local objective")
    h_update: Literal["all", "cohort_mean"] = Field("all", description="all divides by K as in the paper")
    weighting: Weighting = Field("uniform", description="mean of the cohort; samples as in FedAvg")

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """The server's dual variable, 0."""
        return {"dual": torch.zeros_like(theta)}

    def correction(self, client: Client) -> Correction | None:
        """alpha (w - b) - h_k, with the sum clipped."""
        plain = self.norm == "plain"
        return Correction(self.alpha, client.start, unit=plain, shift=-_dual(client), clip=self.clip)

    def finish(self, client: Client, update: Update) -> Update:
        """The client's new dual variable."""
        dual = _dual(client) - self.alpha * (update.theta - client.start)
        return replace(update, state={**update.state, "dual": dual})

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """Mean of the cohort."""
        weights = averaging(cohort, self.weighting)
        return Combined(weighted_models(weights, cohort.clients), weights)

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """The mean, moved by the dual variable."""
        if not bool((cohort.sizes > 0).any()):
            return Outcome(cohort.theta, combined.weights, state, combined.extras)
        if self.h_update == "cohort_mean":
            drift = cohort.mean_update(averaging(cohort, self.weighting))
        else:
            drift = summed_models(cohort.clients, cohort.start, cohort.sizes > 0) / setting.experiment.clients.number
        dual = state["dual"] - self.alpha * drift
        return Outcome(combined.theta - dual / self.alpha, combined.weights, {"dual": dual}, combined.extras)


def _dual(client: Client) -> Tensor:
    return client.state.get("dual", torch.zeros_like(client.start))
