"""FedFA, federated learning with feature anchors."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from drift.config.method import Method
from drift.config.method_values import Beta, Cohort, Combined, Outcome, Setting, State
from drift.config.random_keys import generator
from drift.plugins.bundles import shipped_bundles
from drift.training.client import Client, Update
from drift.training.model_layers import features, require_classes, require_head
from landscape.model.adam import Adam
from landscape.model.bound_model import Flat
from landscape.model.losses import batch_mean
from landscape.model.samples import Samples


class FedFA(Method):
    """Clients pull the features of each class towards an anchor A_c that all share, and hold their heads to anchors.

        loss = cross-entropy + weight / C sum_i |h_i - A_{y_i}|^2 / n_{y_i}

    over a minibatch with n_c samples of class c; features h are what the head receives. The second term is off in round
    0. Once t > R / 4, one Adam step of the head on the anchors, labelled with their classes, follows every minibatch.
    After each epoch A_c <- beta A_c + (1 - beta) (mean over minibatches of the class mean) for the classes that the
    client holds. Loss and head read the anchors as received in every epoch, as in both published implementations; only
    the uploaded copy moves.

    Anchors begin as one-hot rows, or as normalised Gaussian rows where there are more classes than features. Clients
    without a class return its anchor as received (average = "all"); "holders" leaves them out.

    Source: Zhou et al. 2024 (FedFA), algorithm 1; defaults of Zhou et al. 2024 (IMA), table V (beta 0.5 in some of its
    arguments). In its code minibatches without a class count as 0.
    """

    corrections: ClassVar[tuple[str, ...]] = ("its loss and calibration read anchors that moved during local training",)
    sends: ClassVar[tuple[str, ...]] = ("anchors", "calibrating")
    bundles = shipped_bundles("fedfa")

    weight: float = Field(0.1, ge=0, description="lambda, of the anchor term")
    beta: Beta = Field(0.9, description="share of an anchor that stays per epoch")
    calibration_lr: float = Field(1e-3, gt=0, description="rate of the Adam step on the head")
    calibration_start: float = Field(
        0.25,
        ge=0,
        description="fraction of the rounds after which heads are calibrated",
        json_schema_extra={"fraction": True},
    )
    class_mean: Literal["present", "all"] = Field("present", description="minibatches in a class mean; code: all")
    average: Literal["all", "holders"] = Field("all", description="clients in the mean of an anchor")

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """Anchors (C, q), and no calibration yet."""
        head = require_head(setting.task.model, self.name())
        if not isinstance(head, nn.Linear):
            raise ValueError(
                f"{self.name()} needs a model with a linear head, this one's is a {type(head).__name__}; every model "
                "of `fedscape list models` has one."
            )
        require_classes(setting.task, self.name())
        source = generator(setting.experiment.seed, "anchors")
        anchors = initial_anchors(head.out_features, head.in_features, source).to(theta)
        return {"anchors": anchors, "calibrating": torch.tensor(self._calibrates(setting, 0))}

    def local(self, client: Client) -> Update:
        """Anchored local training; reports the client's anchors and the classes that it holds."""
        anchors = client.server["anchors"]
        calibrating, anchored = bool(client.server["calibrating"]), client.index > 0 and self.weight > 0
        means = ClassMeans(anchors.clone(), self.class_mean)
        local, order = client.local, client.generator("batches")

        def gradient(flat: Flat, batch: Samples) -> Tensor:
            flat.grad.zero_()
            targets = batch.targets.to(flat.theta.device)
            outputs, activations = features(flat, lambda: flat.outputs(batch.inputs))
            loss = batch_mean(flat.loss, outputs, targets)
            if anchored:
                loss = loss + self.weight * alignment_loss(activations.flatten(1), anchors, targets)
            loss.backward()
            means.add(activations.detach().flatten(1), targets)
            return loss.detach()

        def batches() -> Iterator[Samples]:
            for _ in range(1 if local.steps is not None else local.epochs):
                for batch in client.batches(epochs=None if local.steps is not None else 1, order=order):
                    yield batch
                    if calibrating:
                        head.step()
                means.move(self.beta)

        head = calibrate(client.flat, anchors, self.calibration_lr)
        update = client.train(gradient=gradient, batches=batches())
        return replace(update, report={"anchors": means.anchors, "holds": means.seen})

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """The mean, and the mean anchors."""
        shares = cohort.weights.to(state["anchors"])[:, None].expand(-1, len(state["anchors"]))
        if self.average == "holders":
            shares = shares * cohort.reports["holds"]
        total = shares.sum(0)
        mean = (shares[:, :, None] * cohort.reports["anchors"]).sum(0) / total.clamp(min=1e-12)[:, None]
        anchors = torch.where(total[:, None] > 0, mean, state["anchors"])
        calibrating = torch.tensor(self._calibrates(setting, cohort.index + 1))
        return Outcome(
            combined.theta, combined.weights, {"anchors": anchors, "calibrating": calibrating}, combined.extras
        )

    def _calibrates(self, setting: Setting, index: int) -> bool:
        return index > self.calibration_start * setting.experiment.rounds


