"""FedBE, a Bayesian ensemble of the clients distilled into their mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, Self

import torch
from pydantic import Field
from torch import Tensor

from drift.config.method_values import Cohort, Combined, Setting, State
from drift.config.random_keys import generator
from drift.methods._server_training import ServerTraining, active, distillation, logits, proxy
from drift.plugins.bundles import shipped_bundles
from drift.store.column_blocks import WIDTH, blocks, narrowed
from drift.store.row_matrices import rows
from drift.training.model_layers import require_classes
from landscape.model.layout import Layout


class FedBE(ServerTraining):
    """FedDF with more teachers: the mean of the clients, the clients, and models drawn from a Gaussian around them.

    A drawn model is, tensor by tensor, w_t + nu (mu + spread sqrt(v) noise): mu and v are the mean and the variance
    (at least 1e-5) over clients of g_k = (w_k - w_t) / |w_k - w_t|, nu the mean of |w_k - w_t|. A client that did not
    move a tensor counts as g = 0 there.

    Unlike the paper: one model is drawn and logits are averaged, as in FedLAW's code; there 10 models and
    probabilities.

    Source: Chen and Chao 2021, algorithm 1; papers.md 2.3.
    """

    requires = (require_classes,)
    bundles = shipped_bundles("fedbe")

    server_epochs: int = Field(100, ge=0, description="passes over the proxy set per round")
    samples: int = Field(1, ge=0, description="models drawn from the Gaussian")
    spread: float = Field(0.1, ge=0, description="factor of the standard deviation")
    ensemble: Literal["logits", "probabilities"] = Field("logits", description="what is averaged over teachers")
    student_average: bool = Field(False, description="the result is the mean over the second half of the epochs")

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The mean, taught by the ensemble."""
        proxy_samples, numbers = proxy(setting, self.name()), active(cohort)
        averaged = cohort.weights.to(cohort.buffers)[None] @ cohort.buffers
        noise = generator(setting.experiment.seed, cohort.index, "fedbe", device=cohort.start.device)
        normal = Gaussian.around(setting.task.layout, cohort.start, cohort.clients, numbers) if self.samples else None
        models = [] if normal is None else [normal.draw(self.spread, noise) for _ in range(self.samples)]
        teachers = chain([cohort.weighted_mean], rows(cohort.clients, numbers), models)
        statistics = torch.cat([averaged, cohort.buffers[numbers], *[averaged] * self.samples])
        outputs = logits(setting, teachers, statistics, proxy_samples)
        teacher = outputs.mean(0).softmax(1) if self.ensemble == "logits" else outputs.softmax(2).mean(0)
        theta, total, counted = cohort.weighted_mean, torch.zeros_like(cohort.start), 0
        for epoch, theta in enumerate(self.trained(setting, cohort, self.server_epochs, distillation(teacher))):
            if self.student_average and epoch > self.server_epochs // 2:
                total, counted = total + theta, counted + 1
        return Combined(total / counted if counted else theta, cohort.weights)


@dataclass(frozen=True)
class Gaussian:
    """Models around clients that began at one start, with statistics of each tensor.

    Args:
        layout: Of the model.
        start: The model that the clients received, shape (d,).
        mean, variance: Of the clients' moves scaled to length 1 tensor by tensor, shape (d,).
        lengths: Mean length of the moves, by tensor.
    """

    layout: Layout
    start: Tensor
    mean: Tensor
    variance: Tensor
    lengths: dict[str, Tensor]

    @classmethod
    def around(cls, layout: Layout, start: Tensor, clients: Tensor, numbers: Sequence[int]) -> Self:
        """That of the rows `numbers` of client models (m, d), read by blocks."""
        mean, variance, lengths = torch.empty_like(start), torch.empty_like(start), {}
        for name, span in layout.slices().items():
            norms = torch.cat(
                [(model[span] - start[span])[None].norm(dim=1, keepdim=True) for model in rows(clients, numbers)]
            )
            lengths[name] = norms.mean()
            for columns, block in blocks(clients[:, span], start[span], width=narrowed(WIDTH, len(clients))):
                moves = block if len(numbers) == len(clients) else block[list(numbers)]
                directions = torch.where(norms > 0, moves / norms.clamp(min=torch.finfo(moves.dtype).tiny), 0.0)
                target = slice(span.start + columns.start, span.start + columns.stop)
                mean[target] = directions.mean(0)
                variance[target] = (directions.square().mean(0) - mean[target].square()).clamp(min=1e-5)
        return cls(layout, start, mean, variance, lengths)

    def draw(self, spread: float, noise: torch.Generator) -> Tensor:
        """One model (d,)."""
        sample = self.start.clone()
        for name, span in self.layout.slices().items():
            mean, variance = self.mean[span], self.variance[span]
            draws = torch.randn(mean.shape, generator=noise, dtype=mean.dtype, device=mean.device)
            sample[span] += self.lengths[name] * (mean + spread * variance.sqrt() * draws)
        return sample
