"""FedBABU, a head that stays as it was initialised."""

from typing import ClassVar

from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.config.method_values import Setting
from drift.training.client import Client
from drift.training.correction import Correction
from drift.training.model_layers import freeze, head_mask, require_headed


class FedBABU(Method):
    """Clients train the body alone; the head keeps its initial values, common to all.

    The analysis `personal_accuracy` of the run has the final fine-tuning for personal models.

    Source: Oh et al. 2022, algorithm 1; a baseline of the LSS paper.
    """

    requires = (require_headed,)
    corrections: ClassVar[tuple[str, ...]] = ("the head that it holds moved by rounding",)

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError where the body is frozen, so that nothing would train."""
        if experiment.task.freeze_backbone:
            raise ValueError(
                f"{self.name()} trains the body alone and task.freeze_backbone the head alone; set "
                "task.freeze_backbone=false."
            )

    def holds(self, setting: Setting) -> Tensor:
        """The head: a mean of equal heads may differ from them in the last bit."""
        return head_mask(setting.task.model, setting.task.layout, self.name())

    def correction(self, client: Client) -> Correction | None:
        """The head held."""
        head = head_mask(client.flat.module, client.flat.layout, self.name()).to(client.start.device)
        return freeze(head, client.local.weight_decay)
