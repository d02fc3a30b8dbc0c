"""`Evaluation`: on which samples, by which metrics and how models are evaluated, as one value that is passed on."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, TypedDict, Unpack

from torch import Tensor

from landscape.model.batchnorm import CALIBRATION, Statistics, calibration_of, resolve_statistics, usual_statistics
from landscape.model.samples import Samples
from landscape.model.task import Split, Task
from landscape.plugins import unknown
from landscape.plugins.option_types import is_integer
from landscape.results.notebook_table import notebook_table
from landscape.results.progress import Progress, share
from landscape.sweep.precision import Precision, check_precision
from landscape.sweep.threads import PointPool


class EvaluationOptions(TypedDict, total=False):
    """Fields of an `Evaluation`, as the functions that evaluate models take them by name."""

    split: Split
    metrics: tuple[str, ...] | None
    groups: Tensor | None
    statistics: Statistics | None
    calibration: Samples | int
    precision: Precision
    workers: int | PointPool
    progress: Progress | None
    block: int | None
    memory: int | None


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """How models are evaluated.

    Functions that evaluate take one, and its fields by name, which then differ from it:

        landscape.surface(task, sweep, split="train", workers=2)
        landscape.surface(task, sweep, evaluation=landscape.Evaluation(split="train", workers=2))

    Args:
        split: Samples that the metrics are averaged over.
        metrics: "loss" and names of the task's metrics, each with values (n,) or (n, v) for n samples; by default all.
        groups: Group 0, 1, .. of each sample, shape (samples,); metrics are then means per group, from one pass.
        statistics: Of batch normalisation. "recomputed": on `calibration` at every point, except points that are a
            single model of the basis with buffers; "averaged": buffers combined like the models; "task": those of the
            task's own model at all points. By default averaged by `landscape.evaluate`, and recomputed between models
            by all others.
        calibration: Samples for the statistics, or how many of the split train (if there is none, of `split`).
        precision: "fast" lets inner layers multiply in bfloat16 if the processor can (`landscape.sweep.precision`);
            `landscape.surface` measures and states the error of that.
        workers: Threads that share the points, or the samples if there are fewer points than threads; more than one
            use one core each, a GPU needs one. Or a pool of processes (`landscape.sweep.threads.PointPool`).
        progress: Called with (points done, all points).
        block: Samples in one forward pass; by default set by the size of the activations.
        memory: Bytes of point models in memory; on a GPU with their activations, by default half of the free memory.

    Raises:
        ValueError: If the precision is unknown, or workers, block or memory is not a number above 0.
    """

    split: Split = "test"
    metrics: tuple[str, ...] | None = None
    groups: Tensor | None = None
    statistics: Statistics | None = None
    calibration: Samples | int = CALIBRATION
    precision: Precision = "exact"
    workers: int | PointPool = 1
    progress: Progress | None = None
    block: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        check_precision(self.precision)
        if not (hasattr(self.workers, "evaluate_points") or (is_integer(self.workers) and self.workers >= 1)):
            raise ValueError(f"workers is {self.workers!r}; a sweep needs a whole number, one or more.")
        if isinstance(self.workers, Integral):  # NumPy's too
            object.__setattr__(self, "workers", int(self.workers))
        for name in ("block", "memory"):
            size = getattr(self, name)
            if size is not None and not (is_integer(size) and size > 0):
                raise ValueError(f"{name} is {size!r}; an evaluation takes a {name} above 0, in whole numbers.")

    def __repr__(self) -> str:
        """The fields that differ from the usual ones."""
        return f"Evaluation({', '.join(f'{name}={_text(value)}' for name, value in self._asked.items())})"

    def _repr_html_(self) -> str:
        """A small table for notebooks: all fields."""
        return notebook_table(repr(self), {field.name: _text(getattr(self, field.name)) for field in fields(self)})

    @property
    def _asked(self) -> dict[str, Any]:
        """Fields that differ from the usual ones."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        plain = (str, int, type(None))  # others, such as tensors, have no one answer to ==
        return {
            name: value
            for name, (value, usual) in values.items()
            if not (value is usual or (isinstance(value, plain) and value == usual))
        }

    def but(self, **options: Unpack[EvaluationOptions]) -> Evaluation:
        """The same evaluation, but with these fields.

        Raises:
            ValueError: If there is no such field.
        """
        for name in options.keys() - EvaluationOptions.__annotations__.keys():
            raise ValueError(unknown("option of an evaluation", name, EvaluationOptions.__annotations__))
        return replace(self, **options) if options else self

    def stage(self, index: int, count: int) -> Evaluation:
        """The same evaluation, its progress that of stage 0, 1, .. of `count` equal ones."""
        return self.but(progress=share(self.progress, index, count))

    def between(self, task: Task) -> Evaluation:
        """The same evaluation, with the statistics that suit points between trained models if none are asked for."""
        return self.but(statistics=self.statistics or usual_statistics(task))

    def without(self, function: str, *names: str) -> Evaluation:
        """The same evaluation, for a function that these fields mean nothing to.

        Raises:
            ValueError: If one of them is asked for.
        """
        for name in names:
            if name in self._asked:
                raise ValueError(f"{function} takes no {name}; leave it out.")
        return self

    def calibration_of(self, task: Task, buffers: Tensor | None) -> Samples | None:
        """Samples that statistics are recomputed on; None where they are not. `buffers` are those of the basis."""
        how = resolve_statistics(task, self.statistics, buffers)
        return calibration_of(task, self.split, self.calibration) if how == "recomputed" else None

    def attrs(self, task: Task, buffers: Tensor | None) -> dict[str, str | int]:
        """Attributes of a result that state its batch statistics; empty for models without floating buffers."""
        if not task.layout.buffers:
            return {}
        fixed = self.calibration_of(task, buffers)
        counted = {} if fixed is None else {"calibration": len(fixed)}
        return {"statistics": resolve_statistics(task, self.statistics, buffers), **counted}


def _text(value: object) -> str:
    return f"of shape {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)


USUAL = Evaluation()
"""On the split test, with all metrics, exactly and by one thread."""
