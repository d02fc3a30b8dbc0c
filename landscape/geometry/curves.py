"""Mode-connecting curves: bent paths between two models, trained so that the loss along them is low."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Literal, Unpack, get_args

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.model.adam import Adam
from landscape.model.batchnorm import recalibrate_rows
from landscape.model.buffers import require_buffers
from landscape.model.samples import Samples
from landscape.model.task import Split, Task, metric_units, split_name
from landscape.model.vectors import takes_models
from landscape.plugins import require_known
from landscape.results.notebook_table import notebook_table
from landscape.sweep.evaluate import evaluate
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import axis, stack_models

Kind = Literal["bezier", "polygon"]


@dataclass(frozen=True, repr=False)
class Curve:
    """A path from points[0] (t = 0) to points[-1] (t = 1), both met exactly.

    bezier: sum_j binomial(n - 1, j) t^j (1 - t)^(n - 1 - j) points_j, of three points the quadratic curve.
    polygon: straight from each point to the next, each with the same share of t.

    Source: Garipov et al. 2018, section 3.3.

    Args:
        kind: "bezier" or "polygon".
        points: Shape (n, d); the first and the last are the models that it connects.
        buffers: Floating buffers of these two, shape (2, b); None if the models have none.

    Raises:
        ValueError: If the kind is unknown, or there are fewer than two points.
    """

    kind: Kind
    points: Tensor
    buffers: Tensor | None = None

    def __post_init__(self) -> None:
        require_known("kind of curve", self.kind, get_args(Kind))
        if self.points.ndim != 2 or len(self.points) < 2:
            raise ValueError(f"points have shape {tuple(self.points.shape)}; a curve takes (n, d) with n >= 2.")

    def __repr__(self) -> str:
        """One line without the points."""
        return f"Curve({self.kind}, {len(self.points)} points of {self.points.shape[1]} parameters)"

    def _repr_html_(self) -> str:
        """A small table for notebooks: kind, points, parameters, and the distance of the two ends."""
        points, size = self.points.shape
        distance = float((self.points[-1] - self.points[0]).norm())
        rows = {"kind": self.kind, "points": points, "parameters": size, "distance of the ends": distance}
        return notebook_table(repr(self), rows)

    def coefficients(self, t: np.ndarray | float) -> np.ndarray:
        """Coefficients (T, n) of the points at the places t (T,), float64; each row sums to 1."""
        times, last = np.atleast_1d(np.asarray(t, dtype=np.float64))[:, None], len(self.points) - 1
        index = np.arange(last + 1)
        if self.kind == "polygon":
            return np.maximum(0.0, 1 - np.abs(last * times - index))
        return np.array([comb(last, j) for j in index]) * times**index * (1 - times) ** (last - index)


@takes_models("a", "b")
def connecting_curve(
    task: Task,
    a: Tensor,
    b: Tensor,
    *,
    kind: Kind = "bezier",
    bends: int = 1,
    steps: int = 300,
    batch: int = 128,
    lr: float = 5e-3,
    split: Split = "train",
    seed: int = 0,
    buffers: Tensor | None = None,
) -> Curve:
    """A curve from a to b whose inner points were trained on the expected loss, t uniform in [0, 1].

        curve = landscape.connecting_curve(task, a, b, steps=100)
        landscape.along(task, curve).plot()

    Every step draws one t and one minibatch; the inner points j move by Adam along c_j(t) dL/dtheta. They start on
    the straight line; the rate is constant for half the steps, falls linearly to a hundredth until 0.9 of them and
    stays there (as in the published code, which uses SGD). The model is in train mode, as in ordinary training.

    Source: Garipov et al. 2018, section 3.2.

    Args:
        task: Model, loss and samples.
        a, b: Models, shape (d,).
        kind, bends: Of the curve, and its inner points; one bend of "bezier" is the quadratic curve.
        steps, batch, lr: Minibatches, samples in one, and rate of Adam.
        split: Samples that the loss is averaged over.
        seed: Of t, minibatches and dropout.
        buffers: Floating buffers of a and b, shape (2, b); by default the models' own. Training takes none of them.

    Raises:
        ValueError: If a and b differ in length, there is no bend, or the split is empty.
    """
    ends, samples = stack_models([a, b], 2), task.split(split)
    if bends < 1 or steps < 0 or batch < 1:
        raise ValueError(
            f"bends = {bends}, steps = {steps}, batch = {batch}; a curve takes bends >= 1, steps >= 0, batch >= 1."
        )
    if len(samples) == 0:
        raise ValueError("the split has no samples; a curve is trained on at least one.")
    curve = Curve(kind, _straight(ends, bends + 2), buffers)
    flat, optimizer = task.flat(ends), Adam([curve.points[1:-1]])  # a view: it changes the curve
    generator = torch.Generator().manual_seed(seed)
    device = ends.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        flat.training(True)
        for step in range(steps):
            time = float(torch.rand((), generator=generator, dtype=torch.float64))
            indices = torch.randperm(len(samples), generator=generator)[:batch]
            shares = torch.from_numpy(curve.coefficients(time)[0]).to(ends)
            flat.load(shares @ curve.points)
            flat.gradient(samples[indices.to(samples.targets.device)])
            rate = lr * min(1.0, max(0.01, 1 - 0.99 * (step / steps - 0.5) / 0.4))
            optimizer.step([shares[1:-1, None] * flat.grad], rate)
    return curve


def along(
    task: Task,
    curve: Curve,
    *,
    points: int = 31,
    buffers: Tensor | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Metrics along a curve and along the straight line between its ends.

    The barrier is the largest loss above the straight interpolation of the losses at the ends, as in
    `landscape.barrier`.

    Source: Garipov et al. 2018, section 5.

    Args:
        task: Model, loss and samples.
        curve: Curve between two models, as `connecting_curve` returns it.
        points: Evaluations on either path, both ends included.
        buffers: Floating buffers of the two ends, shape (2, b); by default those of the curve.
        evaluation, options: Samples, batch statistics, workers and more: a `landscape.Evaluation`, and fields of it by
            name. Batch statistics are stated in the attributes; by default they are recomputed at all points but the
            ends; "averaged" interpolates the buffers of the ends in t.

    Returns:
        Dataset with each metric over t (loss in nats, error as fraction) and straight_loss and so on for the line;
        barrier and straight_barrier (), and length and distance (), those of the two paths in parameter space.
    """
    t = axis(0.0, 1.0, points)
    straight = np.zeros((points, len(curve.points)))
    straight[:, 0], straight[:, -1] = 1 - t, t
    bent = curve.coefficients(t)
    buffers = curve.buffers if buffers is None else buffers
    evaluation = evaluation.but(**options).without("along", "groups", "precision")
    if evaluation.statistics is None:
        require_buffers(buffers, task.layout, "the ends of the curve are given")
    names = tuple(dict.fromkeys(("loss", *(task.metrics if evaluation.metrics is None else evaluation.metrics))))
    evaluation = evaluation.between(task).but(metrics=names)
    fixed = evaluation.calibration_of(task, buffers)
    curve_buffers = None if buffers is None else _buffers(task, curve.points, buffers, fixed)
    rows = np.concatenate([bent, straight])
    values_by_metric = evaluate(task, curve.points, rows, buffers=curve_buffers, evaluation=evaluation)
    ds = xr.Dataset(coords={"t": ("t", t, {"long_name": "t", "units": "1"})})
    for name in names:
        for prefix, values in {
            "": values_by_metric[name][:points],
            "straight_": values_by_metric[name][points:],
        }.items():
            ds[prefix + name] = ("t", values.numpy(), _about(name, task, name))
    for prefix, what in {"": "of the curve", "straight_": "of the straight line"}.items():
        loss = ds[f"{prefix}loss"].values
        height = np.maximum(0.0, (loss - (1 - t) * loss[0] - t * loss[-1]).max())
        ds[f"{prefix}barrier"] = ((), height, _about(f"loss barrier {what}", task, "loss"))
    for name, path, what in (("length", bent, "curve"), ("distance", straight, "straight line")):
        ds[name] = ((), _length(curve.points, path), {"long_name": f"length of the {what}", "units": "1"})
    about = {"analysis": "along", "source": "Garipov et al. 2018", "kind": curve.kind, "bends": len(curve.points) - 2}
    return ds.assign_attrs(about, split=split_name(evaluation.split), **evaluation.attrs(task, buffers))


