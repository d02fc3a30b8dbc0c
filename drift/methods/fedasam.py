"""FedASAM, sharpness-aware local training that adapts to the scale of each weight."""

from pydantic import Field

from drift.config.method import Method
from drift.methods._sam import Ascent
from drift.training.client import Client, Update


class FedASAM(Method):
    """Clients step along the gradient at w + rho T^2 g / |T g|, T = |w| + eta on weights and 1 on biases.

    Defaults are for the small networks; the IMA paper has rho = 0.2 and eta = 0.05 for larger ones. rho = 0 is FedAvg.

    Source: Caldarola et al. 2022, section 4; Kwon et al. 2021, algorithm 1; Zhou et al. 2024 (IMA), table V.
    """

    rho: float = Field(0.7, ge=0, description="radius of the ascent")
    eta: float = Field(0.2, ge=0, description="added to the size of a weight")

    def local(self, client: Client) -> Update:
        """Two gradients per minibatch."""
        return client.train(gradient=Ascent(self.rho, self.eta).gradient)
