"""What a figure shows, in words: methods, data, partition, seeds, rounds and samples of its runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.plugins.reserved_names import UNKNOWN
from drift.runs.run import Run
from figures.looks import palette, words
from figures.selection.partition_text import partition_label
from figures.selection.run_selection import count_differences, join_names
from figures.selection.setting_text import key_label
from landscape.model.losses import counted

IDENTITY = ("methods", "data", "partition", "seeds", "rounds", "samples")
"""Parts of an identity; each is an attribute identity_PART of a figure's data."""

UNEQUAL = {"steps": "unequal steps", "late": "old models", "own start": "other starts", "stopped": "clients that stop"}
UNEQUAL |= {"partial": "parts not sent", "sent": "changed updates"}
"""Words for what `Run.unequal` names, in the order in which they act."""

MOST = 3
"""Settings of runs left out that the line below a figure counts; its numbers name twice as many."""


def add_identity(ds: xr.Dataset, shown: Sequence[Run], runs: Sequence[Run], options: Mapping[str, Any]) -> xr.Dataset:
    """A figure's data with its identity in the attributes: identity, identity_PART, options, left_out, left_out_brief.

    Args:
        drawn: Runs that the figure shows.
        runs: Runs among which it could choose.
        options: Of the figure, defaults included.
    """
    seeds = _shortened(_distinct(map(seed_text, sorted(shown, key=lambda run: run.experiment.seed))))
    texts = {
        "methods": join_names(list(map(palette.label, palette.order(run.label for run in shown))), 8),
        "data": join_names(_distinct(run.task_name for run in shown), between="; "),
        "partition": _partitions(shown),
        "seeds": join_names(seeds, 6),
        "rounds": _rounds(ds, shown),
        "samples": _samples(ds, shown, options),
    }
    named_seeds = f"seed{'s' * (', ' in texts['seeds'] or ' to ' in texts['seeds'])} {texts['seeds']}"
    folders = {run.folder for run in shown}
    rest = [run for run in runs if run.folder not in folders]
    differing = count_differences(rest, shown)
    brief = join_names([f"{key_label(name)} ({count})" for name, count in differing.items()], MOST)
    rates = {run.experiment.local.lr for run in shown} if "local.lr" in differing else set()
    others = [f"{key_label('local.lr')} {rate:g}" for rate in rates] if len(rates) == 1 else []
    line = " · ".join(filter(None, [*{**texts, "seeds": named_seeds}.values(), *others]))
    return ds.assign_attrs(
        {f"identity_{name}": text for name, text in texts.items()},
        identity=line,
        options=json.dumps(dict(options), sort_keys=True, default=str),
        left_out=f"{len(rest)} of {len(runs)} runs left out, differing in {join_names(list(differing), 2 * MOST)}: "
        f"{join_names([run.name for run in rest])}"
        if rest
        else "",
        left_out_brief=f"shows {len(shown)} of {len(runs)} runs; the others differ in {brief}" if brief else "",
    )


def caption(ds: xr.Dataset) -> str:
    """The small lines below a figure: its identity, and which groups of runs it left out; empty without one."""
    return "\n".join(filter(None, (str(ds.attrs.get(name, "")) for name in ("identity", "left_out_brief"))))


def seed_text(run: Run) -> str:
    """The seed of a run; "not said" where a run of another program does not state it."""
    return UNKNOWN if run.seed is None else str(run.seed)


def _partitions(runs: Sequence[Run]) -> str:
    """Partitions with their cohorts; of several their number, and the cohort once where it is that of all."""
    pairs = list(dict.fromkeys(map(_partition, runs)))
    if len(pairs) == 1:
        return ", ".join(pairs[0])
    names, cohorts = zip(*pairs, strict=True)
    if len(set(cohorts)) == 1:
        return f"{len(pairs)} partitions: {join_names(names, between='; ')}; each with {cohorts[0]}"
    return f"{len(pairs)} partitions and cohorts: {join_names([*map(', '.join, pairs)], between='; ')}"


