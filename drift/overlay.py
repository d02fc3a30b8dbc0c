"""Local and global basins over each other: the loss of each client's data on one plane."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from drift.run import Run
from drift.terrain import client_sweep, on_sweep
from landscape.progress import counted
from landscape.surface import surface


def overlay_plane(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    points: int = 21,
    margin: float = 0.3,
    split: str = "test",
) -> xr.Dataset:
    """Loss of each of three clients' own data, and of a common split, on the plane through their models of one round.

    Where the clients' basins lie apart, their models have drifted; the common loss is low where they overlap.

    Source: IMA paper, section 3.2, Fig. 1 (the plane); the overlay is this project's.

    Args:
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of three clients of its cohort; the first three by default.
        points, margin: Grid points an axis, and how far the box reaches beyond the models.
        split: Samples of the common loss.

    Returns:
        What `round_plane` returns, and client_loss (client, alpha, beta) in nats with client_samples (client,), how
        many training samples it is averaged over.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients.
    """
    record, wanted, sweep = client_sweep(run, round, clients, points=points, margin=margin)
    found = on_sweep(run.with_progress(None), sweep, split, None)
    held = [run.client_samples(client) for client in wanted]
    losses = [surface(run.task, sweep, split=part, metrics=("loss",)).loss for part in counted(held, run.progress)]
    found["client_loss"] = xr.concat(losses, "client", join="exact").assign_coords(client=wanted)
    found["client_loss"].attrs.update(long_name="loss of a client's own data", units=found.loss.attrs["units"])
    found["client_samples"] = ("client", [len(part) for part in held])
    found["client_samples"].attrs.update(long_name="training samples of the client", units="samples")
    return found.assign_attrs(analysis="overlay_plane", source="IMA paper, section 3.2", round=record.index)