def initial_anchors(classes: int, size: int, source: torch.Generator) -> Tensor:
    """Anchors (C, q): different one-hot rows drawn at random where C <= q, else normalised Gaussian rows."""
    if classes <= size:
        return torch.eye(size)[torch.randperm(size, generator=source)[:classes]]
    return F.normalize(torch.randn(classes, size, generator=source))


def alignment_loss(features: Tensor, anchors: Tensor, targets: Tensor) -> Tensor:
    """1/C sum_i |h_i - A_{y_i}|^2 / n_{y_i} of features (n, q), with n_c samples of class c among the targets (n,)."""
    counts = torch.bincount(targets, minlength=len(anchors)).to(features)
    squares = (features - anchors[targets]).square().sum(1)
    return (squares / counts[targets]).sum() / len(anchors)


@dataclass
class ClassMeans:
    """Means over minibatches of the mean features of each class, which move the anchors (C, q) in place."""

    anchors: Tensor
    over: Literal["present", "all"]
    total: Tensor = field(init=False)
    present: Tensor = field(init=False)
    seen: Tensor = field(init=False)
    batches: int = 0

    def __post_init__(self) -> None:
        self.total = torch.zeros_like(self.anchors)
        self.present = torch.zeros(len(self.anchors), dtype=self.anchors.dtype, device=self.anchors.device)
        self.seen = torch.zeros(len(self.anchors), dtype=torch.bool, device=self.anchors.device)

    def add(self, features: Tensor, targets: Tensor) -> None:
        """A minibatch of features (n, q) and classes (n,)."""
        counts = torch.bincount(targets, minlength=len(self.anchors)).to(features)
        sums = torch.zeros_like(self.anchors).index_add_(0, targets, features)
        self.total += sums / counts.clamp(min=1)[:, None]
        self.present += (counts > 0).to(features)
        self.batches += 1

    def move(self, beta: float) -> None:
        """A <- beta A + (1 - beta) mean for the classes seen since the last call, which resets the sums."""
        met = self.present > 0
        count = self.present.clamp(min=1) if self.over == "present" else torch.full_like(self.present, self.batches)
        mean = self.total / count[:, None]
        self.anchors[met] = beta * self.anchors[met] + (1 - beta) * mean[met]
        self.seen |= met
        self.total.zero_()
        self.present.zero_()
        self.batches = 0


@dataclass
class Calibration:
    """Adam on a head: each step minimises the cross-entropy of the anchors (C, q) against their classes."""

    flat: Flat
    anchors: Tensor
    optimizer: Adam
    lr: float

    def step(self) -> None:
        """One step; the workspace's gradient is kept as it is."""
        head, grad = self.flat.module.head, self.flat.grad.clone()
        self.flat.grad.zero_()
        labels = torch.arange(len(self.anchors), device=self.anchors.device)
        with torch.enable_grad():
            F.cross_entropy(head(self.anchors), labels).backward()  # type: ignore[operator]  # checked by the method
        self.optimizer.step([cast(Tensor, tensor.grad) for tensor in self.optimizer.tensors], self.lr)
        self.flat.grad.copy_(grad)


def calibrate(flat: Flat, anchors: Tensor, lr: float) -> Calibration:
    """Calibration of the head in a workspace."""
    return Calibration(flat, anchors, Adam(flat.module.head.parameters()), lr)  # type: ignore[union-attr]