def _partition(run: Run) -> tuple[str, str]:
    """The partition, and the clients of a round."""
    clients = run.experiment.clients
    cohorts = map(run.cohort_size, run.rounds()) if run.about.get("imported") else [clients.per_round]
    sizes = _span(int(size) for size in cohorts if np.isfinite(size))
    causes = [word for name, word in UNEQUAL.items() if name in run.unequal.split(", ")]
    unequal = f" with {words.listed(causes)}" if causes else ""
    return partition_label(run), f"{sizes} of {clients.number} clients per round{unequal}"


def _rounds(ds: xr.Dataset, runs: Sequence[Run]) -> str:
    """The rounds in the data, out of those trained."""
    total = _span(len(run.rounds()) for run in runs)
    if (block := int(ds.attrs.get("block", 1))) > 1:
        return f"{total} rounds, means over {block} successive ones"
    shown = sorted(_rounds_of(ds))
    if not shown or len(shown) >= max(len(run.rounds()) for run in runs):
        return f"{total} rounds"
    few = ", ".join(map(str, shown)) if len(shown) <= 6 else f"{shown[0]} to {shown[-1]}"
    return f"round{'s' * (len(shown) > 1)} {few} of {total}"


def _rounds_of(ds: xr.Dataset) -> set[int]:
    positions = [
        values.values for name, values in ds.coords.items() if str(name).rpartition("_")[2] in ("round", "second")
    ]
    positions += [ds["is_round"].values] if "is_round" in ds else []
    positions += [np.array(ds.attrs[name]) for name in ("round", "shown") if name in ds.attrs]
    numbers = [position.ravel() for position in positions if position.dtype.kind in "if"]
    return {int(number) for array in numbers for number in array[np.isfinite(array)]}


def _samples(ds: xr.Dataset, runs: Sequence[Run], options: Mapping[str, Any]) -> str:
    """The samples that the numbers are averaged over, as the results state them; else those of the runs' data."""
    stated = ds["is_split"].values.ravel()[0] if "is_split" in ds else options.get("split", "")
    split = str(ds.attrs.get("split", stated))
    counts = ds["is_samples"].values.ravel() if "is_samples" in ds else np.array([ds.attrs.get("samples", np.nan)])
    texts = []
    if np.isfinite(counts).all():
        texts.append(f"{_span(counts.astype(int).tolist())} {_WRITTEN.get(split, split)} samples".replace("  ", " "))
    else:
        names = [split] if split else ["train", "test"]
        sizes = {name: [size[name] for run in runs if name in (size := sample_counts(run))] for name in names}
        counted = [f"{_span(sizes[name])} {_WRITTEN.get(name, name)}".strip() for name in names if sizes[name] or split]
        texts += [f"{' and '.join(counted)} samples"] * bool(counted)
    if isinstance(per_client := options.get("samples_per_client"), int):
        texts.append(f"{per_client} per client")
    return ", ".join(texts)


_WRITTEN = {"train": "training"}


def sample_counts(run: Run) -> dict[str, int]:
    """Number of samples by split, as run.json states it or as the data that were read for the figure have it."""
    if run.context.user_task is not None:
        return {name: counted(run.task.per_sample, samples.targets) for name, samples in run.task.samples.items()}
    if "dataset" in vars(run):
        return {name: len(samples) for name, samples in run.dataset.samples.items()}
    stated = run.about.get("samples")
    return {str(name): int(size) for name, size in stated.items()} if isinstance(stated, dict) else {}


def _span(numbers: Iterable[int]) -> str:
    """Equal numbers as one number, others as a range; empty without numbers."""
    distinct = sorted(set(numbers))
    return "" if not distinct else str(distinct[0]) if len(distinct) == 1 else f"{distinct[0]} to {distinct[-1]}"


def _shortened(seeds: list[str]) -> list[str]:
    """Four successive seeds or more as one text."""
    first = int(seeds[0]) if len(seeds) > 3 and seeds[0].isdigit() else -1
    successive = [str(first + index) for index in range(len(seeds))]
    return [f"{seeds[0]} to {seeds[-1]}"] if seeds == successive else seeds


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