def _buffers(task: Task, points: Tensor, ends: Tensor, fixed: Samples | None) -> Tensor:
    """Floating buffers (n, b) of a curve's points: between the ends' (2, b), with statistics of `fixed` samples."""
    times = np.linspace(0, 1, len(points)).tolist()
    buffers = torch.stack([(1 - time) * ends[0] + time * ends[1] for time in times])
    if fixed is None:
        return buffers
    return recalibrate_rows(task, points, buffers, range(1, len(points) - 1), fixed)  # a polygon meets its inner points


def _about(name: str, task: Task, metric: str) -> dict[str, str]:
    return {"long_name": name, "units": metric_units(task, metric)}


def _straight(ends: Tensor, count: int) -> Tensor:
    """`count` points (count, d), evenly spaced from the first model to the second."""
    times = torch.linspace(0, 1, count, dtype=ends.dtype, device=ends.device)[:, None]
    points = (1 - times) * ends[0] + times * ends[1]
    points[0], points[-1] = ends
    return points


def _length(points: Tensor, rows: np.ndarray) -> float:
    """Length of the path through the models rows @ points."""
    offsets = (points - points[0]).double()
    gram = (offsets @ offsets.T).cpu().numpy()
    legs = np.diff(rows, axis=0)
    return float(np.sqrt(np.maximum(0, np.einsum("pi,ij,pj->p", legs, gram, legs))).sum())
