"""FedAvg with a fixed shrinking factor."""

from pydantic import Field

from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Setting, State


class Shrink(Method):
    """w' = gamma sum_k p_k w_k, with one factor gamma in every round; 1 is FedAvg.

    The recorded weights sum to gamma.

    Source: Li et al. 2023 (FedLAW), section 4.1, figure 1, tables 1 and 9: 1, 0.99, 0.97, 0.95, 0.93, 0.9.
    """

    gamma: float = Field(0.97, gt=0, le=1, description="shrinking factor")

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The mean, shrunk."""
        return Combined(self.gamma * cohort.weighted_mean, self.gamma * cohort.weights)
