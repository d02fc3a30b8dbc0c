"""SCAFFOLD, control variates against client drift."""

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Outcome, Setting, State, Weighting, averaging
from drift.plugins.bundles import shipped_bundles
from drift.store.column_blocks import summed_models, weighted_models
from drift.training.client import Client, Update
from drift.training.correction import Correction


class Scaffold(Method):
    """Clients step w <- w - lr (g - c_k + c), with their own controls c_k and the server's c, all 0 at first.

    After tau steps the client keeps c_k' = c_k - c + (b - w_k) / (tau lr) (option II), with b what it received; then
    w' = w + server_lr mean_k (w_k - b) and c' = c + 1/K sum_k (c_k' - c_k), over the cohort; K counts all clients.
    A client that took no step changes nothing. With frozen controls of 0 this is FedAvg.

    With c_update = "cohort_mean" the change of c is the weighted mean over the cohort; with "new_controls" c is the
    weighted mean of the new controls c_k'.

    The FedEve author's code is another method: an in-place subtraction leaves the client with c - c_k' as its own
    control, and c and tau are computed otherwise (options). That paper reports 5.13 % and 1 %.

    Source: Karimireddy et al. 2020, algorithm 1; papers.md 2.1.
    """

    stateful: ClassVar[bool] = True
    personal: ClassVar[bool | None] = False
    sends: ClassVar[tuple[str, ...]] = ("control",)
    bundles = shipped_bundles("scaffold")

    server_lr: float = Field(1.0, gt=0, description="eta_g")
    weighting: Weighting = Field("uniform", description="mean of the cohort; samples as in FedAvg")
    c_update: Literal["all", "cohort_mean", "new_controls"] = Field(
        "all", description="all divides by K as in the paper; new_controls as in FedEve's code"
    )
    own_control: Literal["new", "difference"] = Field("new", description="c_k', or c - c_k' as in FedEve's code")
    step_count: Literal["taken", "rounded"] = Field(
        "taken", description="tau: steps taken, or E (floor(n / B) + 1) as in FedEve's code"
    )

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError unless clients train by SGD without momentum, whose steps the controls measure."""
        local = experiment.local
        if local.optimizer != "sgd" or local.momentum != 0:
            raise ValueError(
                f"scaffold needs SGD without momentum; local.optimizer is {local.optimizer!r} and local.momentum "
                f"{local.momentum:g}; set local.optimizer=sgd and local.momentum=0.0."
            )
        if self.step_count == "rounded" and local.steps is not None:
            raise ValueError("step_count = 'rounded' counts epochs, and local.steps replaces them; leave one out.")

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """The server's control, 0."""
        return {"control": torch.zeros_like(theta)}

    def correction(self, client: Client) -> Correction | None:
        """c - c_k."""
        return Correction(shift=client.server["control"] - _control(client))

    def finish(self, client: Client, update: Update) -> Update:
        """The client's new control, and how it changed."""
        control = fresh = stored = _control(client)
        if update.steps:
            moved = (client.start - update.theta) / (self._tau(client, update) * client.local.lr)
            fresh = control - client.server["control"] + moved
            stored = fresh if self.own_control == "new" else client.server["control"] - fresh
        report = fresh if self.c_update == "new_controls" else fresh - control
        return replace(update, state={**update.state, "control": stored}, report={self._reported: report})

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """Mean of the cohort."""
        weights = averaging(cohort, self.weighting)
        return Combined(weighted_models(weights, cohort.clients), weights)

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """A step along the mean update, and the server's new control."""
        reports = cohort.reports[self._reported]
        if self.c_update == "all":
            control = state["control"] + summed_models(reports) / setting.experiment.clients.number
        else:
            mean = weighted_models(averaging(cohort, self.weighting), reports)
            control = mean if self.c_update == "new_controls" else state["control"] + mean
        end = combined.theta
        if self.server_lr != 1:
            end = cohort.theta + self.server_lr * (combined.theta - cohort.start)
        return Outcome(end, combined.weights, {"control": control}, combined.extras)

    @property
    def _reported(self) -> str:
        return "new_control" if self.c_update == "new_controls" else "control_change"

    def _tau(self, client: Client, update: Update) -> int:
        if self.step_count == "taken":
            return update.steps
        return client.local.epochs * (len(client.samples) // client.local.batch + 1)


def _control(client: Client) -> Tensor:
    return client.state.get("control", torch.zeros_like(client.start))
