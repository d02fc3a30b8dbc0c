"""FedSAM, sharpness-aware local training."""

from pydantic import Field

from drift.config.method import Method
from drift.methods._sam import Ascent
from drift.training.client import Client, Update


class FedSAM(Method):
    """Clients step along the gradient at w + rho g / |g|, with g the minibatch gradient at w; rho = 0 is FedAvg.

    Source: Caldarola et al. 2022, section 4; Qu et al. 2022, algorithm 1; Zhou et al. 2024 (IMA), rho = 0.1. The
    former also averages on the server with a cyclic local rate: method ima without feedback, with late = "cyclic".
    """

    rho: float = Field(0.1, ge=0, description="radius of the ascent")

    def local(self, client: Client) -> Update:
        """Two gradients per minibatch."""
        return client.train(gradient=Ascent(self.rho).gradient)
