"""Loss barriers between many models, from the midpoints first; more of a line only where they leave it undecided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Unpack

import numpy as np
import xarray as xr
from torch import Tensor

from landscape.model.task import Task, metric_units
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled
from landscape.surfaces.barrier import model_distances
from landscape.sweep.evaluate import evaluate
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import stack_models

CELLS = 16
"""Parts of a line at its finest."""

AT_ONCE = 2048
"""Points per sweep."""

SAFETY = 4.0
"""The curvature that is assumed on a line over the largest that was measured on it."""


@takes_models("models")
def bounded_barriers(
    task: Task,
    models: Sequence[Tensor] | Tensor,
    *,
    margin: float = 0.1,
    labels: Sequence[str] | None = None,
    buffers: Tensor | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Whether the barrier between every two of many models is below a margin, with bounds of its height.

    On the line from a to b let e(t) be the loss minus its interpolation between the ends, so that the barrier of
    `barrier` is max e. It is at least the largest e that was evaluated. The second derivative of e is taken to be at
    least -M, M four times the largest magnitude of a negative one that was measured: from differences of e, and at the
    ends from the slopes e'(0) and e'(1), inner products of b - a with the gradients at a and b. Between points apart by
    h, e is then at most

        (e_0 + e_1) / 2 + M h^2 / 8 + (e_1 - e_0)^2 / (2 M h^2)    or max(e_0, e_1) where |e_1 - e_0| > M h^2 / 2.

    A pair is decided once the lower bound exceeds the margin or the upper one does not. The first point is the
    midpoint; undecided lines are halved, to 15 points at most. Models with buffers, such as batch statistics, have no
    slopes and start with three points. M is an estimate: docs/model-map.md states how often the upper bound holds.

    Source: Frankle et al. 2020, section 2 (the barrier); the bounds: this project.

    Args:
        task: Model, loss and samples.
        models: Shape (n, d); one with a parameter or a loss that is not finite has NaN in every pair.
        margin: Barrier up to which two models are joined, in the unit of the loss.
        labels: Names of the models; by default 1, 2, .. n.
        buffers: Floating buffers of the models, shape (n, b); by default the models' own.
        evaluation, options: As in `landscape.barrier`.

    Returns:
        Dataset over mark and mark_other with barrier (its lower bound), barrier_high, joined (1, or 0), midpoint as in
        `pairwise_barriers`, points (evaluated between the models) and distance; and mark_loss (mark,). Attribute
        undecided: pairs that 15 points do not decide; they count as joined if the lower bound does not exceed the
        margin.

    Raises:
        ValueError: If the models differ in length, or the margin is negative.
    """
    if not margin >= 0:
        raise ValueError(f"margin is {margin}; give the barrier up to which models are joined, 0 or more.")
    basis = stack_models(list(models))
    evaluation = evaluation.but(**options).without("bounded_barriers", "metrics", "groups", "precision").between(task)
    evaluation = evaluation.but(metrics=("loss",))
    losses = partial(evaluate, task, basis, buffers=buffers, evaluation=evaluation)
    loss = np.where(basis.isfinite().all(1).cpu().numpy(), losses(np.eye(len(basis)))["loss"].numpy(), np.nan)
    lines = _PairLines(loss, distances := model_distances(basis), _slopes(task, basis, loss, evaluation))
    for step in (CELLS // 2, CELLS // 4, CELLS // 8, CELLS // 16):
        rows = lines.undecided(margin)
        for block in np.array_split(rows, -(-len(rows) // AT_ONCE) or 1):
            lines.fill(block, step, losses)
        lines.bound(rows, step)
    names = [str(index + 1) for index in range(len(basis))] if labels is None else list(labels)
    both, units = ("mark", "mark_other"), metric_units(task, "loss")
    variables = {
        "barrier": (both, lines.square(lines.low), "loss barrier", units),
        "barrier_high": (both, lines.square(lines.high), "loss barrier, upper bound", units),
        "midpoint": (both, lines.square(lines.excess[:, CELLS // 2]), "midpoint minus mean loss", units),
        "joined": (both, lines.square(lines.low <= margin, 1.0), "barrier is within the margin", "1"),
        "points": (both, lines.square(lines.points), "points evaluated on the line", "1"),
        "distance": (both, distances, "distance of the models", "1"),
        "mark_loss": ("mark", loss, "loss at the mark", units),
    }
    about = {"analysis": "bounded_barriers", "source": "Frankle et al. 2020, section 2", "margin": margin}
    attrs = {**about, "undecided": len(lines.undecided(margin)), **evaluation.attrs(task, buffers)}
    return labelled(variables, attrs, dict.fromkeys(both, names))


def _slopes(task: Task, basis: Tensor, loss: np.ndarray, evaluation: Evaluation) -> np.ndarray:
    """Derivative (n, n) of the loss at each model towards every other one; NaN for models with buffers."""
    flat, samples = task.flat(basis[0]), task.split(evaluation.split)
    slopes = np.full((len(basis), len(basis)), np.nan)
    for row in np.flatnonzero(np.isfinite(loss)).tolist() if not task.layout.buffers else ():
        _, gradient = flat.loss_and_gradient(basis[row], samples, evaluation.block or 512)
        slopes[row] = ((basis - basis[row]) @ gradient).cpu().numpy()
    return slopes


class _PairLines:
    """Lines between pairs (p, 2) of models whose losses (n,) are finite, and what is known of them.

    Attributes:
        slopes: Derivatives of the excess over the interpolated loss at both ends, shape (p, 2); NaN if not known.
        excess: At CELLS + 1 places, ends included, shape (p, CELLS + 1); NaN where it was not evaluated.
        low, high: Bounds of the barrier, shape (p,); 0 between a model and its copy.
        points: Evaluated between the models, shape (p,).
    """

    def __init__(self, loss: np.ndarray, distances: np.ndarray, slopes: np.ndarray) -> None:
        self.loss, usable = loss, np.flatnonzero(np.isfinite(loss))
        self.pairs = np.array(list(combinations(usable, 2)), dtype=int).reshape(-1, 2)
        a, b = self.pairs.T
        self.slopes = np.stack([slopes[a, b], -slopes[b, a]], 1) - (loss[b] - loss[a])[:, None]
        self.excess = np.full((len(self.pairs), CELLS + 1), np.nan)
        self.excess[:, [0, -1]] = 0
        self.excess[distances[a, b] == 0, CELLS // 2] = 0
        self.low, self.points = np.zeros((2, len(self.pairs)))
        self.high = np.where(distances[a, b] == 0, 0.0, np.inf)

    def undecided(self, margin: float) -> np.ndarray:
        """Rows of lines whose bounds leave open whether the barrier is within the margin."""
        unbounded = np.isinf(self.high) & np.isfinite(self.low)
        return np.flatnonzero(((self.low <= margin) | unbounded) & (self.high > margin))

    def fill(self, rows: np.ndarray, step: int, losses: Callable[..., dict[str, Tensor]]) -> None:
        """Evaluate lines at the odd multiples of a step, in cells; a loss that is not finite counts as infinite."""
        cells = np.arange(step, CELLS, 2 * step)
        (a, b), t = self.pairs[rows].T, cells / CELLS
        coefficients = np.zeros((len(rows), len(t), len(self.loss)))
        coefficients[np.arange(len(rows)), :, a] = 1 - t
        coefficients[np.arange(len(rows)), :, b] = t
        values = losses(coefficients.reshape(-1, len(self.loss)))["loss"].numpy().reshape(len(rows), len(t))
        chord = np.outer(self.loss[a], 1 - t) + np.outer(self.loss[b], t)
        self.excess[np.ix_(rows, cells)] = np.where(np.isfinite(values), values - chord, np.inf)
        self.points[rows] += len(t)
        self.low[rows] = np.nanmax(self.excess[rows], axis=1).clip(0)

    def bound(self, rows: np.ndarray, step: int) -> None:
        """Bound lines from above that were evaluated at all multiples of a step, in cells; not by a midpoint alone."""
        excess, h, known = self.excess[rows, ::step], step / CELLS, np.isfinite(self.slopes[rows]).all(1)
        first, last = np.where(known, self.slopes[rows].T, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            at_ends = np.where(known, np.minimum(excess[:, 1] - h * first, excess[:, -2] + h * last), np.inf)
            bend = SAFETY * (-np.minimum(np.diff(excess, 2).min(1), 2 * at_ends)).clip(0)[:, None]
            gaps, ends = np.abs(np.diff(excess)), np.stack([excess[:, 1:], excess[:, :-1]])
            arched = ends.mean(0) + bend / 8 + gaps**2 / (2 * bend)
            highest = np.where(gaps < bend / 2, arched, ends.max(0)).max(1, initial=0)
        bounded = np.isfinite(self.low[rows]) & (known | (step < CELLS // 2))
        self.high[rows] = np.where(bounded, highest, np.inf)

    def square(self, values: np.ndarray, diagonal: float = 0.0) -> np.ndarray:
        """Values of the pairs (p,) as a symmetric matrix (n, n); NaN where a model has no finite loss."""
        matrix = np.full((len(self.loss), len(self.loss)), np.nan)
        (a, b), usable = self.pairs.T, np.flatnonzero(np.isfinite(self.loss))
        matrix[a, b] = matrix[b, a] = values
        matrix[usable, usable] = diagonal
        return matrix
