"""Losses that are no plain mean, against the user's own loss of the whole split as one batch, in float64."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from kinds import one_of_each
from reference.registry import agree, reference
from torch import Tensor, nn
from torch.func import functional_call

import landscape
from landscape.measures.predictions import predictions
from landscape.model.losses import loss_blocks

N = 83
DRAW = torch.Generator().manual_seed(5)
INPUTS = torch.randn(N, 4, generator=DRAW, dtype=torch.float64)
CLASSES = torch.randint(0, 3, (N,), generator=DRAW)
IGNORED = CLASSES.clone()
IGNORED[[40, 41, 71]] = -100
FAR = CLASSES.clone()
FAR[[7, 60]] = 255
VALUES = torch.randn(N, 3, generator=DRAW, dtype=torch.float64)
MISSING = VALUES.clone()
MISSING[50:53, 0] = torch.nan
MISSING[77] = torch.nan
MASK = (torch.rand(N, 3, generator=DRAW) < 0.6).double()
MASK[40] = 0
MARKED = VALUES.where(MASK > 0, -999.0)
LARGE = VALUES.where(MASK > 0, 99999.0)
CHANNELS = torch.stack([VALUES, MASK], -1)
WEIGHTED = torch.cat([VALUES[:, :3], torch.rand(N, 1, generator=DRAW, dtype=torch.float64)], 1)
WEIGHTS = torch.tensor([1.0, 0.2, 6.0], dtype=torch.float64)


def dense() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding, self.head = nn.Embedding(7, 3), nn.Linear(3, 7)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(torch.tanh(self.embedding(ids)))


IDS = torch.randint(0, 7, (N, 6), generator=DRAW)
LABELS = IDS.roll(-1, 1)
LABELS[torch.arange(6)[None] >= torch.randint(1, 6, (N, 1), generator=DRAW)] = -100
IMAGES = torch.randn(N, 2, 3, 4, generator=DRAW, dtype=torch.float64)
PIXELS = torch.randint(0, 3, (N, 3, 4), generator=DRAW)
PIXELS[70:, 0] = 255
PIXELS[9] = 255


def masked(outputs: Tensor, targets: Tensor) -> Tensor:
    return ((outputs - targets)[~targets.isnan()] ** 2).mean()


def whole_rows(outputs: Tensor, targets: Tensor) -> Tensor:
    kept = ~targets.isnan().any(1)
    return (outputs[kept] - targets[kept]).abs().sum(1).mean()


def own_weights(outputs: Tensor, targets: Tensor) -> Tensor:
    return (targets[:, 3] * (outputs - targets[:, :3]).square().sum(1)).sum() / targets[:, 3].sum()


def marked(outputs: Tensor, targets: Tensor) -> Tensor:
    return ((outputs - targets)[targets != -999] ** 2).mean()


def below(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets)[targets < 1e4].abs().mean()


def marked_rows(outputs: Tensor, targets: Tensor) -> Tensor:
    kept = (targets != -999).all(1)
    return (outputs[kept] - targets[kept]).square().mean()


def with_channel(outputs: Tensor, targets: Tensor) -> Tensor:
    values, mask = targets.unbind(-1)
    return ((outputs - values).square() * mask).sum() / mask.sum()


def with_half(outputs: Tensor, targets: Tensor) -> Tensor:
    values, mask = targets.chunk(2, 1)
    return (outputs - values)[mask == 1].abs().mean()


def by_class(outputs: Tensor, targets: Tensor) -> Tensor:
    weights = torch.where(targets == 2, 50.0, 1.0) * (targets >= 0)
    return (weights * F.cross_entropy(outputs, targets, reduction="none")).sum() / weights.sum()


def by_value(outputs: Tensor, targets: Tensor) -> Tensor:
    weights = torch.where(targets == 1, 10.0, 3.0)
    return (weights * F.binary_cross_entropy_with_logits(outputs, targets, reduction="none")).sum() / weights.sum()


def shifted(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(outputs[:, :-1].flatten(0, 1), targets[:, 1:].flatten())


def dice(outputs: Tensor, targets: Tensor) -> Tensor:
    chance, own = outputs.softmax(1)[:, 1], (targets == 1).to(outputs)
    return 1 - 2 * (chance * own).sum() / (chance.sum() + own.sum())


def pair(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    weights = WEIGHTS.to(outputs)[targets]
    return weights * F.cross_entropy(outputs, targets, reduction="none"), weights


def pixels() -> nn.Module:
    torch.manual_seed(4)
    return nn.Conv2d(2, 3, 3, padding=1).double()


def normalised_by_batch() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, track_running_stats=False), nn.Linear(5, 3)).double()


COUPLED = ("coupled loss", "coupled model")
CE = nn.CrossEntropyLoss
CASES: dict[str, tuple[Any, ...]] = {
    "mean": (dense, CE(), INPUTS, CLASSES),
    "ignored classes": (dense, CE(), INPUTS, IGNORED),
    "function with ignored classes": (dense, F.cross_entropy, INPUTS, IGNORED),
    "ignored label 255": (dense, CE(ignore_index=255), INPUTS, FAR),
    "class weights": (dense, CE(weight=WEIGHTS), INPUTS, CLASSES),
    "weights, ignored, smoothing": (dense, CE(weight=WEIGHTS, label_smoothing=0.2), INPUTS, IGNORED),
    "partial": (dense, partial(F.cross_entropy, weight=WEIGHTS, ignore_index=255), INPUTS, FAR),
    "weights in a closure": (dense, lambda o, t: F.cross_entropy(o, t, weight=WEIGHTS), INPUTS, IGNORED),
    "nll": (lambda: nn.Sequential(dense(), nn.LogSoftmax(1)), nn.NLLLoss(weight=WEIGHTS), INPUTS, IGNORED),
    "tokens": (lambda: Words().double(), lambda o, t: F.cross_entropy(o.flatten(0, 1), t.flatten()), IDS, LABELS),
    "next tokens": (lambda: Words().double(), shifted, IDS, LABELS),
    "pixels": (pixels, CE(ignore_index=255), IMAGES, PIXELS),
    "weighted pixels": (pixels, CE(ignore_index=255, weight=WEIGHTS), IMAGES, PIXELS),
    "missing values": (dense, masked, INPUTS, MISSING),
    "missing rows": (dense, whole_rows, INPUTS, MISSING),
    "marked values": (dense, marked, INPUTS, MARKED),
    "marked by a large value": (dense, below, INPUTS, LARGE),
    "marked rows": (dense, marked_rows, INPUTS, MARKED),
    "mask as a channel": (dense, with_channel, INPUTS, CHANNELS),
    "mask joined": (dense, with_half, INPUTS, CHANNELS.transpose(1, 2).flatten(1)),
    "own class weights": (dense, by_class, INPUTS, IGNORED),
    "own weights of 0 and 1": (dense, by_value, INPUTS, MASK),
    "sample weights": (dense, own_weights, INPUTS, WEIGHTED),
    "several outputs": (dense, nn.SmoothL1Loss(), INPUTS, VALUES),
    "sum": (dense, CE(reduction="sum"), INPUTS, IGNORED),
    "sum of squares": (dense, lambda o, t: (o - t).square().sum(), INPUTS, VALUES),
    "pair": (dense, pair, INPUTS, CLASSES),
    "coupled loss": (dense, dice, INPUTS, CLASSES),
    "coupled model": (normalised_by_batch, CE(), INPUTS, CLASSES),
}

KINDS = (
    *("mean", "ignored classes", "weights, ignored, smoothing", "next tokens", "weighted pixels", "missing values"),
    *("marked rows", "mask as a channel", "own class weights", "sample weights", "sum", "pair", *COUPLED),
)
"""Cases whose weights differ in kind; curvature of the others is slow, and all have the values and gradients below."""


def made(name: str) -> tuple[landscape.Task, Any, Tensor, Tensor]:
    build, loss, inputs, targets = CASES[name]
    task = landscape.make_task(build(), loss, {"train": (inputs, targets)}, coupled=name in COUPLED)
    return task, _number(loss), inputs, targets


def _number(loss: Any) -> Any:
    def number(outputs: Tensor, targets: Tensor) -> Tensor:
        value = loss(outputs, targets)
        return value[0].sum() / value[1].sum() if isinstance(value, tuple) else value

    return number


def naive(task: landscape.Task, number: Any, inputs: Tensor, targets: Tensor) -> Any:
    """The user's own loss of all samples as one batch, as a function of theta."""
    return lambda theta: number(functional_call(task.model, task.layout.named(theta), (inputs,)), targets)


