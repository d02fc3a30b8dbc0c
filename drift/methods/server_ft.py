"""Server-FT, the mean of the clients fine-tuned on the proxy set."""

from pydantic import Field

from drift.config.method_values import Cohort, Combined, Setting, State
from drift.methods._server_training import ServerTraining, last, proxy
from drift.plugins.bundles import shipped_bundles
from landscape.model.losses import batch_mean


class ServerFT(ServerTraining):
    """w' = the mean of the clients after a few epochs of cross-entropy on the labelled proxy set; no epochs: FedAvg.

    Source: Li et al. 2023 (FedLAW), baseline of tables 4 and 8; papers.md 2.3.
    """

    bundles = shipped_bundles("server_ft")

    server_epochs: int = Field(2, ge=0, description="passes over the proxy set per round")

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The mean, fine-tuned."""
        targets, loss = proxy(setting, self.name()).targets, setting.task.per_sample
        models = self.trained(
            setting, cohort, self.server_epochs, lambda outputs, where: batch_mean(loss, outputs, targets[where])
        )
        return Combined(last(models), cohort.weights)
