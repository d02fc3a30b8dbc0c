"""Training of the aggregated model on the server's proxy set, and the outputs of its teachers on it."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from drift.config.method import Method
from drift.config.method_values import Beta, Cohort, Setting
from drift.config.random_keys import generator
from landscape.model.adam import Adam
from landscape.model.batchnorm import recompute_statistics, use_batches
from landscape.model.samples import Samples

BatchLoss = Callable[[Tensor, Tensor], Tensor]
"""(outputs (n, C), sample numbers in the proxy set (n,)) -> loss ()."""


class ServerTraining(Method):
    """A server that trains the mean of the clients on its proxy set; what it minimises is the subclass's.

    Batch normalisation takes the statistics of each proxy batch; the new global model gets those of the whole set.
    Rates are not printed in the FedLAW paper; its code has SGD with 0.08 (LAW-7).
    """

    needs_proxy: ClassVar[bool] = True

    server_optimizer: Literal["adam", "sgd"] = Field("adam", description="adam in the paper's text, sgd in its code")
    server_lr: float = Field(1e-3, gt=0, description="not printed; tune it (sgd in FedLAW's code: 0.08)")
    server_betas: tuple[Beta, Beta] = Field((0.5, 0.999), description="of Adam")
    server_batch: int = Field(128, gt=0, description="proxy samples in a minibatch")

    def buffers(self, setting: Setting, end: Tensor, averaged: Tensor) -> Tensor:
        """Batch statistics of the new global model on the proxy set."""
        return proxy_statistics(setting, end, averaged)

    def trained(self, setting: Setting, cohort: Cohort, epochs: int, loss: BatchLoss) -> Iterable[Tensor]:
        """The mean of the clients (d,), then what it is after each epoch of minimising `loss` over the proxy set.

        Minibatches are shuffled, keyed by the round.
        """
        samples, start = proxy(setting, self.name()), cohort.weighted_mean
        flat, least = setting.task.flat(start), 2 if setting.task.layout.buffer_size else 1
        flat.load(start)
        use_batches(flat, True)
        adam = Adam([flat.theta], self.server_betas) if self.server_optimizer == "adam" else None
        order = generator(setting.experiment.seed, cohort.index, "server")
        yield start
        for _ in range(epochs):
            for numbers in torch.randperm(len(samples), generator=order).split(self.server_batch):
                if len(numbers) < least:
                    continue
                flat.grad.zero_()
                where = numbers.to(samples.targets.device)
                with torch.enable_grad():
                    loss(flat.outputs(samples[where].inputs), where).backward()
                if adam is None:
                    flat.theta.add_(flat.grad, alpha=-self.server_lr)
                else:
                    adam.step([flat.grad], self.server_lr)
            yield flat.theta.clone()


def proxy_statistics(setting: Setting, end: Tensor, averaged: Tensor) -> Tensor:
    """Floating buffers (b,) of a model (d,) by the statistics of the proxy set; `averaged` (b,) where there is none."""
    if setting.proxy is None:
        return averaged
    flat = setting.task.flat(end)
    flat.load(end, averaged)
    return recompute_statistics(flat, setting.proxy)


def proxy(setting: Setting, method: str) -> Samples:
    """The proxy set.

    Raises:
        ValueError: If the setting has none.
    """
    if setting.proxy is None or not len(setting.proxy):
        raise ValueError(f"{method} trains on a proxy set and the setting has none; set proxy.per_class=10.")
    return setting.proxy


def last(models: Iterable[Tensor]) -> Tensor:
    """The last of some models."""
    return deque(models, maxlen=1).pop()


def distillation(teacher: Tensor) -> BatchLoss:
    """KL(teacher || softmax of the outputs), mean over the batch, for the teacher's probabilities (n, C)."""
    return lambda outputs, where: F.kl_div(F.log_softmax(outputs, 1), teacher[where], reduction="batchmean")


def logits(setting: Setting, models: Iterable[Tensor], buffers: Tensor, samples: Samples) -> Tensor:
    """Outputs (M, n, C) of M models (d,) with buffers (M, b) in eval mode."""
    pairs = zip(models, buffers, strict=True)
    return torch.stack([setting.task.outputs(theta, samples, buffers=statistics) for theta, statistics in pairs])


def active(cohort: Cohort) -> list[int]:
    """Rows of the clients that have samples; of all clients where none has."""
    numbers: list[int] = (cohort.sizes > 0).nonzero().flatten().tolist()
    return numbers or list(range(len(cohort.sizes)))
