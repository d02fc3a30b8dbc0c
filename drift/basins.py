"""Local and global basins over each other: the loss of each client's own data on one plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from drift.run import Run
from drift.terrain import client_sweep
from landscape.results import Partial
from landscape.surface import surface


def client_planes(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    points: int = 21,
    margin: float = 0.3,
    workers: int = 1,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error of each of three clients' own training data, and of all theirs, on the plane of their models.

    One forward sweep over the three clients' samples gives every basin; the loss of all is the mean of the clients'
    weighted by their samples.

    Source: IMA paper, section 3.2, Fig. 1, with the loss of Fig. 8 split by client.

    Args:
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of three clients of its cohort; the first three by default.
        points, margin: Grid points an axis, and how far the box reaches beyond the models.
        workers: Threads that share the points.
        partial: Where an unfinished result lies.

    Returns:
        Dataset with loss (alpha, beta, client) in nats, error (alpha, beta, client) as a fraction, and the same of all
        samples: loss_all, error_all (alpha, beta); samples (client,); marks as in `round_plane`.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients.
    """
    record, wanted, sweep = client_sweep(run, round, clients, points=points, margin=margin)
    parts = [run.parts[client] for client in wanted]
    samples = run.task.split("train")[torch.from_numpy(np.concatenate(parts))]
    sizes = np.array([len(part) for part in parts])
    found = surface(
        run.task,
        sweep,
        split=samples,
        known=None if partial is None else partial.known(),
        checkpoint=None if partial is None else partial.checkpoint,
        progress=run.progress,
        groups=torch.arange(3).repeat_interleave(torch.from_numpy(sizes)),
        workers=workers,
    )
    found = found.rename(group="client").assign_coords(client=wanted)
    found["samples"] = ("client", sizes, {"long_name": "training samples", "units": "1"})
    for name in ("loss", "error", "mark_loss", "mark_error"):
        whole = (found[name] * found.samples).sum("client", skipna=False) / found.samples.sum()
        found[f"{name}_all"] = whole.assign_attrs(
            {**found[name].attrs, "long_name": f"{found[name].attrs['long_name']}, all three clients"}
        )
    source = "IMA paper, section 3.2, Fig. 1"
    return found.assign_attrs(analysis="client_planes", source=source, round=record.index, split="train, by client")
