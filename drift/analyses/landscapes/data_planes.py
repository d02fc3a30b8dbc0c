"""Planes of a round by client: where losses of own data are low."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.sweeps import client_sweep
from drift.analyses.per_round import result
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.results.netcdf_files import Partial
from landscape.results.progress import share


@analysis("mark", "alpha", "beta", "client", cost="evaluations")
def overlay_plane(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    points: int = 21,
    margin: float = 0.3,
    split: str = "test",
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss on the data of three clients, and on a common split, on the plane through their models of one round.

    Clients with different basins have drifted; the common loss is low where the basins overlap. One sweep computes the
    losses of the three clients, a second one the common loss.

    Source: IMA paper, section 3.2, Fig. 1 (the plane); the overlay is this project's.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of three clients of its cohort; the first three with samples by default.
        points: Grid points per axis.
        margin: How far the grid extends beyond the models on each side, as a fraction of the box's width.
        split: Samples of the common loss.
        partial: Unfinished common loss to resume.

    Returns:
        The variables of `round_plane`, and client_loss (client, alpha, beta) and mark_client_loss (client, mark) in
        nats with client_samples (client,), the number of training samples of the client.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients, or one of them has no samples.
    """
    record, ids, sweep = client_sweep(run, round, clients, points=points, margin=margin)
    round_parts = run.parts_in(record.index)
    parts = [round_parts[client] for client in ids]
    sizes = np.array([len(numbers) for numbers in parts])
    if not sizes.all():
        raise ValueError(f"clients {ids} hold {sizes.tolist()} samples; name three that hold some.")
    dataset = evaluate_on(run, sweep, partial, split=split, progress=share(run.context.progress, 0, 2))
    by_client = evaluate_on(
        run,
        sweep,
        split=run.task.split("train")[torch.from_numpy(np.concatenate(parts))],
        metrics=("loss",),
        groups=torch.arange(len(parts)).repeat_interleave(torch.from_numpy(sizes)),
        progress=share(run.context.progress, 1, 2),
    )
    for name in ("loss", "mark_loss"):
        losses = by_client[name].rename(group="client").transpose("client", ...)
        dataset[name.replace("loss", "client_loss")] = (losses.dims, losses.values)
    dataset = dataset.assign_coords(client=ids).assign(client_samples=("client", sizes))
    what, nats = "loss of a client's own data", dataset.loss.attrs["units"]
    about = {"client_loss": (what, nats), "mark_client_loss": (f"{what} at the mark", nats)}
    about["client_samples"] = "training samples of the client", "samples"
    source = "IMA paper, section 3.2"
    return result(dataset, about, analysis="overlay_plane", source=source, round=record.index)
