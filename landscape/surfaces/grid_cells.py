"""Quadtree of square grid cells: points and quarters of a cell, interpolation between its corners."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Cell = tuple[int, int, int]
"""Grid position (i, j) of a cell's low corner, and its side in grid steps."""


def cell_points(cell: Cell) -> tuple[slice, slice]:
    """The 3 x 3 points of a cell: corners, middles of sides, centre."""
    i, j, side = cell
    return slice(i, i + side + 1, side // 2), slice(j, j + side + 1, side // 2)


def quarters(cell: Cell) -> list[Cell]:
    """The four cells of half the side."""
    i, j, half = cell[0], cell[1], cell[2] // 2
    return [(i + down, j + right, half) for down in (0, half) for right in (0, half)]


def difference(values: np.ndarray) -> float:
    """Largest relative difference of the five middles (.., 3, 3) from the corners' interpolation, between 0 and 2."""
    guess = bilinear(values[..., ::2, ::2], 2)
    scale = np.abs(values) + np.abs(guess)
    with np.errstate(invalid="ignore"):
        relative = np.where(scale > 0, 2 * np.abs(values - guess) / np.where(scale > 0, scale, 1), 0)
    # two infinite values need no refinement, one infinite value always does
    both = ~np.isfinite(values) & ~np.isfinite(guess)
    return float(np.where(both, 0, np.where(np.isfinite(relative), relative, 2)).max())


def bilinear(corners: np.ndarray, side: int) -> np.ndarray:
    """Interpolation of corner values (.., 2, 2) at (.., side + 1, side + 1) points."""
    up = np.linspace(0, 1, side + 1)
    total = np.zeros((*corners.shape[:-2], side + 1, side + 1))
    for i, down in enumerate((1 - up, up)):
        for j, right in enumerate((1 - up, up)):
            share = down[:, None] * right
            corner = np.broadcast_to(corners[..., i, j, None, None], total.shape)
            np.add(total, share * np.where(share > 0, corner, 0), out=total)  # 0 times infinity is 0 here
    return total


def interpolate(values: np.ndarray, leaves: Sequence[Cell], evaluated: np.ndarray) -> np.ndarray:
    """Values (.., rows, columns), interpolated where they were not evaluated; small cells overrule large ones."""
    filled = values.copy()
    for i, j, side in sorted(leaves, key=lambda cell: (-cell[2], cell)):
        place = (slice(None), slice(i, i + side + 1), slice(j, j + side + 1))
        guess = bilinear(values[place][:, ::side, ::side], side)
        filled[place] = np.where(evaluated[place[1:]], values[place], guess)
    return filled
