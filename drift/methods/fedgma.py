"""FedGMA, gradient-masked averaging."""

from typing import Literal

import torch
from pydantic import Field

from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Outcome, Setting, State
from drift.plugins.bundles import shipped_bundles
from drift.store.row_matrices import rows


class FedGMA(Method):
    """w' = w + server_lr mask * d, where the mask damps the entries of the mean update d that clients disagree on.

    The agreement of an entry is A = |mean_k sign(d_k)| over the clients with samples; the mask is 1 where A is at least
    the threshold, elsewhere A (soft) or 0 (and). A threshold of 0 is FedAvg. Extras: agreement, the mean of A, and
    masked, the share of entries below the threshold.

    The IMA paper's code adds 1e-4 / m times such a term to the mean of the models, which is FedAvg to all printed
    digits; use fedavg for that column (papers.md 2.2).

    Source: Tenison et al. 2023, algorithm 1; threshold of Zhou et al. 2024, section 7.
    """

    bundles = shipped_bundles("fedgma")

    server_lr: float = Field(1.0, gt=0, description="eta_g")
    threshold: float = Field(0.8, ge=0, le=1, description="agreement from which an entry passes whole")
    mask: Literal["soft", "and"] = Field("soft", description="below the threshold: the agreement (soft), or 0 (and)")

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """The masked step."""
        active = cohort.sizes > 0
        if not bool(active.any()):
            return Outcome(cohort.theta, combined.weights, state, combined.extras)
        signs = torch.zeros_like(cohort.start)
        for model in rows(cohort.clients, active.nonzero().flatten().tolist()):
            signs += (model - cohort.start).sign()
        agreement = signs.abs() / int(active.sum())
        passes = agreement >= self.threshold
        mask = torch.where(passes, 1.0, agreement if self.mask == "soft" else 0.0).to(agreement)
        end = cohort.theta + self.server_lr * mask * (combined.theta - cohort.start)
        extras = {"agreement": agreement.mean().double(), "masked": (~passes).double().mean()}
        return Outcome(end, combined.weights, state, {**combined.extras, **extras})
