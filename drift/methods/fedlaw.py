"""FedLAW: the server learns how much to shrink and how much to weigh each client, on a small proxy set."""

from collections.abc import Callable, Iterator
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from drift.config.method import Method
from drift.config.method_values import Beta, Cohort, Combined, Setting, State
from drift.config.random_keys import generator
from drift.methods._learned_weights import Aggregate, Base, Learner, Learns, Schedule, initial
from drift.methods._server_training import proxy, proxy_statistics
from drift.plugins.bundles import shipped_bundles, suffix
from drift.store.column_blocks import Updates, weighted_models
from landscape.model.batchnorm import use_batches
from landscape.model.samples import Samples

Variant = Literal["joint", "gws", "attentive", "early_stopped", "swa"]
Stage = tuple[Learns, int, bool]
"""What is learned, for how many server epochs, and whether x is averaged over them."""

RATES = {"cifar10": 0.01}
"""Server rates of the released code by dataset (LAW-3); 0.005 for others."""


class FedLAW(Method):
    """w = gamma sum_i lambda_i w_i, with gamma and lambda minimising the loss of w on the proxy set.

    Every round starts at FedAvg (gamma = 1, lambda = data sizes) and runs Adam for `server_epochs` over minibatches
    of the proxy set; no epochs: FedAvg. With a server step size, start + server_step_lr (w_i - start) replaces w_i.

    Variants: joint learns both (equation 8), gws the shrinking only (5), attentive the shares only (7), early_stopped
    the shares up to round `stop_round` (figure 5), swa one after the other, with the shares averaged over server
    epochs.

    Models with batch normalisation are run on the statistics of each proxy batch while the weights are learned, and
    the new global model gets those of the whole proxy set (LAW-6). Clients without samples get no weight.

    Unlike the paper: the server's rate is the code's; the swa variant learns shares first, as the code. A Dirichlet
    partition is the capped one; FedLAW has variant = "plain".

    Source: Li et al. 2023, algorithm 1 and appendix C; differences of its code: papers.md LAW-1..10.
    """

    needs_proxy: ClassVar[bool] = True
    learns_weights: ClassVar[bool] = True
    bundles = shipped_bundles("fedlaw")

    variant: Variant = Field("joint", description="what is learned, and when")
    base: Base = Field("exponential", description="weights of x: e^x, or x^2, scaled to sum 1")
    stop_round: int | None = Field(None, ge=0, description="last round that learns, for variant early_stopped")
    server_epochs: int = Field(100, ge=0, description="the paper's number; its code has 20 (LAW-2)")
    server_lr: float | None = Field(None, gt=0, description="absent: 0.01 for CIFAR-10, else 0.005 (LAW-3)")
    server_betas: tuple[Beta, Beta] = Field((0.5, 0.999), description="of Adam")
    server_batch: int = Field(128, gt=0, description="proxy samples in a minibatch")
    halve_every: int = Field(20, gt=0, description="server epochs between halvings of the rate")
    server_step_lr: float = Field(1.0, gt=0, description="eta_g of equation 4: scales the client updates")
    quad_init: Literal["data", "uniform"] = Field("data", description="quadratic start; uniform in the code (LAW-4)")
    balanced_sampling: bool = Field(False, description="proxy minibatches with equally likely classes (table 6)")
    swa_order: Literal["weights_first", "gamma_first"] = Field("weights_first", description="the code's order (LAW-1)")
    swa_lr: float = Field(0.05, gt=0, description="rate from where on x is averaged, for variant swa")
    swa_after: int = Field(6, ge=0, description="server epochs before averaging begins")

    @model_validator(mode="after")
    def _stop_round_fits(self) -> Self:
        if (self.variant == "early_stopped") != (self.stop_round is not None):
            raise ValueError(
                f"variant is {self.variant!r} and stop_round is {self.stop_round}; early_stopped needs the last round "
                "that learns (the critical point of the coherence of a FedAvg run), the others take none."
            )
        return self

    @property
    def label(self) -> str:
        """fedlaw where weights and gamma are learned; else with the variant, as in fedlaw-gws."""
        variant = "" if self.variant == "joint" else f"-{self.variant}"
        return self.name() + variant + suffix(self)

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The cohort under learned weights; records them and how they were learned."""
        active = (cohort.weights > 0) & (cohort.sizes > 0)
        stages = self._stages(cohort.index)
        if not stages or not bool(active.any()):
            return self._combined(cohort, torch.ones((), dtype=torch.float64), cohort.weights.double(), {})
        learner = self._learner(setting, cohort.weights[active].double())
        batches = self._batches(setting, cohort.index)
        objective = self._objective(setting, cohort, active)
        for learns, epochs, average in stages:
            learner.learn(learns, epochs, objective, batches, average=average)
        shrink, shares = learner.factor_and_shares()
        history = learner.history()
        history["lambda"] = _spread(history["lambda"], active)
        curves = {f"{name}_epochs": rows for name, rows in history.items()}
        return self._combined(cohort, shrink, _spread(shares, active), curves)

    def buffers(self, setting: Setting, end: Tensor, averaged: Tensor) -> Tensor:
        """Batch statistics of the new global model on the proxy set."""
        return proxy_statistics(setting, end, averaged)

    def _stages(self, index: int) -> list[Stage]:
        epochs = self.server_epochs
        if epochs == 0 or (self.stop_round is not None and index > self.stop_round):
            return []
        if self.variant == "swa":
            stages: list[Stage] = [("shares", epochs // 2, True), ("shrink", epochs - epochs // 2, False)]
            return stages if self.swa_order == "weights_first" else stages[::-1]
        learns: dict[Variant, Learns] = {"joint": "both", "gws": "shrink"}
        return [(learns.get(self.variant, "shares"), epochs, False)]

    def _learner(self, setting: Setting, shares: Tensor) -> Learner:
        usual = RATES.get(setting.experiment.task.dataset, 0.005)
        lr = usual if self.server_lr is None else self.server_lr
        schedule = Schedule(lr, self.server_betas, self.halve_every, self.swa_lr, self.swa_after)
        if self.base == "quadratic" and self.quad_init == "uniform" and self.variant != "gws":
            shares = torch.ones_like(shares)
        return Learner(self.base, *initial(self.base, (shares / shares.sum()).cpu()), schedule)

    def _objective(self, setting: Setting, cohort: Cohort, active: Tensor) -> Aggregate:
        flat = setting.task.flat(cohort.start)
        use_batches(flat, True)
        return Aggregate(flat, Updates(cohort.clients, cohort.start, active, self.server_step_lr))

    def _batches(self, setting: Setting, index: int) -> Callable[[], Iterator[Samples]]:
        """A function that gives the minibatches of the next server epoch, keyed by the round."""
        samples = proxy(setting, self.name())
        order = generator(setting.experiment.seed, index, "server")
        size, has_statistics = len(samples), setting.task.layout.buffer_size > 0

        def epoch() -> Iterator[Samples]:
            balanced = self.balanced_sampling
            rows = _balanced(samples.targets, order) if balanced else torch.randperm(size, generator=order)
            for batch in samples[rows.to(samples.targets.device)].blocks(self.server_batch):
                if len(batch) > 1 or not has_statistics:
                    yield batch

        return epoch

    def _combined(self, cohort: Cohort, shrink: Tensor, shares: Tensor, curves: State) -> Combined:
        weights = shrink * shares
        if self.server_step_lr == 1:
            theta = weighted_models(weights, cohort.clients)
        else:
            mean = weighted_models(shares, cohort.clients)
            theta = shrink.to(mean) * (cohort.start + self.server_step_lr * (mean - cohort.start))
        return Combined(theta, weights, {"gamma": shrink, "lambda": shares, **curves})


def _balanced(targets: Tensor, order: torch.Generator) -> Tensor:
    """As many sample numbers as there are samples, with replacement, every class equally likely."""
    _, which, counts = targets.cpu().unique(return_inverse=True, return_counts=True)
    return torch.multinomial(1 / counts[which].double(), len(targets), replacement=True, generator=order)


def _spread(shares: Tensor, active: Tensor) -> Tensor:
    """Shares (..., m) of the whole cohort from those of the kept clients; the others have 0."""
    padded = shares.new_zeros(*shares.shape[:-1], len(active))
    padded[..., active.cpu()] = shares
    return padded