@pytest.mark.parametrize("name", CASES)
@reference("landscape.loss", "landscape.evaluate", by="the user's own loss of the split as one batch")
def test_the_loss_of_a_split_is_that_of_the_split_as_one_batch(name):
    task, number, inputs, targets = made(name)
    theta = task.theta + 0.3 * torch.randn(task.layout.size, generator=torch.Generator().manual_seed(1)).double()
    own = naive(task, number, inputs, targets)
    agree("landscape.loss", landscape.loss(task, theta), own(theta).item(), relative=1e-12)
    basis, rows = torch.stack([task.theta, theta]), torch.tensor([[0.5, 0.5], [1.2, -0.3], [1.0, 0.0]]).double()
    expected = [own(row @ basis).item() for row in rows]
    for options in ({}, {"block": 7}, *([{"block": 1}, {"workers": 2}] if name in KINDS else [])):
        found = landscape.evaluate(task, basis, rows, metrics=("loss",), **options)["loss"]
        agree("landscape.evaluate", found, expected, relative=1e-12)


@pytest.mark.parametrize("name", CASES)
@reference("landscape.evaluate", by="the user's own loss of the outputs of each group")
def test_a_group_has_the_loss_of_its_samples(name):
    task, number, inputs, targets = made(name)
    groups = torch.arange(N) % 3
    groups[40] = 3  # an ignored sample alone, in some cases
    found = landscape.evaluate(task, task.theta[None], [[1.0]], metrics=("loss",), groups=groups)["loss"][0]
    for group in range(4):
        rows = groups == group
        value = number(task.model(inputs)[rows], targets[rows]).item()
        counted = name not in ("sum",) or bool((targets[rows] != -100).any())
        assert found[group].item() == pytest.approx(value, rel=1e-12, nan_ok=True) or not counted, group


