"""Accuracy of the global model per domain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from drift.analyses.per_round import global_model, result, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.results.progress import with_progress
from landscape.sweep.evaluate import evaluate


@analysis("round", "domain", cost="evaluations")
def domain_accuracy(run: Run, *, rounds: Sequence[int] | None = None) -> xr.Dataset:
    """Test accuracy of the global model on each domain, and the mean over domains.

    Source: IMA paper (Digit-Five and PACS report the mean over domains); methods.md 6.3.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default all that kept one.

    Returns:
        accuracy (round, domain), mean_accuracy (round,), accuracy_std (round,) over domains, fractions 0-1; NaN for a
        domain without test samples.

    Raises:
        LookupError: If the dataset has no domains or a round kept no global model.
    """
    group = run.dataset.groups.get("domain")
    if group is None:
        raise LookupError(
            f"run {run.name} is of {run.experiment.task.dataset}, which has no domains; train on digits3, digit5, pacs "
            "or domainnet."
        )
    indices = selected_rounds(run, "globals", rounds, None)
    accuracy = np.full((len(indices), len(group.names)), np.nan)
    for row, index in enumerate(with_progress(indices, run.context.progress)):
        model = global_model(run, index)
        if not bool(torch.isfinite(model.theta).all()):
            continue
        error = evaluate(
            run.task,
            model.theta[None],
            torch.ones(1, 1).to(model.theta),
            metrics=("error",),
            buffers=None if model.buffers is None else model.buffers[None],
            groups=group.test,
        )["error"]
        accuracy[row, : error.shape[1]] = 1 - error[0].numpy()
    dataset = xr.Dataset(
        {"accuracy": (("round", "domain"), accuracy)}, coords={"round": indices, "domain": list(group.names)}
    )
    dataset["mean_accuracy"] = dataset.accuracy.mean("domain")
    dataset["accuracy_std"] = dataset.accuracy.std("domain", ddof=1)
    return result(dataset, _ABOUT, analysis="domain_accuracy", source="IMA paper; methods.md 6.3")


_ABOUT = {
    "accuracy": ("test accuracy", "fraction"),
    "mean_accuracy": ("mean accuracy over domains", "fraction"),
    "accuracy_std": ("standard deviation of the accuracy over domains", "fraction"),
    "domain": ("domain", "1"),
}
