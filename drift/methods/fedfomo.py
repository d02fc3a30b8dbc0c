"""FedFomo, a start of one's own for every client: the other clients' models weighted by how much they help."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.keys import rng
from drift.method import Cohort, Combined, Method, Outcome, Setting, State
from drift.validation import require_held_out, validated, validation_samples

if TYPE_CHECKING:
    from drift.client import Client, Update
    from drift.experiment import Experiment
    from landscape.samples import Samples


class FedFomo(Method):
    """Client k starts at sum_j a_j w_j over up to `models` models w_j of the last cohort, other clients' ones, with

        a_j = max(0, (L_val(v) - L_val(w_j)) / (|w_j - v| + 1e-5)),  scaled to sum 1,

    where v is the client's own last model, at first the one it receives; it starts at v where no other model is better.
    L_val is the loss on what the client holds out; the LSS paper's code takes the training data. The global model,
    which is what gets evaluated, is the mean of the clients.

    Source: Zhang et al. 2021, equations 3 and 4 (there v + sum_j a_j (w_j - v), the same as a sums to 1).
    """

    stateful: ClassVar[bool] = True
    sends: ClassVar[tuple[str, ...]] = ("models", "models_buffers", "models_ids")

    models: int = Field(5, ge=1, description="M, most models that a client receives")
    validation: Literal["held_out", "train"] = Field("held_out", description="data of L_val; train as in LSS's code")

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError where clients hold no validation data."""
        if self.validation == "held_out":
            require_held_out(experiment, self.name())

    def prepare(self, client: Client) -> Client:
        """The client at its own mixture."""
        begun = client
        if "theta" in client.state:
            begun = replace(client, start=client.state["theta"], buffers=client.state["buffers"])
        if "models" in client.server:
            samples = validation_samples(client) if self.validation == "held_out" else client.samples
            begun = self._mixed(begun, samples)
        return begun

    def finish(self, client: Client, update: Update) -> Update:
        """The client's model, kept for the next round."""
        return replace(update, state={**update.state, "theta": update.theta, "buffers": update.buffers})

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """The mean; the cohort's models are kept for the next round."""
        kept = {"models": cohort.clients, "models_buffers": cohort.buffers, "models_ids": cohort.ids}
        return Outcome(combined.theta, combined.weights, kept, combined.extras)

    def _mixed(self, client: Client, samples: Samples) -> Client:
        """The client at the mixture of other clients' models."""
        others = (client.server["models_ids"] != client.id).nonzero().flatten().numpy()
        chosen = rng(client.seed, *client.purpose("fomo")).permutation(others)[: self.models]
        theta, buffers = client.server["models"][chosen], client.server["models_buffers"][chosen]
        shares = usefulness(client, theta, buffers, samples)
        if not bool(shares.any()):
            return client
        return replace(client, start=shares.to(theta) @ theta, buffers=shares.to(buffers) @ buffers)


def usefulness(client: Client, theta: Tensor, buffers: Tensor, samples: Samples) -> Tensor:
    """Shares a (M,) of models (M, d) with buffers (M, b), summing to 1; all 0 where none beats the client's start."""
    client.flat.load(client.start, client.buffers)
    own = validated(client, samples)[0]
    gains = []
    for model, held in zip(theta, buffers, strict=True):
        client.flat.load(model, held)
        distance = float((model - client.start).norm()) + 1e-5
        gains.append(max(0.0, own - validated(client, samples)[0]) / distance)
    found = torch.tensor(gains, dtype=torch.float64)
    return found / found.sum() if float(found.sum()) > 0 else found
