"""`Record`: checkpoints of any training as a trajectory, by a call in the loop or a callback of a trainer."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import xarray as xr
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from landscape.model.task import Task
from landscape.results import pictures
from landscape.results.atomic_write import write_bytes
from landscape.results.notebook_table import notebook_table

pictures.register()

_NAME = re.compile(r"step-(\d+)\.safetensors")
_METRICS = "metrics"


class Record(Sequence[Path]):
    """Checkpoints of one training in a folder; as a sequence, their paths in the order of the steps.

        record = landscape.Record("runs/seed0", every=100)
        for step, batch in enumerate(loader):
            record(model, step, loss=loss)  # before the first update too

        landscape.surface(task, record).plot()  # plane of the principal components
        record.over_steps(landscape.hessian, task, k=1).plot()
        landscape.barrier(task, record[-1], landscape.Record("runs/seed1")[-1]).plot()

    `lightning.Trainer(callbacks=[record.lightning()])` and `transformers.Trainer(callbacks=[record.transformers()])`
    record by themselves, from before the first step to after the last. Files are complete or absent.

    Args:
        folder: Folder of the checkpoints, `step-000100.safetensors`; those that it has are there to read.
        every: Steps between two checkpoints.
        part: Name of the submodule that is recorded, such as "net" of a LightningModule; None: the whole model.

    Raises:
        ValueError: If `every` is below 1.
    """

    def __init__(self, folder: str | Path, *, every: int = 1, submodule: str | None = None) -> None:
        if every < 1:
            raise ValueError(f"every is {every}; give the number of steps between two checkpoints, 1 or more.")
        self.folder = Path(folder)
        self.every = every
        self.submodule = submodule
        self._last = max(self.steps, default=-1)

    def __repr__(self) -> str:
        """One line: folder, number of checkpoints, first and last step."""
        steps = self.steps
        span = f"{len(steps)} checkpoints, steps {steps[0]} to {steps[-1]}" if steps else "no checkpoint"
        return f"Record({str(self.folder)!r}: {span})"

    def _repr_html_(self) -> str:
        """A small table for notebooks: folder, steps, metrics of the last one that has any."""
        rows: dict[str, object] = {"folder": self.folder, "steps": self.steps, "recorded": f"every {self.every}"}
        return notebook_table(repr(self), rows | ({"submodule": self.submodule} if self.submodule else {}))

    def __call__(self, model: nn.Module | Mapping[str, Tensor], step: int, /, **metrics: float) -> None:
        """Record a model if its step is a multiple of `every`.

        Args:
            model: Module or state dict.
            step: Number of updates so far.
            metrics: Numbers by name, such as the loss of the batch.

        Raises:
            ValueError: If the folder has this step or a later one already: it belongs to another training.
        """
        if step % self.every == 0:
            self.save(model, step, **metrics)

    def save(self, model: nn.Module | Mapping[str, Tensor], step: int, /, **metrics: float) -> None:
        """Record a model at any step, such as the last one.

        Args:
            model: Module or state dict.
            step: Number of updates so far.
            metrics: Numbers by name.

        Raises:
            ValueError: If the folder has this step or a later one already.
        """
        if step <= self._last:
            raise ValueError(
                f"{self.folder} has step {self._last} already, and step {step} is not later; record another training "
                "into another folder."
            )
        if isinstance(model, nn.Module):
            model = (model.get_submodule(self.submodule) if self.submodule else model).state_dict()
        values = {name: value for name, value in model.items() if isinstance(value, Tensor)}
        tensors = {name: value.detach().cpu().clone().contiguous() for name, value in values.items()}
        about = {_METRICS: json.dumps({name: _number(value) for name, value in metrics.items()})}
        write_bytes(self.folder / f"step-{step:06d}.safetensors", save(tensors, about))
        self._last = step

    @property
    def steps(self) -> list[int]:
        """Steps that have a checkpoint, ascending."""
        return sorted(self._paths())

    @property
    def metrics(self) -> xr.Dataset:
        """What was recorded with the checkpoints, each over step; NaN where a checkpoint lacks it."""
        steps, rows = self.steps, []
        for path in self:
            with safe_open(path, framework="pt") as file:
                rows.append(json.loads((file.metadata() or {}).get(_METRICS, "{}")))
        names = sorted({name for row in rows for name in row})
        columns = {name: ("step", [float(row.get(name, np.nan)) for row in rows]) for name in names}
        return xr.Dataset(columns, coords={"step": steps}, attrs={"analysis": "metrics"})

    def over_steps(self, function: Callable[..., xr.Dataset], task: Task, **options: Any) -> xr.Dataset:
        """A function of task and model at every checkpoint, such as `landscape.hessian`, over the dimension step.

        Args:
            function: Takes a task and a model, and returns a dataset.
            task: Model, loss and samples.
            options: Further arguments of the function.

        Raises:
            LookupError: If there is no checkpoint.
        """
        if not len(self):
            raise LookupError(f"{self.folder} has no checkpoint; record a training there first.")
        results = [function(task, path, **options) for path in self]
        joined = xr.concat(results, "step", join="exact", combine_attrs="drop_conflicts")
        joined = joined.assign_coords(step=("step", self.steps, {"long_name": "step", "units": "1"}))
        for name, values in results[0].data_vars.items():
            joined[name].attrs.update(values.attrs)
        return joined

    def lightning(self) -> Any:
        """A callback for the Trainer of Lightning (`lightning` or `pytorch_lightning`).

        Raises:
            LookupError: If Lightning is not installed.
        """
        name = "pytorch_lightning" if "pytorch_lightning" in sys.modules else "lightning.pytorch"
        record = self

        class LightningCallback(_package(name, "lightning").Callback):  # type: ignore[misc]
            def on_train_start(self, trainer: Any, module: Any) -> None:
                record._begin(module, trainer.global_step, trainer.is_global_zero)

            def on_train_batch_end(self, trainer: Any, module: Any, *rest: Any) -> None:
                record._step(module, trainer.global_step, trainer.is_global_zero, trainer.callback_metrics)

            def on_train_end(self, trainer: Any, module: Any) -> None:
                record._end(module, trainer.global_step, trainer.is_global_zero)

        return LightningCallback()

    def transformers(self) -> Any:
        """A callback for the Trainer of transformers.

        Raises:
            LookupError: If transformers is not installed.
        """
        record = self

        class TransformersCallback(_package("transformers", "transformers").TrainerCallback):  # type: ignore[misc]
            def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
                record._begin(model, state.global_step, state.is_world_process_zero)

            def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
                logged = state.log_history[-1] if state.log_history else {}
                numbers = {name: value for name, value in logged.items() if isinstance(value, int | float)}
                record._step(model, state.global_step, state.is_world_process_zero, numbers)

            def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
                record._end(model, state.global_step, state.is_world_process_zero)

        return TransformersCallback()

    def _begin(self, model: Any, step: int, first_process: bool) -> None:
        """The model before the first step; a training that goes on has it already."""
        if first_process and not (step == self._last and step > 0):
            self.save(model, step)

    def _step(self, model: Any, step: int, first_process: bool, metrics: Mapping[str, float]) -> None:
        if first_process and step > self._last:  # steps that accumulate gradients do not count
            self(model, step, **metrics)

    def _end(self, model: Any, step: int, first_process: bool) -> None:
        if first_process and step > self._last:
            self.save(model, step)

    def _paths(self) -> dict[int, Path]:
        files = self.folder.iterdir() if self.folder.is_dir() else ()
        return {int(match[1]): path for path in files if (match := _NAME.fullmatch(path.name))}

    def __len__(self) -> int:
        return len(self._paths())

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> list[Path]: ...
    def __getitem__(self, index: int | slice) -> Path | list[Path]:
        paths = self._paths()
        ordered = [paths[step] for step in sorted(paths)]
        if isinstance(index, int) and not -len(ordered) <= index < len(ordered):
            raise IndexError(f"checkpoint {index} of {len(ordered)} in {self.folder}; is the folder right?")
        return ordered[index]


def _number(value: Any) -> float:
    return float(value.detach() if isinstance(value, Tensor) else value)


def _package(name: str, distribution: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as reason:
        raise LookupError(f"this callback needs the package {distribution!r}; pip install {distribution}.") from reason
