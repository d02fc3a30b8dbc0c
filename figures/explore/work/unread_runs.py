"""What a page shows of runs while torch is loaded: names, and the accuracies that their rounds recorded."""

import contextlib
import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from drift.store.round_headers import ROUND_FILE, read_small_arrays
from figures.looks import palette

MOST, SECONDS = 12, 0.3
"""Runs that are listed, and for how long their rounds are read."""


def unread_runs(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """name, label, colour, planned and done (rounds) of each run, and accuracies up to the first round without one.

    What cannot be read is left out: the page says why as soon as it is open.
    """
    files = [file for folder in folders for file in sorted([*folder.glob("run.json"), *folder.glob("*/run.json")])]
    ends, runs = time.monotonic() + SECONDS, list[dict[str, Any]]()
    for file in files[:MOST]:
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            about = json.loads(file.read_text(encoding="utf-8"))
            rounds = sorted(path for path in file.parent.glob("rounds/*") if ROUND_FILE.fullmatch(path.name))
            known = {"planned": int(about["experiment"]["rounds"]), "done": len(rounds)}
            label = str(about["label"])
            named = {"name": file.parent.name, "label": palette.label(label), "colour": palette.colour(label)}
            runs.append({**named, **known, "accuracies": list(_accuracies(rounds, ends))})
    return runs


def _accuracies(rounds: Sequence[Path], ends: float) -> Iterator[float]:
    for path in rounds:
        try:
            accuracy = read_small_arrays(path).numbers().get("accuracy", math.nan)
        except (OSError, ValueError, LookupError):
            return
        if not math.isfinite(accuracy) or time.monotonic() > ends:
            return
        yield accuracy
