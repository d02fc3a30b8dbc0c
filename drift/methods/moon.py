"""MOON, model-contrastive federated learning."""

from dataclasses import replace
from typing import ClassVar

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from drift.config.method import Method
from drift.plugins.bundles import shipped_bundles
from drift.training.client import Client, Update
from drift.training.model_layers import features, features_at, require_headed
from landscape.model.bound_model import Flat
from landscape.model.losses import batch_mean
from landscape.model.samples import Samples


class Moon(Method):
    """Clients pull their features h towards those of the model they received and away from their own last model's.

    L_k(w) + mu mean_i -log( e^{cos(h, h_g)/T} / (e^{cos(h, h_g)/T} + e^{cos(h, h_p)/T}) ), with h_g by the received
    model and h_p by the client's previous one, at first the received one as well. mu = 0 is FedAvg. Features are what
    the head receives; those of the other two models are computed in eval mode.

    Source: Li et al. 2021, equations 2 and 3, algorithm 1.
    """

    requires = (require_headed,)
    stateful: ClassVar[bool] = True
    personal: ClassVar[bool | None] = False
    bundles = shipped_bundles("moon")

    mu: float = Field(1.0, ge=0, description="weight of the contrastive term; 5 for CIFAR-10 in the original")
    temperature: float = Field(0.5, gt=0, description="T, divides the cosines")

    def local(self, client: Client) -> Update:
        """Local training with the contrastive term; the result is the next round's previous model."""
        received = client.start.clone(), client.buffers.clone()
        before = client.state.get("theta", received[0]), client.state.get("buffers", received[1])

        def gradient(flat: Flat, batch: Samples) -> Tensor:
            near, far = (features_at(flat, *model, batch.inputs) for model in (received, before))
            flat.grad.zero_()
            outputs, feature = features(flat, lambda: flat.outputs(batch.inputs))
            loss = batch_mean(flat.loss, outputs, batch.targets.to(outputs.device))
            total = loss + self.mu * contrast(feature, near, far, self.temperature)
            total.backward()
            return total.detach()

        update = client.train() if self.mu == 0 else client.train(gradient=gradient)
        return replace(update, state={**update.state, "theta": update.theta, "buffers": update.buffers})


def contrast(feature: Tensor, near: Tensor, far: Tensor, temperature: float) -> Tensor:
    """Mean over samples of -log(e^{cos(h, h_g)/T} / (e^{cos(h, h_g)/T} + e^{cos(h, h_p)/T})), features (n, q).

    Source: Li et al. 2021, equation 2.
    """
    near_cosine = F.cosine_similarity(feature.flatten(1), near.flatten(1))
    far_cosine = F.cosine_similarity(feature.flatten(1), far.flatten(1))
    return F.softplus((far_cosine - near_cosine) / temperature).mean()