@pytest.mark.parametrize("name", one_of_each(CASES, KINDS))
@reference("landscape.hessian", "landscape.trace", by="dense Hessian by autograd of the user's own loss of all samples")
def test_curvature_is_that_of_the_split_as_one_batch(name):
    task, number, inputs, targets = made(name)
    dense_hessian = torch.autograd.functional.hessian(naive(task, number, inputs, targets), task.theta)
    values = np.linalg.eigvalsh(dense_hessian.numpy())
    largest = values[np.argsort(-np.abs(values))][:1]
    options = {"split": "train", "block": 10}
    found = landscape.hessian(task, task.theta, k=1, tolerance=1e-6, max_products=2000, **options)
    agree("landscape.hessian", np.abs(found.eigenvalue.values), np.abs(largest), relative=1e-6)
    trace = landscape.trace(task, task.theta, products=200, **options).trace.item()
    agree("landscape.trace", trace, np.trace(dense_hessian.numpy()), relative=1e-9)


@pytest.mark.parametrize("name", CASES)
@reference("landscape.ball_sharpness", by="autograd of the user's own loss of all samples")
def test_gradients_of_a_split_and_of_minibatches_are_those_of_the_users_loss(name):
    task, number, inputs, targets = made(name)
    flat, samples = task.flat(task.theta), task.split("train")
    for rows in (slice(0, 9), slice(36, 45), slice(40, 42), slice(None)):
        theta = task.theta.requires_grad_()
        value = naive(task, number, inputs[rows], targets[rows])(theta)
        if not bool(value.isfinite()):  # nothing counts: torch gives NaN
            assert flat.gradient(samples[rows]) == 0 and not flat.grad.any()
            continue
        (expected,) = torch.autograd.grad(value, theta)
        assert flat.gradient(samples[rows]).item() == pytest.approx(value.item(), rel=1e-12)
        torch.testing.assert_close(flat.grad, expected, rtol=1e-10, atol=1e-12)
    total = torch.zeros_like(flat.grad)
    for part, share in zip(*loss_blocks(flat.loss, samples, 8), strict=True):
        flat.gradient(part)
        total += share * flat.grad
    torch.testing.assert_close(total, expected, rtol=1e-10, atol=1e-12)
    rise = landscape.ball_sharpness(task, task.theta, radius=0.01, steps=1, directions=2, split="train", block=9)
    step = naive(task, number, inputs, targets)(task.theta + 0.01 * expected / expected.norm()) - value
    agree("landscape.ball_sharpness", rise.one_step.item(), step.item(), relative=1e-6)


