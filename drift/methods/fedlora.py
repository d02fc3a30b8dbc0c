"""FedLoRA, low-rank adapters whose factors or products the server averages."""

from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Outcome, Setting, State
from drift.config.random_keys import generator
from drift.plugins.bundles import suffix
from drift.training.client import Client, Update
from drift.training.correction import Correction
from drift.training.model_layers import freeze, require_adapters, residual_buffers
from landscape.model.adapters import factor_names
from landscape.model.layout import Layout
from landscape.model.model import with_buffers
from landscape.model.products import products

Variant = Literal["fedit", "ffa", "rolora", "fedex", "flora"]


class FedLoRA(Method):
    """Clients train low-rank adapters W + scale B A of a frozen model; variants say what is trained and averaged.

        fedit    A and B are trained and averaged, each alone: FedAvg of the factors
        ffa      A keeps its initial values, B is trained and averaged
        rolora   B is trained and averaged in rounds 0, 2, .., A in all others
        fedex    as fedit; the frozen weights get mean(D_k) - D(mean A, mean B) in addition, so that the mean is exact
        flora    the frozen weights get mean(D_k), and clients of the next round begin with fresh A and B = 0

    D_k is the product of client k, scale B_k A_k. All else that is trained, such as a head, is averaged. Products of
    ffa, rolora, fedex and flora are those of the mean: the analysis `product_gap` has `missed` = 0.

    `fedex` and `flora` need a model with a buffer beside each frozen weight (task.model_options.residual=true). Each
    round records these buffers. The publications send the stacked factors instead.

    Unlike the papers: rolora alternates by round, beginning with B; flora's clients have one rank.

    Source: Zhang et al. 2024 (FedIT); Sun et al. 2024 (FFA-LoRA); Chen et al. 2024 (RoLoRA); Singhal et al. 2024
    (FedEx-LoRA); Wang et al. 2024 (FLoRA).
    """

    requires = (require_adapters,)

    variant: Variant = Field("fedit", description="what clients train, and what the server averages")

    @property
    def label(self) -> str:
        """The variant, as in fedlora-ffa."""
        return f"{self.name()}-{self.variant}{suffix(self)}"

    @property
    def exact(self) -> bool:
        """Whether the server averages products of both factors, which the frozen weights take up."""
        return self.variant in ("fedex", "flora")

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError where another method averages models whose frozen weights differ."""
        if self.exact and experiment.method != self:
            raise ValueError(
                f"{self.label} adds to frozen weights, which {experiment.method.name()} cannot average; take the "
                "variant fedit, ffa or rolora as its base."
            )

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """Nothing, once the model has adapters, and a buffer beside each frozen weight where one is needed."""
        if self.exact:
            residual_buffers(setting.task, self.label)
        return super().initial(setting, theta)

    def holds(self, setting: Setting) -> Tensor | None:
        """A in the variant ffa."""
        return factor_mask(setting.task.layout, "a") if self.variant == "ffa" else None

    def correction(self, client: Client) -> Correction | None:
        """The factor held that is not trained in this round."""
        mask = self._frozen(client.flat.layout, client.index)
        return None if mask is None else freeze(mask.to(client.start.device), client.local.weight_decay)

    def transferred(self, setting: Setting, client: Client, update: Update) -> tuple[float, float]:
        """Bytes of the model; without the factor that is not trained, and up without the buffers, which are known."""
        mask = self._frozen(setting.task.layout, client.index)
        sent = client.start.numel() - (0 if mask is None else int(mask.sum()))
        down = sent + (client.buffers.numel() if self.exact else 0)
        return float(down * client.start.element_size()), float(sent * client.start.element_size())

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The mean of the cohort; a factor that was not trained keeps its bits."""
        mask = self._frozen(setting.task.layout, cohort.index)
        mean = cohort.weighted_mean
        return Combined(mean if mask is None else torch.where(mask, cohort.theta, mean), cohort.weights)

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """The mean; where products are averaged, with the new frozen weights, and for flora with fresh factors."""
        outcome = super().step(setting, state, cohort, combined)
        if not self.exact:
            return outcome
        if self.variant == "flora":
            outcome = replace(outcome, end=_fresh(setting, combined.theta, cohort.index))
        return replace(outcome, buffers=_exact(setting, cohort, outcome.end))

    def _frozen(self, layout: Layout, index: int) -> Tensor | None:
        """Entries (d,) that are not trained in a round."""
        if self.variant == "ffa" or (self.variant == "rolora" and index % 2 == 0):
            return factor_mask(layout, "a")
        return factor_mask(layout, "b") if self.variant == "rolora" else None


def factor_mask(layout: Layout, factor: Literal["a", "b"]) -> Tensor:
    """Which entries of theta (d,) are factors A, or B, bool."""
    spans, mask = layout.slices(), torch.zeros(layout.size, dtype=torch.bool)
    for pair in factor_names(spans):
        mask[spans[getattr(pair, factor)]] = True
    return mask


def _fresh(setting: Setting, theta: Tensor, index: int) -> Tensor:
    """The model with B = 0 and new A, uniform in +-1/sqrt(n) for n inputs, as peft begins."""
    layout, end = setting.task.layout, theta.clone()
    source = generator(setting.experiment.seed, "adapters", index)
    named = layout.named(end)
    for pair in factor_names(named):
        bound = named[pair.a][0].numel() ** -0.5
        named[pair.a].uniform_(-bound, bound, generator=source)
        named[pair.b].zero_()
    return end


def _exact(setting: Setting, cohort: Cohort, end: Tensor) -> Tensor:
    """Buffers (b,) with which the products of the new global model are the mean of the clients'."""
    view, names = products(setting.task), residual_buffers(setting.task, "fedlora")
    layout, buffers = setting.task.layout, cohort.weights.to(cohort.buffers) @ cohort.buffers
    total = -view.model(with_buffers(end, buffers)).double()
    for weight, theta, residual in zip(cohort.weights.tolist(), cohort.clients, cohort.buffers, strict=True):
        total += weight * view.model(with_buffers(theta, residual)).double()
    missing, named = view.layout.named(total), layout.named_buffers(buffers)
    for layer, name in names.items():
        named[name] += missing[f"{layer}.parametrizations.weight.original"]
    return buffers
