"""Local and global basins over each other: the loss of each client's data on one plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.planes import client_sweep
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.results.zarr_files import Partial


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
    """Loss of each of three clients' own data, and of a common split, on the plane through their models of one round.

    One sweep over the three clients' samples gives all their losses, a second one the common loss.
    Where the clients' basins lie apart, their models have drifted; the common loss is low where they overlap.

    Source: IMA paper, section 3.2, Fig. 1 (the plane); the overlay is this project's.

    Args:
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of three clients of its cohort; the first three by default.
        points, margin: Grid points an axis, and how far the box reaches beyond the models.
        split: Samples of the common loss.
        partial: Where an unfinished common loss lies.

    Returns:
        What `round_plane` returns, and client_loss (client, alpha, beta) and mark_client_loss (client, mark) in nats
        with client_samples (client,), how many training samples they are averaged over.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients, or one of them has no samples.
    """
    record, wanted, sweep = client_sweep(run, round, clients, points=points, margin=margin)
    held = run.parts_in(record.index)
    parts = [held[client] for client in wanted]
    sizes = np.array([len(part) for part in parts])
    if not sizes.all():
        raise ValueError(f"clients {wanted} hold {sizes.tolist()} samples; name three that hold some.")
    found = evaluate_on(run, sweep, split, partial, part=0, parts=2)
    own = evaluate_on(
        run,
        sweep,
        run.task.split("train")[torch.from_numpy(np.concatenate(parts))],
        metrics=("loss",),
        groups=torch.arange(len(parts)).repeat_interleave(torch.from_numpy(sizes)),
        part=1,
        parts=2,
    )
    for name, at in {"loss": "", "mark_loss": " at the mark"}.items():
        losses = own[name].rename(group="client").transpose("client", ...)
        about = {"long_name": f"loss of a client's own data{at}", "units": found.loss.attrs["units"]}
        found[name.replace("loss", "client_loss")] = (losses.dims, losses.values, about)
    found = found.assign_coords(client=wanted)
    found["client_samples"] = ("client", sizes, {"long_name": "training samples of the client", "units": "samples"})
    return found.assign_attrs(analysis="overlay_plane", source="IMA paper, section 3.2", round=record.index)
