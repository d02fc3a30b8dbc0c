"""FedFomo: every client starts from its own mixture of other clients' models, weighted by how much they help."""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Outcome, Setting, State
from drift.config.random_keys import rng
from drift.plugins.bundles import shipped_bundles
from drift.store.row_matrices import release
from drift.training.client import Client, Update
from drift.training.validation import require_held_out, validate, validation_samples
from landscape.model.samples import Samples
from landscape.model.task import Task

MOST_AFFINE = 10_000
"""Clients between which affinities are kept at most."""


class FedFomo(Method):
    """Client k starts at sum_j a_j w_j over up to `models` models w_j of the last cohort, other clients' ones, with

        a_j = max(0, (L_val(v) - L_val(w_j)) / (|w_j - v| + 1e-5)),  scaled to sum 1,

    where v is the client's own last model, at first the one it receives; it starts at v where no other model is better.
    L_val is the loss on what the client holds out. The global model, which is evaluated, is the mean of the clients.

    With choice = "affinity" a client receives the M models of the largest affinity P_kj: P is the identity at first,
    and every training of k adds the terms above, before max and scaling, to its row.

    Source: Zhang et al. 2021, equations 3 and 4 (there v + sum_j a_j (w_j - v), the same as a sums to 1).
    """

    stateful: ClassVar[bool] = True
    personal: ClassVar[bool | None] = False
    sends: ClassVar[tuple[str, ...]] = ("models", "models_buffers", "models_ids", "affinity")
    bundles = shipped_bundles("fedfomo")

    models: int = Field(5, ge=1, description="M, most models that a client receives")
    validation: Literal["held_out", "train"] = Field("held_out", description="data of L_val; train as in LSS's code")
    baseline: Literal["last", "before_training"] = Field(
        "last", description="v: the client's last model, or what its last training began from as in LSS's code"
    )
    own_candidate: bool = Field(False, description="the client's last model is a candidate too, as in LSS's code")
    choice: Literal["random", "affinity"] = Field(
        "random", description="which M models a client receives; affinity as in LSS's code"
    )

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError where clients hold no validation data."""
        if self.validation == "held_out":
            require_held_out(experiment, self.name())
        if self.choice == "affinity" and experiment.clients.number > MOST_AFFINE:
            raise ValueError(
                f"choice = 'affinity' keeps the square of {experiment.clients.number} numbers; at most {MOST_AFFINE} "
                "clients. Lower clients.number or set method.choice=random."
            )

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """Every client close to itself alone, where affinity chooses; else nothing."""
        return {"affinity": torch.eye(setting.experiment.clients.number)} if self.choice == "affinity" else {}

    def client_numbers(self, task: Task) -> int:
        """Its model, and the start of its last training where that is the baseline."""
        return super().client_numbers(task) * (2 if self.baseline == "before_training" else 1)

    def transferred(self, setting: Setting, client: Client, update: Update) -> tuple[float, float]:
        """Models of other clients down, after round 0; the affinities that they are chosen by stay with the server."""
        down, up = super().transferred(setting, replace(client, server={}), update)
        if "models" in client.server:
            down *= int((client.server["models_ids"][self._select_models(client)] != client.id).sum())
        return down, up

    def prepare(self, client: Client) -> Client:
        """The client at its own mixture."""
        ready = client
        if "theta" in client.state:
            ready = replace(client, start=client.state["theta"], buffers=client.state["buffers"])
        if "models" in client.server:
            samples = validation_samples(client) if self.validation == "held_out" else client.samples
            ready = self._mixed(ready, samples)
        return ready

    def finish(self, client: Client, update: Update) -> Update:
        """The client's model, and its start if baseline = "before_training", stored for the next round."""
        state = {**update.state, "theta": update.theta, "buffers": update.buffers}
        if self.baseline == "before_training":
            state |= {"begun": client.start, "begun_buffers": client.buffers}
        if self.choice == "random":
            return replace(update, state=state)
        nothing = torch.zeros(len(client.server["affinity"]), device=client.start.device)
        return replace(update, report={"affinity": state.pop("gains", nothing)}, state=state)

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """The mean; the cohort's models are kept for the next round, and affinities grow by what the clients found."""
        after = {"models": cohort.clients, "models_buffers": cohort.buffers, "models_ids": cohort.ids}
        if self.choice == "affinity":
            after["affinity"] = state["affinity"].index_add(0, cohort.ids, cohort.reports["affinity"])
        return Outcome(combined.theta, combined.weights, after, combined.extras)

    def _mixed(self, client: Client, samples: Samples) -> Client:
        selected = self._select_models(client)
        theta, buffers = client.server["models"][selected], client.server["models_buffers"][selected]
        release(client.server["models"])
        measured = client
        if self.baseline == "before_training" and "begun" in client.state:
            measured = replace(client, start=client.state["begun"], buffers=client.state["begun_buffers"])
        gains = helpfulness(measured, theta, buffers, samples)
        if self.choice == "affinity":
            row = torch.zeros(len(client.server["affinity"]), device=client.start.device)
            row[client.server["models_ids"][selected]] = torch.where(gains.isfinite(), gains, 0).to(row)
            client = replace(client, state={**client.state, "gains": row})
        shares = shares_of(gains)
        if not bool(shares.any()):
            return client
        return replace(client, start=shares.to(theta) @ theta, buffers=shares.to(buffers) @ buffers)

    def _select_models(self, client: Client) -> np.ndarray:
        ids = client.server["models_ids"].cpu()
        allowed = (torch.ones_like(ids) if self.own_candidate else ids != client.id).nonzero().flatten()
        if self.choice == "random":
            return rng(client.seed, *client.purpose("fomo")).permutation(allowed.numpy())[: self.models]
        near = client.server["affinity"][client.id].cpu()[ids[allowed]]
        return allowed[near.argsort(descending=True, stable=True)[: self.models]].numpy()


def shares_of(gains: Tensor) -> Tensor:
    """Shares (M,) in the proportion of positive gains (M,), summing to 1; all 0 where there are none."""
    positive = gains.nan_to_num(nan=0.0).clamp(min=0)
    return positive / positive.sum() if float(positive.sum()) > 0 else positive


def helpfulness(client: Client, theta: Tensor, buffers: Tensor, samples: Samples) -> Tensor:
    """(L_val(v) - L_val(w_j)) / (|w_j - v| + 1e-5) of models (M, d) with buffers (M, b), with v the client's start."""
    client.flat.load(client.start, client.buffers)
    loss = validate(client, samples)[0]
    gains = []
    for model, statistics in zip(theta, buffers, strict=True):
        client.flat.load(model, statistics)
        distance = float((model - client.start).norm()) + 1e-5
        gains.append((loss - validate(client, samples)[0]) / distance)
    return torch.tensor(gains, dtype=torch.float64)
