"""fedscape export: a stored model, or the numbers of all rounds, for other programs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from figures.commands.opening import HERE, RunSource
from figures.commands.options import OUT, Integer, Json, RunName
from figures.commands.requirements import require_file, require_folder
from figures.texts import console

if TYPE_CHECKING:
    from drift.runs.run import Run


def export(
    run: RunName,
    /,
    *,
    out: Annotated[Path, OUT],
    round: Integer | None = None,
    client: str | None = None,
    to: str | None = None,
    source: RunSource = HERE,
    json: Json = False,
) -> None:
    """Write a stored model of a run, or a table of all its rounds, for other programs.

    The ending of --out selects model or table; with --to the rounds are written for a tracker.

    Example: `fedscape export fedavg-digits --out model.safetensors`

    Args:
        out: File to write; its ending selects the format. One model: .pt, .pth, .safetensors, .npz, or a folder (no
            ending) for transformers. A table of all rounds: .csv, .parquet.
        round: Round of the model, from 0; -1 is the last. By default the last.
        client: Number of a client, for its model of that round. By default the global model.
        to: Write all rounds for this tracker, tensorboard, mlflow or wandb, into the folder --out. By default none.
    """
    if to is None and not out.suffix and out.exists():
        raise ValueError(f"{out} exists; name a new folder.")
    (require_file if out.suffix and to is None else require_folder)(out)
    opened_run = source.open(run)
    from drift.analyses.rounds.export_table import SUFFIXES as TABLES

    if (to is not None or out.suffix in TABLES) and (round is not None or client is not None):
        raise ValueError(f"--round and --client choose a model, {out} gets all rounds; leave them out.")
    if to is not None:
        from drift.trackers import track, tracker

        track(opened_run, tracker(to, out))
    elif out.suffix in TABLES:
        from drift.analyses.rounds.export_table import table, table_file
        from landscape.results.atomic_write import write_bytes

        write_bytes(out, table_file(table(opened_run), out.suffix))
    else:
        _write_model(opened_run, -1 if round is None else round, client, out)
    console.answer([out], {"run": opened_run.name, "file": str(out)}, json=json)


def _write_model(run: Run, round: int, client: str | None, out: Path) -> None:
    from drift.runs.export_model import save_transformers, state_dict, state_file
    from landscape.results.atomic_write import write_bytes

    state = state_dict(run, round, int(client) if client is not None and client.isdecimal() else client)
    if out.suffix:
        write_bytes(out, state_file(state, out.suffix))
        return
    fresh = out.with_name(f".{out.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        rest = save_transformers(run, state, fresh)
        if rest:
            head = {name: state[name] for name in rest}
            write_bytes(fresh / "rest.safetensors", state_file(head, ".safetensors"))
            console.say(f"{len(rest)} tensors outside the transformers model are in rest.safetensors.")
        fresh.rename(out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
