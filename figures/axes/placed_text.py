"""Where the numbers of axes and the names of models stand, computed for both drawing libraries."""

from collections.abc import Sequence

import numpy as np


def ticks(low: float, high: float, other: float = np.inf) -> np.ndarray:
    """Two to four round numbers between two ends, or up to seven by the step of a shorter axis of the same unit.

    Args:
        other: Length of the other axis, where both have one unit.
    """
    usual, shorter = _step(high - low), _step(min(other, high - low))
    step = shorter if (high - low) / shorter <= 6 else usual
    return np.asarray(np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step + 0.0)


def _step(span: float) -> float:
    power = 10.0 ** np.floor(np.log10(span))
    return float(next(step for step in power * np.array([0.1, 0.2, 0.5, 1, 2, 5]) if span / step <= 4))


def spread_names(points: np.ndarray, widths: Sequence[float], tall: float) -> np.ndarray:
    """Centres of names beside points (k, 2), away from all points and from each other, shape (k, 2); in pixels.

    Args:
        widths: Of the names.
        tall: Their height.
    """
    centres, boxes = np.array(points, dtype=float), [(point, np.array([0.5, 0.5]) * tall) for point in points]
    for at, (point, width) in enumerate(zip(points, widths, strict=True)):
        half = np.array([width, tall]) / 2
        away = half + 0.55 * tall
        sides = np.array([(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)])
        options = [point + (1 + far) * side * away for far in (0, 0.8, 1.6) for side in sides]
        rest = boxes[:at] + boxes[at + 1 :]
        crowd = [sum(float(np.clip(half + size - abs(option - centre), 0, None).prod()) for centre, size in rest)
                 for option in options]  # fmt: skip
        centres[at] = options[int(np.argmin(crowd))]
        boxes.append((centres[at], half))
    return centres
