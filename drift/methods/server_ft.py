"""Server-FT, the mean of the clients fine-tuned on the proxy set."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from drift.config.method_values import Cohort, Combined, Setting, State
from drift.methods._server_training import CODE, LACKS, PAPER, ServerTraining, last, proxy
from drift.plugins.bundles import Bundle
from landscape.model.losses import batch_mean


class ServerFT(ServerTraining):
    """w' = the mean of the clients after a few epochs of cross-entropy on the labelled proxy set; no epochs: FedAvg.

    Source: Li et al. 2023 (FedLAW), baseline of tables 4 and 8; papers.md 2.3.
    """

    bundles: ClassVar[dict[str, Bundle]] = {
        "paper": Bundle("FedLAW paper", {"server_epochs": 2, **PAPER}, lacks="the server's rate, which is not printed"),
        "code": Bundle("FedLAW's code (methods.md LAW-7)", {"server_epochs": 2, **CODE}, lacks=LACKS),
    }

    server_epochs: int = Field(2, ge=0, description="passes over the proxy set per round")

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The mean, fine-tuned."""
        targets, loss = proxy(setting, self.name()).targets, setting.task.per_sample
        models = self.trained(
            setting, cohort, self.server_epochs, lambda outputs, where: batch_mean(loss, outputs, targets[where])
        )
        return Combined(last(models), cohort.weights)
