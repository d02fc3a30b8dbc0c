"""Losses of the client models of a round: on a common split, and before and after on the client's own data."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluation_of
from drift.analyses.per_round import ABOUT, resolve_round, result
from drift.analyses.selected_samples import stated_subset
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.row_matrices import Rows
from landscape.model.losses import counted
from landscape.model.task import metric_units
from landscape.results.progress import with_progress
from landscape.sweep.evaluate import evaluate


@analysis("client", cost="evaluations")
def client_losses(run: Run, *, round: int = -1, split: str = "test", samples: int | None = None) -> xr.Dataset:
    """Loss of each client's model on a common split and on its own data, and of the global models on that data.

        run.cached(drift.client_losses, round=-1).to_dataframe()

    Own data are those that the client trains on in the round. A client that forgets what it does not hold has a low
    own loss and a high common one; a global step that undoes its training has an own loss near that of the start.

    Source: this project.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative ones count from the last that did.
        split: Common samples.
        samples: Largest number of samples, selected at random, the same in every call; by default all. Own data are
            taken in full.

    Returns:
        Dataset with loss and error (fraction, where the task has one) of the client's model on the split, own_loss and
        own_error on its own data, and start_own_loss and end_own_loss of the models before and after the round on
        these, over client; NaN for a client without samples.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If samples is below 1.
    """
    index = resolve_round(run, round, "clients")
    record = run.round(index)
    ids, parts = record.ids.tolist(), run.parts_in(index)
    metrics = tuple(name for name in ("loss", "error") if name == "loss" or name in run.task.metrics)
    columns = {name: np.full(len(ids), np.nan) for name in (*metrics, *(f"own_{name}" for name in metrics), *_GLOBAL)}
    clients, (common, subset) = record.kept("clients"), stated_subset(run.task, split, samples)
    evaluation = evaluation_of(run, metrics=metrics).but(progress=None)
    values = evaluate(run.task, clients, torch.eye(len(ids)), evaluation=evaluation.but(split=common))
    columns |= {name: column.numpy() for name, column in values.items()}
    models, frames = Rows(clients), [frame for frame in ("start", "end") if getattr(record, frame) is not None]
    for row, client in enumerate(with_progress(ids, run.context.progress)):
        if not len(parts[client]):
            continue
        theirs = torch.stack([models[row], *(getattr(record, frame) for frame in frames)])  # evaluated at once
        trained_on = run.task.split("train")[torch.from_numpy(np.asarray(parts[client]))]
        losses = evaluate(run.task, theirs, torch.eye(len(theirs)), evaluation=evaluation.but(split=trained_on))
        for name in metrics:
            columns[f"own_{name}"][row] = losses[name][0]
        for frame, loss in zip(frames, losses["loss"][1:], strict=True):
            columns[f"{frame}_own_loss"][row] = loss
    variables = {name: ("client", values) for name, values in columns.items()}
    units = metric_units(run.task, "loss")
    about = {name: (text, units if unit == "loss" else unit) for name, (text, unit) in ABOUT["client_losses"].items()}
    attrs = {"round": index, "split": split, "samples": counted(run.task.per_sample, run.task.split(split).targets)}
    return result(variables, about, {"client": ids}, analysis="client_losses", source="this project", **attrs | subset)


_GLOBAL = ("start_own_loss", "end_own_loss")
