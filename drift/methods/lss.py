"""LSS, local superior soups: each client grows a pool of models that are good wherever they are mixed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.methods._pool import Coefficients, Distance, Kind, MeanDistance, Volume, simplex_point
from drift.plugins.bundles import shipped_bundles
from drift.training.client import Client, Update
from drift.training.optimizer import Optimizer
from landscape.model.batchnorm import recompute_statistics
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples


@dataclass(frozen=True)
class Pool:
    """A client's trained pool: members (n, d), the workspace as training left it, steps, mean loss in nats."""

    members: Tensor
    flat: Flat
    steps: int
    loss: float


class LSS(Method):
    """Local training of a pool f_0 .. f_N around the received model f_p; the uniform mean of the pool is sent.

    Candidate f_i starts at the mean of the pool so far and is the only one trained, for the local epochs, on
    L(sum_j alpha_j f_j) + affinity dist(f_i, f_p) - diversity_weight mean_j dist(f_i, f_j) with fresh random alpha
    at every step. The data gradient reaches f_i scaled by alpha_i. The server is FedAvg's.

    The paper's 8 steps are epochs (FMA-3). Squared distances and the volume need coefficients of about 1e-3 (LSS-6).

    Unlike the paper: the method alone brings neither its pre-trained model nor Adam at 5e-4 for 8 epochs; from random
    values, its l2 distances with coefficient 3 keep the pool where it is.

    Source: Chen et al. 2024, section 3.3 and algorithm 1; differences of its code: papers.md LSS-1..14.
    """

    bundles = shipped_bundles("lss")

    pool_option: ClassVar[str] = "candidates"

    candidates: int = Field(4, gt=0, description="N, models trained by a client (LSS-3)")
    pool_init: Literal["frozen", "trained"] = Field(
        "frozen", description="the received model is a member; trained: the first candidate takes its place (LSS-1)"
    )
    later_epochs: int | None = Field(None, gt=0, description="epochs of candidates after the first (1 in code, LSS-2)")
    affinity: float = Field(3.0, ge=0, description="coefficient of the distance to the received model (LSS-6)")
    diversity_weight: float = Field(3.0, ge=0, description="coefficient of the diversity (LSS-6)")
    dist: Kind = Field("l2", description="distance in both terms; sq_l2 and fisher as in the code (LSS-5)")
    diversity: Literal["mean", "volume"] = Field("mean", description="mean distance or squared volume (LSS-4)")
    diversity_over: Literal["others", "pool"] = Field("others", description="what the mean divides by (LSS-14)")
    coefficients: Coefficients = Field("dirichlet", description="law of the random mixture (LSS-9)")
    n_samples: int = Field(1, gt=0, description="mixtures per step, whose mean loss counts (2 in code, LSS-7)")
    step_every: int = Field(1, gt=0, description="only every such minibatch is used (15 in code, LSS-8)")
    thin_first: bool = Field(
        True, description="step_every holds for the first candidate of a trained pool too; off in code (LSS-8)"
    )
    epsilon: float = Field(1e-8, gt=0, description="length at which the l2 distance becomes smooth")
    recompute_buffers: bool = Field(True, description="batch statistics of the mean from local data; code: unchanged")

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError where clients keep moments: every candidate has a new optimiser."""
        if experiment.local.persist_optimizer:
            raise ValueError(
                "lss starts a new optimiser for every candidate and local.persist_optimizer is true; set it to false."
            )

    def local(self, client: Client) -> Update:
        """Train the pool and send its mean; reports the members' distances to the received model."""
        pool = self.pool(client)
        mean, flat = pool.members.mean(0), pool.flat
        flat.load(mean)
        buffers = recompute_statistics(flat, client.samples) if self.recompute_buffers else flat.buffers.clone()
        distances = (pool.members - client.start).norm(dim=1)
        return Update(mean, buffers, pool.steps, pool.loss, client.state, {"pool_distances": distances})

    def pool(self, client: Client) -> Pool:
        """The client's trained pool; `local` sends its mean."""
        flat, frozen = client.flat, int(self.pool_init == "frozen")
        flat.load(client.start, client.buffers)
        members = client.start.repeat(frozen + self.candidates, 1)
        order, mixing = client.generator("batches"), client.generator("pool")
        losses: list[Tensor] = []
        with client.randomness():
            distance = self._distance(client)
            flat.training(True)
            for active in range(frozen, len(members)):
                if active:
                    members[active] = members[:active].mean(0)
                epochs = self.later_epochs if active > frozen else None
                batches = client.batches(epochs=epochs, order=order)
                if active or self.thin_first:
                    batches = self._used(batches)
                losses += self._train(members[: active + 1], client, batches, distance, mixing)
            flat.training(False)
        loss = float(torch.stack(losses).double().mean()) if losses else float("nan")
        return Pool(members, flat, len(losses), loss)

    def _train(
        self, members: Tensor, client: Client, batches: Iterator[Samples], distance: Distance, mixing: torch.Generator
    ) -> list[Tensor]:
        """Train the last of `members` (n, d) in place; returns the data losses, one per step."""
        flat, active, losses = client.flat, members[-1], []
        gradient = torch.empty_like(active)
        optimizer = Optimizer(active, gradient, client.local)
        diversity = self._diversity(members[:-1], distance)
        for batch in batches:
            gradient.zero_()
            loss = torch.zeros((), dtype=torch.float64)
            for _ in range(self.n_samples):
                alpha = simplex_point(self.coefficients, len(members), mixing)
                loss += mixed_gradient(flat, members, alpha, batch).cpu() / self.n_samples
                gradient.add_(flat.grad, alpha=float(alpha[-1]) / self.n_samples)
            if self.affinity:
                gradient.add_(distance.gradient(active - client.start), alpha=self.affinity)
            if diversity is not None:
                gradient.sub_(diversity.gradient(active), alpha=self.diversity_weight)
            optimizer.step()
            losses.append(loss)
        return losses

    def _used(self, batches: Iterator[Samples]) -> Iterator[Samples]:
        return (batch for number, batch in enumerate(batches, 1) if number % self.step_every == 0)

    def _diversity(self, others: Tensor, distance: Distance) -> MeanDistance | Volume | None:
        if not len(others) or self.diversity_weight == 0:
            return None
        if self.diversity == "volume":
            return Volume(others)
        return MeanDistance(others, distance, len(others) + (self.diversity_over == "pool"))

    def _distance(self, client: Client) -> Distance:
        importance = fisher(client) if self.dist == "fisher" else None
        return Distance(self.dist, importance, self.epsilon)


def mixed_gradient(flat: Flat, members: Tensor, alpha: Tensor, batch: Samples) -> Tensor:
    """Loss () of the mixture alpha (n,) of members (n, d); its gradient with respect to the mixture is in flat.grad."""
    torch.mv(members.T, alpha.to(members), out=flat.theta)
    return flat.gradient(batch)


def fisher(client: Client) -> Tensor:
    """Diagonal importance (d,) at the received model: the mean over minibatches of the squared gradient."""
    flat = client.flat
    flat.load(client.start, client.buffers)
    total, count = torch.zeros_like(flat.grad), 0
    for batch in client.samples.blocks(client.local.batch):
        flat.gradient(batch)
        total.addcmul_(flat.grad, flat.grad)
        count += 1
    return total / max(1, count)
