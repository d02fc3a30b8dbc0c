"""FedBN, normalisation layers that stay with the clients."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from drift.method import Method, Setting, State
from drift.parts import norm_mask

if TYPE_CHECKING:
    from torch import Tensor

    from drift.client import Client, Update


class FedBN(Method):
    """Clients receive everything but the normalisation layers, whose parameters and statistics they keep.

    At first they have the ones they receive. They upload them as well: the global model, which is what gets evaluated,
    has the mean of the clients' normalisation layers. Layers are found by their type; the LSS paper's code looks for
    "bn" in the names of parameters.

    Source: Li et al. 2021, algorithm 1; a baseline of the LSS paper.
    """

    stateful: ClassVar[bool] = True

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """Nothing; the model is checked for normalisation layers."""
        norm_mask(setting.task.model, setting.task.layout, self.name())
        return {}

    def prepare(self, client: Client) -> Client:
        """The client with its own normalisation layers, once it has any."""
        own = _own(client)
        start = client.start.clone()
        if "norm" in client.state:
            start[own] = client.state["norm"]
        return replace(client, start=start, buffers=client.state.get("buffers", client.buffers))

    def finish(self, client: Client, update: Update) -> Update:
        """The normalisation layers to keep."""
        kept = {"norm": update.theta[_own(client)], "buffers": update.buffers}
        return replace(update, state={**update.state, **kept})


def _own(client: Client) -> Tensor:
    return norm_mask(client.flat.module, client.flat.layout, FedBN.name()).to(client.start.device)
