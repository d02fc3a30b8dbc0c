"""SCAFFOLD, control variates against client drift."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.correction import Correction
from drift.method import Cohort, Combined, Method, Outcome, Setting, State, Weighting, averaging, weighted

if TYPE_CHECKING:
    from drift.client import Client, Update
    from drift.experiment import Experiment


class Scaffold(Method):
    """Clients step w <- w - lr (g - c_k + c), with controls c_k of their own and c of the server, all 0 at first.

    After tau steps the client keeps c_k' = c_k - c + (b - w_k) / (tau lr) (option II), with b what it received; then
    w' = w + server_lr mean_k (w_k - b) and c' = c + 1/K sum_k (c_k' - c_k), over the cohort; K counts all clients.
    A client that took no step changes nothing. With frozen controls of 0 this is FedAvg.

    With c_update = "cohort_mean" and weighting = "samples", c follows the weighted mean of the cohort without the
    factor m / K, as in the FedEve author's code, which diverges for that reason (5.13 % and 1 % in that paper).

    Source: Karimireddy et al. 2020, algorithm 1; methods.md 2.1.
    """

    stateful: ClassVar[bool] = True
    sends: ClassVar[tuple[str, ...]] = ("control",)

    server_lr: float = Field(1.0, gt=0, description="eta_g")
    weighting: Weighting = Field("uniform", description="mean of the cohort; samples as in FedAvg")
    c_update: Literal["all", "cohort_mean"] = Field("all", description="all divides by K as in the paper")

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError unless clients train by SGD without momentum, whose steps the controls measure."""
        local = experiment.local
        if local.optimizer != "sgd" or local.momentum != 0:
            raise ValueError(
                f"scaffold needs SGD without momentum; local.optimizer is {local.optimizer!r} and local.momentum "
                f"{local.momentum:g}; set local.optimizer=sgd and local.momentum=0.0."
            )

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """The server's control, 0."""
        return {"control": torch.zeros_like(theta)}

    def correction(self, client: Client) -> Correction | None:
        """c - c_k."""
        return Correction(shift=client.server["control"] - _control(client))

    def finish(self, client: Client, update: Update) -> Update:
        """The client's new control, and how it changed."""
        own = fresh = _control(client)
        if update.steps:
            moved = (client.start - update.theta) / (update.steps * client.local.lr)
            fresh = own - client.server["control"] + moved
        state = {**update.state, "control": fresh}
        return replace(update, state=state, report={"control_change": fresh - own})

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """Mean of the cohort."""
        weights = averaging(cohort, self.weighting)
        return Combined(weighted(weights, cohort.clients), weights)

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """A step along the mean update, and the server's new control."""
        changes = cohort.reports["control_change"]
        if self.c_update == "cohort_mean":
            change = weighted(averaging(cohort, self.weighting), changes)
        else:
            change = changes.sum(0) / setting.experiment.clients.number
        end = combined.theta
        if self.server_lr != 1:
            end = cohort.theta + self.server_lr * (combined.theta - cohort.start)
        return Outcome(end, combined.weights, {"control": state["control"] + change}, combined.extras)


def _control(client: Client) -> Tensor:
    return client.state.get("control", torch.zeros_like(client.start))
