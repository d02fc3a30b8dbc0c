"""Hover texts of clients: their samples and labels."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from drift.analyses.rounds.labels import class_shares
from drift.runs.run import Run

CLASSES = 4
"""Number of classes that are named, the most frequent ones of a client."""


def plain(text: object) -> str:
    """Text escaped for plotly, which interprets some markup."""
    return html.escape(str(text), quote=False)


def client_notes(run: Run, index: int) -> dict[int, str]:
    """Samples and labels of the clients of a round's cohort, by number; labels where they are known.

    Args:
        run: Run of the clients.
        index: Number of the round.
    """
    record = run.round(index)
    shares = label_shares(run, index)
    notes = {}
    for client, size in zip(record.ids.tolist(), record.sizes.tolist(), strict=True):
        words = f"{size} samples"
        if shares is not None and np.isfinite(shares[client]).all():
            words += f"<br>{label_words(shares[client], run.dataset.classes)}"
        notes[client] = words
    return notes


def label_shares(run: Run, index: int) -> np.ndarray | None:
    """Class shares (K, C) of the clients' training data in a round; None where they are not known."""
    if run.without_data or not run.dataset.classes:
        return None
    try:
        return class_shares(run, index)
    except LookupError:  # imported without its partition
        return None


def label_words(shares: np.ndarray, classes: Sequence[str]) -> str:
    """The most frequent classes of a client, like "labels 3: 51 %, 5: 49 %"."""
    order = [int(number) for number in np.argsort(-shares, kind="stable") if shares[number] > 0]
    largest = ", ".join(f"{plain(classes[number])}: {100 * shares[number]:.0f} %" for number in order[:CLASSES])
    return f"labels {largest}{', ...' if len(order) > CLASSES else ''}"
