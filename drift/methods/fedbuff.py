"""FedBuff, buffered asynchronous aggregation in which late updates count less."""

from pydantic import Field

from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Setting, State


class FedBuff(Method):
    """w' = w + server_lr sum_k p_k s(tau_k) d_k, with s(tau) = (1 + tau)^-exponent.

    A round is one buffer: its clients.per_round updates are those that arrive between two steps of the server. d_k is
    the client's model minus the model that it started from, tau_k rounds before (clients.late). The factors are not
    scaled to sum 1, as in the paper, so that late cohorts step less far. Without late clients this is FedAvg.

    Unlike the paper: tau is drawn evenly from 0 to clients.late, there it follows from training times; p_k are the
    experiment's weights, there 1 / K (clients.weighting = "uniform"). The recorded weights are p_k s(tau_k), scaled to
    sum 1. Extras: staleness, the mean of s by p_k.

    Source: Nguyen et al. 2022, algorithm 1 and section 3 (s, exponent 0.5).
    """

    server_lr: float = Field(1.0, gt=0, description="eta_g")
    exponent: float = Field(0.5, ge=0, description="of the staleness weight; 0 weights late updates like others")

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The start plus the weighted sum of the updates."""
        factors = cohort.weights * (1.0 + cohort.late.double()) ** -self.exponent
        theta = cohort.theta + self.server_lr * cohort.mean_update(factors)
        return Combined(theta, factors / factors.sum(), {"staleness": factors.sum()})
