"""The error of each class on the plane of a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.planes import client_sweep
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.model.metrics import class_error
from landscape.results.zarr_files import Partial


@analysis("mark", "alpha", "beta", "class", cost="evaluations")
def class_plane(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    points: int = 21,
    margin: float = 0.3,
    split: str = "test",
    partial: Partial | None = None,
) -> xr.Dataset:
    """Error of every class, beside loss and error, on the plane through three client models of one round.

    Where clients hold few classes each, every class is known near the models of its holders only.

    Source: IMA paper, section 3.2, Fig. 1 (the plane); errors by class are this project's.

    Args:
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of three clients of its cohort; the first three by default.
        points, margin: Grid points an axis, and how far the box reaches beyond the models.
        split: Samples that loss (nats) and errors (fractions) are averaged over.
        partial: Where an unfinished result lies.

    Returns:
        What `round_plane` returns, and class_error (alpha, beta, class) and mark_class_error (mark, class); NaN for a
        class without samples.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients.
    """
    record, _, sweep = client_sweep(run, round, clients, points=points, margin=margin)
    task = replace(run.task, metrics={**run.task.metrics, "class_error": class_error})
    found = evaluate_on(run, sweep, split, partial, task=task)
    for name, at in {"class_error": "", "mark_class_error": " at the mark"}.items():
        found[name].attrs.update(long_name=f"error of the class{at}", units="fraction")
    names = [str(name) for name in run.dataset.classes]
    names += [str(number) for number in range(len(names), found.sizes["class"])]  # of outputs without samples
    found = found.assign_coords({"class": names[: found.sizes["class"]]})
    return found.assign_attrs(analysis="class_plane", source="IMA paper, section 3.2", round=record.index)
