"""FedYogi, Yogi on the server."""

from pydantic import Field
from torch import Tensor

from drift.config.method_values import Beta
from drift.methods._adaptive_server import FedOpt
from drift.plugins.bundles import shipped_bundles


class FedYogi(FedOpt):
    """V' = V - (1 - beta2) d^2 sign(V - d^2) in w' = w + server_lr M' / (sqrt(V') + tau).

    Unlike the paper: V_0 is 0 as in the papers' codes, there tau^2 (initial_variance).

    Source: Reddi et al. 2021, algorithm 2; defaults of Zhou et al. 2024, table V.
    """

    bundles = shipped_bundles("fedyogi")

    beta2: Beta = Field(0.99, description="1 - beta2 is the share of a square that V moves by")

    def variance(self, before: Tensor, squares: Tensor) -> Tensor:
        """A step of the squares' size towards them."""
        return before - (1 - self.beta2) * squares * (before - squares).sign()
