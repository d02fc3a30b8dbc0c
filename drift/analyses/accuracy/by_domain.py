"""How accurate the global model is on each domain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from drift.analyses.per_round import described, resolve_round
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.results.progress import with_progress
from landscape.sweep.evaluate import evaluate


@analysis("round", "domain", cost="evaluations")
def domain_accuracy(run: Run, *, rounds: Sequence[int] | None = None) -> xr.Dataset:
    """Test accuracy of the global model on each domain, and the mean over domains.

    Source: IMA paper (Digit-Five and PACS report the mean over domains); methods.md 6.3.

    Args:
        rounds: Rounds looked at; by default all that kept a global model.

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
    wanted = (run.kept("globals") or [-1]) if rounds is None else rounds
    indices = [resolve_round(run, index, "globals") for index in wanted]
    accuracy = np.full((len(indices), len(group.names)), np.nan)
    for row, index in enumerate(with_progress(indices, run.context.progress)):
        record = run.round(index)
        buffers = record.end_buffers[None] if len(record.end_buffers) else None
        end = record.kept("end")
        if not bool(torch.isfinite(end).all()):
            continue
        one = torch.ones(1, 1).to(end)
        error = evaluate(run.task, end[None], one, metrics=("error",), buffers=buffers, groups=group.test)["error"]
        accuracy[row, : error.shape[1]] = 1 - error[0].numpy()
    found = xr.Dataset(
        {"accuracy": (("round", "domain"), accuracy)},
        coords={"round": indices, "domain": list(group.names)},
        attrs={"analysis": "domain_accuracy", "source": "IMA paper; methods.md 6.3"},
    )
    found["mean_accuracy"] = found.accuracy.mean("domain")
    found["accuracy_std"] = found.accuracy.std("domain", ddof=1)
    return described(
        found,
        {
            "accuracy": ("test accuracy", "fraction"),
            "mean_accuracy": ("mean accuracy over domains", "fraction"),
            "accuracy_std": ("standard deviation of the accuracy over domains", "fraction"),
            "domain": ("domain", "1"),
        },
    )
