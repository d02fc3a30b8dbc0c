"""Accuracy lost on noisy inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.model.samples import Samples
from landscape.model.task import Split, Task, split_name
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled
from landscape.results.progress import Progress, with_progress
from landscape.sweep.evaluate import model_metrics

LEVELS = (4 / 255, 8 / 255)
"""Noise amplitudes of the LSS paper, for inputs in [0, 1]."""


@takes_models("theta")
def noise_robustness(
    task: Task,
    theta: Tensor,
    *,
    mean: Sequence[float] = (0.0,),
    std: Sequence[float] = (1.0,),
    levels: Sequence[float] = LEVELS,
    draws: int = 3,
    split: Split = "test",
    seed: int = 0,
    buffers: Tensor | None = None,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Accuracy lost when every input x in [0, 1] becomes clip(x + xi, 0, 1), xi uniform in [-level, level].

    Noise is added before normalisation: an input z of the task stands for x = z std + mean. The draws of all levels
    are the same noise, scaled.

    Source: LSS paper, Table 6; papers.md 3.5. The paper calls the noise l0; its sizes make sense as l_infinity.

    Args:
        task: Model, loss and samples.
        split: Samples that the numbers are averaged over.
        seed: Seed of the random draws.
        theta: Model, shape (d,).
        mean, std: One number per channel, or one for all; the defaults are inputs that lie in [0, 1] themselves.
        levels: Largest change of an input value, as a fraction of its range.
        draws: Noise samples that the drop is averaged over.
        buffers: Floating buffers (b,); by default the model's own.
        progress: Called with (evaluations done, all evaluations).

    Returns:
        Dataset with accuracy (), noisy (value, draw) and drop (value), fractions; value is the level.

    Raises:
        ValueError: If inputs are not one tensor of real numbers in [0, 1], the task has no error, or a level or draws
            is bad.
    """
    samples = task.split(split)
    if not levels or min(levels) < 0:
        raise ValueError(f"levels are {list(levels)}; give at least one, none negative.")
    if draws < 1:
        raise ValueError(f"draws is {draws}; at least one noise is needed.")
    clean = 1 - model_metrics(task, theta, buffers, split=samples, metrics=("error",))["error"]
    noisy = np.empty((len(levels), draws))
    cells = [(draw, row, level) for draw in range(draws) for row, level in enumerate(levels)]
    for draw, row, level in with_progress(cells, progress):
        generator = torch.Generator().manual_seed(seed * 1_000_003 + draw)
        changed = with_noise(samples, level, generator, mean=mean, std=std)
        noisy[row, draw] = 1 - model_metrics(task, theta, buffers, split=changed, metrics=("error",))["error"]
    variables = {
        "accuracy": ((), clean, "accuracy without noise", "fraction"),
        "noisy": (("value", "draw"), noisy, "accuracy with noise", "fraction"),
        "drop": ("value", clean - noisy.mean(1), "accuracy drop", "fraction"),
    }
    about = {"analysis": "noise_robustness", "source": "LSS paper, Table 6", "split": split_name(split)}
    coords = {"value": ("value", np.asarray(levels, dtype=float), "noise amplitude"), "draw": np.arange(draws)}
    return labelled(variables, {**about, "seed": seed}, coords)


def with_noise(
    samples: Samples,
    level: float,
    generator: torch.Generator,
    *,
    mean: Sequence[float] = (0.0,),
    std: Sequence[float] = (1.0,),
) -> Samples:
    """The samples with uniform noise of amplitude `level` on their inputs in [0, 1], clipped to [0, 1].

    Raises:
        ValueError: If inputs are not one tensor of real numbers in [0, 1], or mean and std do not fit its channels.
    """
    inputs = samples.inputs
    if not isinstance(inputs, Tensor) or not inputs.is_floating_point():
        raise ValueError("noise needs inputs that are one tensor of real numbers, such as images; these are not.")
    centre, width = _channels(mean, inputs), _channels(std, inputs)
    noise = torch.rand(inputs.shape, generator=generator, dtype=inputs.dtype).to(inputs.device)
    plain = inputs * width + centre
    if plain.numel() and not -1e-4 <= float(plain.min()) <= float(plain.max()) <= 1 + 1e-4:
        raise ValueError(
            f"inputs run from {float(plain.min()):.3g} to {float(plain.max()):.3g}, but noise is for inputs in [0, 1]; "
            "give mean= and std= of their normalisation z = (x - mean) / std."
        )
    changed = plain.add_(noise.mul_(2).sub_(1), alpha=level).clamp_(0, 1)
    return Samples(changed.sub_(centre).div_(width), samples.targets)


def _channels(values: Sequence[float], inputs: Tensor) -> Tensor:
    if len(values) not in (1, inputs.shape[1]):
        raise ValueError(
            f"{len(values)} numbers were given for {inputs.shape[1]} channels; give one per channel, or one for all."
        )
    return torch.tensor(values, dtype=inputs.dtype, device=inputs.device).view(-1, *[1] * (inputs.ndim - 2))
