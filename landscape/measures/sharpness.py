"""Rise of the loss in a ball around a model: largest, after one gradient step, and on average."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.measures.norms import weight_norm
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.model.task import Task, metric_units, split_name
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled
from landscape.sweep.evaluate import evaluate
from landscape.sweep.evaluation import Evaluation, EvaluationOptions

TINY = 1e-16
"""Added to a gradient's norm before division (papers.md 2.1)."""

ON_TRAIN = Evaluation(split="train")

_UNUSED = ("metrics", "groups", "statistics", "calibration", "precision")


@takes_models("theta")
def ball_sharpness(
    task: Task,
    theta: Tensor,
    *,
    radius: float = 0.1,
    steps: int = 20,
    directions: int = 20,
    adaptive: bool = False,
    eta: float = 0.01,
    seed: int = 0,
    buffers: Tensor | None = None,
    evaluation: Evaluation = ON_TRAIN,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Rise of the mean loss in the ball ||T^-1 e|| <= radius around a model, in eval mode; smaller means flatter.

    worst is the largest L(theta + e) - L(theta) that normalised gradient ascent meets, projected onto the ball after
    every step, with steps that shrink from twice the radius to zero; it starts with the one-step rise, the metric of
    SAM and ASAM at e = radius T^2 g / ||T g||. mean is the average over points drawn uniformly from the ball, each
    with its opposite, so that the slope cancels and few of them suffice. T is 1 everywhere; adaptive, it is |w| + eta
    on tensors with "weight" in their name, so that a rescaled ReLU network stays about as sharp as it was.

    Source: Foret et al. 2021 (SAM), section 2; Kwon et al. 2021 (ASAM), section 3; papers.md 2.1.

    Args:
        task: Model, loss and samples.
        adaptive: Scale the ball by the weights (T = |w| + eta).
        eta: Added to |w| where `adaptive`.
        theta: Model, shape (d,).
        radius: Of the ball, in parameter-space length (adaptive: in multiples of T).
        steps: Gradients of the ascent; 1 computes only the one-step rise.
        directions: Random points for the mean, without their opposites.
        seed: Of the random points, and of the start of the ascent where the gradient is zero.
        buffers: Floating buffers (b,); by default the model's own.
        evaluation, options: Samples (by default train), of which all go into every gradient, and workers for the
            random points: a `landscape.Evaluation`, and fields of it by name.

    Returns:
        Dataset of loss (), worst (), one_step (), mean () and spread (), the standard deviation over pairs of
        opposite points, in the loss's unit.

    Raises:
        ValueError: If radius, steps or directions is too small, or the split is empty.
    """
    _check(radius, steps, directions)
    evaluation = evaluation.but(**options).without("ball_sharpness", *_UNUSED)
    samples = task.split(evaluation.split)
    if len(samples) == 0:
        raise ValueError("the split has no samples; a mean needs at least one.")
    theta = theta.detach()
    scale = torch.ones_like(theta)
    for name, span in task.layout.slices().items() if adaptive else ():
        if "weight" in name:
            scale[span] = theta[span].abs() + eta
    points = torch.stack(list(_ball(theta, directions, seed)))
    flat = task.flat(theta)
    flat.load(theta, buffers)
    here, one_step, worst = _ascent(flat, theta, radius, scale, samples, steps, evaluation.block or 512, points[0])
    rises = _rises(task, theta, radius * scale * points, buffers, evaluation)
    values = {"loss": here, "worst": worst - here, "one_step": one_step - here}
    values |= {"mean": float(rises.mean()), "spread": float(rises.std())}
    units = metric_units(task, "loss")
    variables = {name: ((), value, _NAMES[name], units) for name, value in values.items()}
    about = {"analysis": "ball_sharpness", "source": "Foret et al. 2021; Kwon et al. 2021; papers.md 2.1"}
    about |= {"split": split_name(evaluation.split)}
    return labelled(variables, {**about, "radius": radius, "adaptive": int(adaptive), "seed": seed})


_NAMES = {
    "loss": "loss of the model",
    "worst": "worst loss rise in the ball",
    "one_step": "loss rise of one gradient step",
    "mean": "mean loss rise in the ball",
    "spread": "standard deviation of the mean rise of opposite points",
}


def _ascent(
    flat: Flat, theta: Tensor, radius: float, scale: Tensor, samples: Samples, steps: int, block: int, fallback: Tensor
) -> tuple[float, float, float]:
    """Losses at the model, after one step, and the largest met; v is the place in units of the scale."""
    here, gradient = flat.loss_and_gradient(theta, samples, block)
    upward = scale * gradient if bool(gradient.any()) else fallback
    v = radius * upward / (weight_norm(upward) + TINY)
    losses = []
    for step in range(1, steps + 1):
        value, gradient = flat.loss_and_gradient(theta + scale * v, samples, block)
        losses.append(value)
        upward = scale * gradient
        v = v + 2 * radius * (1 - step / steps) * upward / (weight_norm(upward) + TINY)
        v = v * min(1.0, radius / (float(weight_norm(v)) + TINY))
    return here, losses[0], float(np.max(losses))  # NaN where one is


def _rises(task: Task, theta: Tensor, moves: Tensor, buffers: Tensor | None, evaluation: Evaluation) -> Tensor:
    """Loss rise (k,) of theta plus and minus each of moves (k, d), averaged over both signs."""
    count = len(moves)
    along = torch.eye(count, count + 1, dtype=torch.float64).roll(1, 1)
    here = torch.eye(1, count + 1, dtype=torch.float64)
    coefficients = torch.cat([here, here + along, here - along])
    basis_buffers = (
        None if buffers is None else torch.cat([buffers[None], torch.zeros(count, len(buffers)).to(buffers)])
    )
    basis, of_loss = torch.cat([theta[None], moves]), evaluation.but(metrics=("loss",))
    loss = evaluate(task, basis, coefficients, buffers=basis_buffers, evaluation=of_loss)["loss"]
    return loss[1:].view(2, count).mean(0) - loss[0]


def _ball(like: Tensor, count: int, seed: int) -> Iterator[Tensor]:
    """Points (d,) uniform in the unit ball."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        direction = torch.randn(like.numel(), generator=generator, dtype=torch.float64)
        length = torch.rand((), generator=generator, dtype=torch.float64) ** (1 / like.numel())
        yield (length * direction / direction.norm()).to(like)


def _check(radius: float, steps: int, directions: int) -> None:
    if not radius > 0:
        raise ValueError(f"radius is {radius}; a ball needs a positive one.")
    if steps < 1:
        raise ValueError(f"steps is {steps}; the ascent needs at least 1.")
    if directions < 2:
        raise ValueError(f"directions is {directions}; a mean with its spread needs at least 2.")
