"""Samples that a number is averaged over: those of a split or of a client, or a random part of them."""

from typing import Any

import torch

from drift.config.random_keys import rng
from drift.runs.run import Run
from landscape.model.losses import counted
from landscape.model.samples import Samples
from landscape.model.task import Split, Task, split_name


def selected_samples(run: Run, round: int, split: str, samples: int | None = None) -> Samples:
    """Samples of a split (test, train, proxy) or of "client 3" in a round; at most `samples`, selected at random.

    Raises:
        ValueError: If there is no such split or client, or it has no samples.
    """
    kind, _, number = split.partition(" ")
    if kind == "client" and number.isdigit():
        parts = run.parts_in(round)
        if int(number) >= len(parts):
            raise ValueError(f"no client {number}; the run has clients 0 to {len(parts) - 1}.")
        selected = run.task.samples["train"][torch.from_numpy(parts[int(number)])]
    else:
        selected = run.task.split(split)
    if not len(selected):
        raise ValueError(f"{split} has no samples; a mean needs at least one.")
    return at_most(selected, samples)


def at_most(samples: Samples, number: int | None) -> Samples:
    """All samples, or `number` of them where there are more, selected at random, the same in every call.

    Raises:
        ValueError: If the number is below 1.
    """
    if number is None or number >= len(samples):
        return samples
    if number < 1:
        raise ValueError(f"samples is {number}; give 1 or more.")
    order = rng(0, "selected samples").permutation(len(samples))[:number]
    order.sort()
    return samples[torch.from_numpy(order)]


def fewer(run: Run, split: str, samples: int | None) -> int | None:
    """A number of samples as analyses take it: None, all, where the split of a run has no more."""
    return None if samples is None or samples >= number_of(run, split) else samples


def number_of(run: Run, split: str) -> int:
    """Number of samples of a split, as it was recorded; of a user's task, and where nothing is recorded, counted."""
    recorded = run.about.get("samples", {}) if run.context.user_task is None else {}
    return recorded[split] if split in recorded else len(run.task.split(split))


def stated_subset(task: Task, split: Split, number: int | None) -> tuple[Split, dict[str, Any]]:
    """A split, or `at_most` so many of its samples; and the attributes by which a result states that it is a part.

    Raises:
        ValueError: If there is no such split, or the number is below 1.
    """
    every = task.split(split)
    few = at_most(every, number)
    if few is every:
        return split, {}
    counts = {name: counted(task.per_sample, some.targets) for name, some in (("samples", few), ("samples_of", every))}
    return few, {"split": split_name(split), **counts}
