"""What samples are made of: images as bytes, or rows of numbers."""

import numpy as np

from drift.runs.run import Run
from landscape.model.samples import Samples, leaves

SMALLEST = 4
"""Pixels of an image's sides; smaller inputs are rows of numbers."""


def images(run: Run, samples: Samples) -> np.ndarray | None:
    """Images of samples as bytes, shape (n, H, W) of one channel or (n, H, W, 3); None where inputs are no images.

    The scaling of the run's dataset is undone; values outside of it span the whole range instead.

    Args:
        run: Run whose dataset they are of.
        samples: Inputs (n, C, H, W) with one or three channels.
    """
    (first, *more) = leaves(samples.inputs)
    if more or first.ndim != 4 or first.shape[1] not in (1, 3) or min(first.shape[2:]) < SMALLEST:
        return None
    values = first.cpu().numpy().astype(np.float64)
    mean, std = (np.array(constants).reshape(1, -1, 1, 1) for constants in run.dataset.normalisation)
    values = values * std + mean
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if low < -1e-3 or high > 1 + 1e-3:
        values = (values - low) / max(high - low, 1e-12)
    pixels = np.round(255 * values.clip(0, 1)).astype(np.uint8)
    return pixels[:, 0] if pixels.shape[1] == 1 else pixels.transpose(0, 2, 3, 1)


def rows(samples: Samples, most: int = 8) -> np.ndarray:
    """The first numbers of each sample's inputs, shape (n, f), f at most `most`."""
    flat = [
        leaf.reshape(len(samples), -1)[:, :most].cpu().numpy().astype(np.float64) for leaf in leaves(samples.inputs)
    ]
    return np.concatenate(flat, axis=1)[:, :most]
