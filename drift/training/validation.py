"""Validation on a client: loss and error of its model on held-out data."""

import torch

from drift.config.experiment import Experiment
from drift.training.client import Client
from landscape.model.binary_losses import binary_error
from landscape.model.losses import loss_blocks
from landscape.model.metrics import Means
from landscape.model.samples import Samples
from landscape.model.task import error


def require_held_out(experiment: Experiment, method: str) -> None:
    """Raise ValueError for an experiment whose clients hold out no validation data."""
    if experiment.clients.valid_ratio == 0:
        raise ValueError(
            f"{method} validates on the client's own data and none are held out; set clients.valid_ratio=0.2."
        )


def validation_samples(client: Client) -> Samples:
    """The held-out samples of a client; its training data if it has too few to hold any out."""
    return client.held_out if client.held_out is not None and len(client.held_out) else client.samples


@torch.no_grad()
def validate(client: Client, samples: Samples) -> tuple[float, float]:
    """Mean loss (nats) and error (fraction) of the model in the client's workspace, in eval mode; its mode stays."""
    flat, training = client.flat, client.flat.module.training
    flat.training(False)
    means: list[Means] = []
    for block in loss_blocks(flat.loss, samples, 512)[0]:
        outputs, targets = flat.outputs(block.inputs), block.targets.to(client.start.device)
        if not means:
            single = outputs.ndim < 2 or outputs.shape[1] == 1
            means = [Means(flat.loss, 1, None), Means(binary_error if single else error, 1, None)]
        for mean in means:
            mean.add(0, outputs, targets, None)
    flat.training(training)
    loss, wrong = (float(mean.result()) for mean in means) if means else (0.0, 0.0)
    return loss, wrong
