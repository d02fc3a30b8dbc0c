"""FedAvg, the plain average of the clients."""

from pydantic import Field

from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Outcome, Setting, State
from drift.plugins.bundles import shipped_bundles


class FedAvg(Method):
    """w_{t+1} = w_t + server_lr sum_k p_k (w_k - w_t), with p_k the share of samples; FMA in the IMA paper.

    server_lr = 1, the default of every paper, is the weighted mean of the clients.

    Unlike the paper: local.momentum is 0.9 by default here, there 0; clients start a new optimiser every round, without
    the momentum that FedLAW's code keeps (local.persist_optimizer).

    Source: McMahan et al. 2017, algorithm 1; Zhou et al. 2024, section 3.1.1; Li et al. 2023, equations 2 and 3.
    """

    bundles = shipped_bundles("fedavg")

    server_lr: float = Field(1.0, gt=0, description="eta_g: scales the mean update")

    @property
    def averages(self) -> bool:
        """Whether the step goes to the mean and not beyond."""
        return self.server_lr == 1

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """The aggregate, or a longer or shorter step towards it."""
        end = combined.theta
        if self.server_lr != 1:
            end = cohort.theta + self.server_lr * (combined.theta - cohort.start)
        return Outcome(end, combined.weights, state, combined.extras)
