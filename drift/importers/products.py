"""A run of low-rank adapters as a run of their products, for every analysis and figure that compares models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from drift.analyses.per_round import selected_rounds
from drift.record.recorder import Recorder
from drift.runs.context import Context
from drift.runs.run import Run
from drift.runs.user_task import UserTask
from landscape.model.model import plain
from landscape.model.products import Products, products


def record_products(run: Run, folder: str | Path, *, rounds: Sequence[int] | None = None) -> Run:
    """The rounds of a run of adapters, recorded with models in products (`landscape.products`).

        in_products = drift.record_products(run, "runs/fedit-products")
        drift.coherence(in_products)
        figures.draw("planes-clients", in_products)

    Norms, angles, coherence, planes and curvature of the new run do not depend on the factors. It is as large as the
    adapted weights, times the models of a round. A folder that has rounds already is continued.

    Args:
        run: A run whose task is known, recorded or given to `drift.open`.
        folder: Folder of the new run.
        rounds: Rounds that kept their clients; negative ones count from the last. By default all.

    Returns:
        The new run, opened with its task. Open it again with `task=landscape.products(run.task).task`.

    Raises:
        LookupError: If no round, or one of those named, kept its clients; or the run has no task.
        ValueError: If no layer of the model has low-rank adapters.
    """
    view = products(run.task)
    names = [[name for name, _ in entries] for entries in (view.layout.parameters, view.layout.buffers)]
    recorder = Recorder(
        folder,
        parameters=names[0],
        buffers=names[1],
        continuous=False,
        method=f"{run.label} in products",
        data=run.data_name,
        seed=run.seed,
        settings={"of": run.name, "models": "products"},
    )
    indices = selected_rounds(run, "clients", rounds, None)
    for index in run.context.track([index for index in indices if index >= recorder.next]):
        record = run.round(index)
        ids, models = record.ids.tolist(), [_named(view, model) for model in record.kept("clients")]
        recorder.round(
            start=_named(view, record.kept("start")),
            clients=dict(zip(ids, zip(models, record.sizes.tolist(), strict=True), strict=True)),
            end=_named(view, record.kept("end")),
            metrics=record.metrics,
            weights=dict(zip(ids, record.weights.tolist(), strict=True)),
            index=index,
        )
    recorded = Run(Path(folder))
    parts: Any = run.parts[: recorded.experiment.clients.number] if isinstance(run.parts, list) else None
    return Run(recorded.folder, Context(user_task=UserTask.load(view.task, parts)))


def _named(view: Products, model: Tensor) -> dict[str, Tensor]:
    """A model in products by the names of its parameters and buffers."""
    added = view.model(model)
    buffers = getattr(added, "buffers", added[:0])
    return {**view.layout.named(plain(added)), **view.layout.named_buffers(buffers)}
