"""Feature anchors: a target point per class for the features, and the head's training on these points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from landscape.model.bound_model import Flat


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
    optimizer: torch.optim.Optimizer

    def step(self) -> None:
        """One step; the workspace's gradient is kept as it is."""
        head, grad = self.flat.module.head, self.flat.grad.clone()
        self.flat.grad.zero_()
        labels = torch.arange(len(self.anchors), device=self.anchors.device)
        with torch.enable_grad():
            F.cross_entropy(head(self.anchors), labels).backward()  # type: ignore[operator]  # checked by the method
        self.optimizer.step()
        self.flat.grad.copy_(grad)


def calibrate(flat: Flat, anchors: Tensor, lr: float) -> Calibration:
    """Calibration of the head in a workspace."""
    return Calibration(flat, anchors, torch.optim.Adam(flat.module.head.parameters(), lr=lr))  # type: ignore[union-attr]
