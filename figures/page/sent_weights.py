"""Weights of the clients that a page which is sent offers: those of the round, by data size, and the best ones."""

import contextlib
from typing import Any

from drift.analyses.landscapes.round_weights import by_size, lowest_weights, own_weights
from drift.runs.run import Run
from drift.store.column_blocks import weighted_models
from drift.store.numpy_files import Damaged
from drift.store.round_record import Round
from figures.page.packed import finite
from figures.page.why import lowest_words


def sent_weights(run: Run, index: int, split: str, samples: int | None, *, best: bool) -> dict[str, Any]:
    """Weights of a round by rule.

    Args:
        run, index: A round that kept its clients.
        split, samples: Of its landscape.
        best: Whether the best weights are found.

    Returns:
        own and size, and best if they were found: gamma and weights by id; best also has loss, own (the loss at the
        round's own weights) and words. ends: whether the round ended at its own weights.
    """
    record = run.round(index)
    ids = sorted(record.ids.tolist())
    listed = lambda one: {"gamma": one.gamma, "weights": dict(zip(map(str, ids), one.shares, strict=True))}  # noqa: E731
    value: dict[str, Any] = {"own": listed(own_weights(record)), "size": listed(by_size(run, record))}
    value["ends"] = record.end is not None and ends_at_aggregate(record)
    with contextlib.suppress(ValueError, LookupError, Damaged):  # without a finite loss, or one over single samples
        if best:
            lowest = lowest_weights(run, index, split, samples)
            numbers = {"loss": finite(lowest.loss), "own": finite(lowest.own), "words": lowest_words(run, lowest)}
            value["best"] = {**listed(lowest.weights), **numbers}
    return value


def ends_at_aggregate(record: Round) -> bool:
    """Whether the end of a round is the aggregate of its clients at its own weights, but for rounding."""
    end, aggregate = record.kept("end"), weighted_models(record.weights.double(), record.kept("clients"))
    return bool((end - aggregate).norm() <= 1e-6 * end.norm())
