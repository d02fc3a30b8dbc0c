"""The usual sweep through some models, by their number."""

from collections.abc import Sequence
from typing import Any

from landscape.geometry.directions import random_plane
from landscape.geometry.lines import line
from landscape.geometry.planes import plane
from landscape.geometry.trajectory import principal_plane
from landscape.model.task import Task
from landscape.model.vectors import AnyModel, arrays_of
from landscape.sweep.grid import Sweep


def as_sweep(task: Task, sweep: Sweep | AnyModel | Sequence[AnyModel], models: Sequence[AnyModel] = ()) -> Sweep:
    """A sweep as it is; of models, random directions around one, the line of two, the plane of three or of more.

    The plane of more than three models is that of their principal components. The functions that make these sweeps
    (`landscape.random_plane`, `line`, `plane`, `principal_plane`) have further options.

    Args:
        task: Model, loss and samples.
        sweep: A sweep; or a model, or a sequence of models: vectors (d,), modules, state dicts or checkpoints.
        models: Further models.

    Raises:
        ValueError: If there is no model, one is of another architecture, or models stand beside a sweep.
        LookupError: If there is no such checkpoint.
    """
    if isinstance(sweep, Sweep):
        if models:
            raise ValueError("a sweep and further models were given; give either the sweep or the models.")
        return sweep
    several = isinstance(sweep, Sequence) and not isinstance(sweep, str) and not arrays_of(sweep, task)
    first: list[Any] = list(sweep) if several else [sweep]  # type: ignore[arg-type]
    every: list[Any] = [*first, *models]
    if not every:
        raise ValueError(f"there is no model in {sweep!r}; give a sweep, or one model or more.")
    usual: Any = {1: random_plane, 2: line, 3: plane}.get(len(every))
    return principal_plane(every, task=task) if usual is None else usual(task, *every)  # type: ignore[call-arg]