@pytest.mark.parametrize("name", COUPLED)
@reference("landscape.hessian", by="dense J^T A J of the outputs of the whole split")
def test_gauss_newton_matrix_of_a_split_as_one_batch(name):
    task, number, inputs, targets = made(name)
    jacobian = torch.autograd.functional.jacobian(naive(task, lambda outputs, _: outputs, inputs, targets), task.theta)
    outputs = task.model(inputs).detach()
    by_outputs = torch.autograd.functional.hessian(lambda values: number(values, targets), outputs)
    j, size = jacobian.reshape(-1, task.layout.size), outputs.numel()
    matrix = j.T @ by_outputs.reshape(size, size) @ j
    values = np.linalg.eigvalsh(matrix.numpy())
    options = {"split": "train", "block": 10, "curvature": "gauss_newton"}
    found = landscape.hessian(task, task.theta, k=2, tolerance=1e-6, max_products=2000, **options)
    agree("landscape.hessian", found.eigenvalue, values[np.argsort(-np.abs(values))][:2], relative=1e-6)


@pytest.mark.parametrize("name", COUPLED)
def test_samples_of_a_coupled_loss_have_no_losses_of_their_own(name):
    task, *_ = made(name)
    assert np.isnan(predictions(task, task.theta, split="train").loss).all()


@pytest.mark.parametrize("name", ["ignored classes", "weights, ignored, smoothing", "missing values", *COUPLED])
@reference("landscape.surface", by="the user's own loss of the split as one batch, at every point of the plane")
def test_a_plane_has_the_users_loss_at_every_point(name):
    task, number, inputs, targets = made(name)
    others = [
        task.theta + step * torch.linspace(-1, 1, task.layout.size) ** power for step, power in ((1, 1), (0.7, 2))
    ]
    plane = landscape.plane(task, task.theta, *others, points=4)
    found = landscape.surface(task, plane, metrics=("loss",))
    theta = torch.from_numpy(plane.coefficients) @ plane.basis.double()
    own = naive(task, number, inputs, targets)
    agree("landscape.surface", found.loss.values.reshape(-1), [own(row).item() for row in theta], relative=1e-11)
    if name in COUPLED:
        with pytest.raises(ValueError, match="is not a mean over samples"):
            landscape.surface(task, plane, metrics=("loss",), folds=4)
        return
    folds = landscape.surface(task, plane, metrics=("loss",), folds=4)
    agree("landscape.surface", folds.loss.values, found.loss.values, relative=1e-11)


@reference("landscape.evaluate", by="counting by hand")
def test_ignored_samples_are_no_errors():
    for targets, ignored in ((IGNORED, -100), (FAR, 255)):
        task = landscape.make_task(dense(), CE(ignore_index=ignored), (INPUTS, targets))
        kept = targets != ignored
        wrong = (dense()(INPUTS).argmax(1) != targets)[kept].double().mean().item()
        for options in ({}, {"groups": torch.zeros(N, dtype=torch.int64)}):
            found = landscape.evaluate(task, task.theta[None], [[1.0]], **options)["error"]
            agree("landscape.evaluate", found.reshape(-1), [wrong], relative=1e-12)
