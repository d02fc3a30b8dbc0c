"""FedProx, a proximal term that holds clients near what they received."""

from pydantic import Field

from drift.config.method import Method
from drift.plugins.bundles import shipped_bundles
from drift.training.client import Client
from drift.training.correction import Correction


class FedProx(Method):
    """Clients minimise L_k(w) + mu/2 |w - b|^2, with b the model they received; mu = 0 is FedAvg.

    IMA takes the best of 0.1, 0.01, 0.001 (its code 0.01, and 0.1 for Digit-Five and PACS), FedLAW 0.001, FedEve 1.

    Unlike the paper: steps have the momentum and weight decay of the local settings, which FedLAW's code drops for this
    method.

    Source: Li et al. 2020, algorithm 2.
    """

    bundles = shipped_bundles("fedprox")

    mu: float = Field(0.01, ge=0, description="weight of the proximal term")

    def correction(self, client: Client) -> Correction | None:
        """mu (w - b), added to every gradient."""
        return Correction(pull=self.mu, anchor=client.start) if self.mu > 0 else None
