"""FedAdagrad, Adagrad on the server."""

from torch import Tensor

from drift.methods._adaptive_server import FedOpt
from drift.plugins.bundles import shipped_bundles


class FedAdagrad(FedOpt):
    """V' = V + d^2 in w' = w + server_lr M' / (sqrt(V') + tau); the steps shrink for good.

    Unlike the paper: beta1 is 0.9 as for FedAdam, there 0; V_0 is 0, there tau^2.

    Source: Reddi et al. 2021, algorithm 2; other defaults as for FedAdam.
    """

    bundles = shipped_bundles("fedadagrad")

    def variance(self, before: Tensor, squares: Tensor) -> Tensor:
        """Sum of all squares."""
        return before + squares
