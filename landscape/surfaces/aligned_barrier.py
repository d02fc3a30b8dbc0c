"""The barrier between two models before and after their units are aligned."""

from __future__ import annotations

from typing import Unpack

import xarray as xr
from torch import Tensor

from landscape.geometry.alignment import align
from landscape.model.task import Task
from landscape.model.vectors import takes_models
from landscape.surfaces.barrier import barrier
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions


@takes_models("a", "b")
def aligned_barrier(
    task: Task,
    a: Tensor,
    b: Tensor,
    *,
    points: int = 21,
    seed: int = 0,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Loss on the line from a to b, and on that from a to b with its units aligned to those of a.

    Source: Ainsworth et al. 2023, section 5.

    Args:
        task: Model, loss and samples.
        a, b: Models, shape (d,).
        points: Evaluations on a line, both ends included.
        seed: Of the alignment.
        evaluation, options: Of both lines, as in `landscape.barrier`.

    Returns:
        Dataset with loss and aligned_loss (t,), barrier and aligned_barrier () in nats, distance and
        aligned_distance () in parameter space.

    Raises:
        ValueError: As `align` does.
    """
    evaluation = evaluation.but(**options)
    models = {"": b, "aligned_": align(task, a, b, seed=seed)}
    ds = xr.Dataset(attrs={"analysis": "aligned_barrier", "source": "Ainsworth et al. 2023"})
    for index, (prefix, other) in enumerate(models.items()):
        line = barrier(task, a, other, points=points, evaluation=evaluation.stage(index, len(models)))
        for name in ("loss", "barrier"):
            ds[prefix + name] = line[name]
        distance = float((a.double() - other.double()).norm())
        ds[f"{prefix}distance"] = ((), distance, {"long_name": "distance of the models", "units": "1"})
    return ds.drop_vars("mark", errors="ignore")
