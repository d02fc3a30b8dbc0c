"""FedDF, the ensemble of the clients distilled into their mean."""

from pydantic import Field

from drift.config.method_values import Cohort, Combined, Setting, State
from drift.methods._server_training import ServerTraining, active, distillation, last, logits, proxy
from drift.plugins.bundles import shipped_bundles
from drift.store.row_matrices import rows
from drift.training.model_layers import require_classes


class FedDF(ServerTraining):
    """w' minimises KL(softmax(z) || softmax(f_w(x))) over the proxy set from the mean of the clients on, where
    z = mean_k f_{w_k}(x) are the mean logits of the clients; labels are not used. No epochs: FedAvg.

    Source: Lin et al. 2020, algorithm 1; 100 epochs as in FedLAW; papers.md 2.3.
    """

    requires = (require_classes,)
    bundles = shipped_bundles("feddf")

    server_epochs: int = Field(100, ge=0, description="passes over the proxy set per round")

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The mean, taught by the clients."""
        samples, numbers = proxy(setting, self.name()), active(cohort)
        outputs = logits(setting, rows(cohort.clients, numbers), cohort.buffers[numbers], samples)
        teacher = outputs.mean(0).softmax(1)
        return Combined(last(self.trained(setting, cohort, self.server_epochs, distillation(teacher))), cohort.weights)
