"""What a client had kept when a recorded round began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.config.method import State

if TYPE_CHECKING:
    from drift.runs.run import Run


def carried(run: Run, index: int, client: int) -> State:
    """The state that `client` brought into round `index`: what it kept when it last trained, nothing before that.

    Raises:
        LookupError: If the rounds before did not record what clients keep.
    """
    for before in reversed([known for known in run.rounds() if known < index]):
        if client not in run.trained(before):
            continue
        if before not in run.kept("clients"):
            raise LookupError(
                f"client {client} trained in round {before} of run {run.name}, which did not keep its clients' state; "
                "train with --set keep.clients=all."
            )
        held = run.round(before).carried
        rows = (held["ids"] == client).nonzero().flatten().tolist() if held else []
        if rows:
            return {name: value[rows[0]] for name, value in held.items() if name != "ids"}
    return {}
