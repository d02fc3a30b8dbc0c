"""Values between the points of a grid, which may be those of a triangle."""

import numpy as np


def interpolated(a: np.ndarray, b: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Values (n, m) on a grid, at the points of a finer one, shape (len(x), len(y)); NaN beside one that is not finite.

    Monotone between the points of the grid, so that there is no minimum that they do not have.
    """
    from scipy.interpolate import PchipInterpolator

    if triangle := is_triangle(values):  # its long side cuts cells: the plane through their three points goes on
        values = values.copy()
        beyond = np.fliplr(np.eye(len(a) - 1, dtype=bool))
        values[1:, 1:][beyond] = (values[1:, :-1] + values[:-1, 1:] - values[:-1, :-1])[beyond]
    finite = np.isfinite(values)
    filled = np.where(finite, values, np.nanmax(np.where(finite, values, np.nan)))
    fine = PchipInterpolator(b, PchipInterpolator(a, filled, axis=0)(x), axis=1)(y)
    rows, columns = (np.clip(np.searchsorted(old, new, "right") - 1, 0, len(old) - 2) for old, new in ((a, x), (b, y)))
    cells = finite[:-1, :-1] & finite[1:, :-1] & finite[:-1, 1:] & finite[1:, 1:]
    inside = np.add.outer(x, y) <= a[-1] + b[0] + 1e-9 if triangle else cells[np.ix_(rows, columns)]
    return np.where(inside, fine, np.nan)


def is_triangle(values: np.ndarray) -> bool:
    """Whether a square map has values below its diagonal and on it alone, as one over the weights of three models."""
    return np.array_equal(np.isfinite(values), np.tri(len(values), dtype=bool)[::-1])
