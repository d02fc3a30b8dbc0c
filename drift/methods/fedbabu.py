"""FedBABU, a head that stays as it was initialised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.method import Method, Setting, State
from drift.parts import frozen, head_mask, require_head

if TYPE_CHECKING:
    from torch import Tensor

    from drift.client import Client, Update


class FedBABU(Method):
    """Clients train the body alone; the head keeps its initial values, common to all, for good.

    The aggregated model is evaluated with that head. Fine-tuning for personal models is not part of the run.

    Source: Oh et al. 2022, algorithm 1; a baseline of the LSS paper.
    """

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """Nothing; the model is checked for a head."""
        require_head(setting.task.model, self.name())
        return {}

    def local(self, client: Client) -> Update:
        """Local training with the head held."""
        head = head_mask(client.flat.module, client.flat.layout, self.name()).to(client.start.device)
        return client.train(frozen(head, client.local.weight_decay))
