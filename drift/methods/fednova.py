"""FedNova, updates normalised by how far each client went."""

import torch
from pydantic import Field
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Setting, State


class FedNova(Method):
    """w' = w + server_lr (sum_k p_k a_k) sum_k p_k d_k / a_k, with d_k the client updates, client minus start.

    a_k counts the client's tau_k steps with their momentum rho: a = (tau - rho (1 - rho^tau) / (1 - rho)) / (1 - rho),
    which is tau for plain SGD. With equal tau this is FedAvg.

    The recorded weights are p_k / a_k, scaled to sum 1. Extras: nova_scale, the factor of the mean by these
    weights.

    Source: Wang et al. 2020, equations 6 and 9; Zhou et al. 2024, table I.
    """

    server_lr: float = Field(1.0, gt=0, description="eta_g")

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError unless clients train by SGD, which the normalisation is for."""
        if experiment.local.optimizer != "sgd":
            raise ValueError(
                f"fednova counts steps of SGD and local.optimizer is {experiment.local.optimizer!r}; "
                "set local.optimizer=sgd."
            )

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The normalised mean."""
        lengths = path_length(cohort.steps.double(), setting.experiment.local.momentum)
        shares = torch.where(lengths > 0, cohort.weights.double(), 0.0)
        if not bool(shares.any()):
            return Combined(cohort.weighted_mean, cohort.weights)
        shares = shares / shares.sum()
        normalised = torch.where(lengths > 0, shares / lengths.clamp(min=1e-12), 0.0)
        scale = (shares @ lengths) * normalised.sum()
        weights = normalised / normalised.sum()
        theta = cohort.start + self.server_lr * float(scale) * cohort.mean_update(weights)
        return Combined(theta, weights, {"nova_scale": scale})


def path_length(steps: Tensor, momentum: float) -> Tensor:
    """a (m,) of `steps` (m,) SGD steps with momentum: the sum of the weights that all gradients get.

    Source: Wang et al. 2020, section 4.2.
    """
    if momentum == 0:
        return steps
    return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)
