"""FedAdam, Adam on the server."""

from pydantic import Field
from torch import Tensor

from drift.config.method_values import Beta
from drift.methods._adaptive_server import FedOpt, bias_corrected
from drift.plugins.bundles import shipped_bundles


class FedAdam(FedOpt):
    """V' = beta2 V + (1 - beta2) d^2 in w' = w + server_lr M' / (sqrt(V') + tau), with d the mean client update.

    The FedEve paper's "FedOpt" has server_lr 0.001 and tau 3e-4 (FEMNIST) or 1e-4; FedLAW's code has server_lr 1
    and tau 1e-5.

    Unlike the paper: V_0 is 0 as in the papers' codes, there tau^2 (initial_variance); no bias correction, as there.

    Source: Reddi et al. 2021, algorithm 2; Zhou et al. 2024, table V.
    """

    bundles = shipped_bundles("fedadam")

    beta2: Beta = Field(0.99, description="share of V that stays per round")
    bias_correction: bool = Field(False, description="as in newer versions of Flower; not in the papers' codes")

    def variance(self, before: Tensor, squares: Tensor) -> Tensor:
        """Moving average of the squares."""
        return self.beta2 * before + (1 - self.beta2) * squares

    def rate(self, steps: int) -> float:
        """The rate, corrected on request."""
        return bias_corrected(self.server_lr, self.beta1, self.beta2, steps) if self.bias_correction else self.server_lr
