"""fedscape partition."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from figures.commands.options import OUT, Data, ExperimentName, Json, Settings
from figures.commands.requirements import require_folder, require_names
from figures.texts import console

if TYPE_CHECKING:
    from drift.config.experiment import Experiment
    from drift.training.data import Data as Held

WIDE = 12
"""Classes that still have a column each."""


def partition(
    experiment: ExperimentName,
    /,
    *,
    set: Settings = None,
    data: Data = None,
    out: Annotated[Path | None, OUT] = None,
    json: Json = False,
) -> None:
    """Print how many samples of each class every client gets, without training; with --out also draw it.

    Example: `fedscape partition digits-shards2 --set clients.number=10`

    Args:
        out: Folder for a picture of the table. By default none.
    """
    require_names(experiment, set)
    from drift.config.load import read
    from drift.partitions import histogram
    from drift.training.data import read_data

    spec = read(experiment, *(set or ()))
    if out is not None:
        require_folder(out)
    dataset = read_data(spec, data)
    counts = histogram(dataset.labels, dataset.parts, len(dataset.classes)).tolist()
    rows: list[dict[str, Any]] = [
        {"client": client, "samples": sum(class_counts), **dict(zip(dataset.classes, class_counts, strict=True))}
        for client, class_counts in enumerate(counts)
    ]
    if json or len(dataset.classes) <= WIDE:
        columns = {"client": "client", "samples": "samples", **{name: name for name in dataset.classes}}
    else:
        columns = {"client": "client", "samples": "samples", "held": "classes", "most": "most", "share": "share"}
        rows = [_short(row, dataset.classes) for row in rows]
    console.table(rows, columns, json=json)
    total = sum(row["samples"] for row in rows)
    console.say(
        f"{len(rows)} clients, {total} of {len(dataset.labels)} training samples, "
        f"{len(dataset.samples['test'])} test samples"
    )
    if out is not None:
        for path in _draw(spec, dataset, out):
            console.put(str(path))


def _short(row: dict[str, Any], classes: tuple[str, ...]) -> dict[str, Any]:
    """Number of classes, the largest one and its share (fraction) in place of a count for each."""
    most = max(classes, key=lambda name: row[name])
    summary = {"client": row["client"], "samples": row["samples"], "held": sum(row[name] > 0 for name in classes)}
    return {**summary, "most": most, "share": row[most] / row["samples"]} if row["samples"] else summary


def _draw(spec: Experiment, dataset: Held, folder: Path) -> list[Path]:
    """Files of the figure labels-partition, with the cohorts that a training would draw."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    from drift.config.random_keys import cohort
    from figures.gallery import labels_partition
    from figures.looks import style
    from figures.selection.partition_text import describe_partition

    spread = spec.clients
    rounds = range(min(30, spec.rounds))
    cohorts = {index: cohort(spec.seed, index, spread.number, spread.per_round) for index in rounds}
    ds = labels_partition.table(dataset, cohorts).assign_attrs(partition=describe_partition(spread.partition))
    return style.save(style.styled(labels_partition.draw)(ds), folder / "labels-partition")
