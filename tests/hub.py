"""Tiny image datasets in the layout of the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

Column = Sequence[int] | Sequence[str] | tuple[Sequence[int], Sequence[str]]
"""Values, or numbers and the names of what they mean."""


def write(
    folder: Path, split: str, shape: tuple[int, int, int], columns: Mapping[str, Column], *, image="image", seed=0
) -> np.ndarray:
    """Writes SPLIT.parquet with random images (n, C, H, W), which are returned, and further columns."""
    hub = pytest.importorskip("datasets", reason="needs the extra `data`")
    hub.disable_progress_bars()
    values = {name: column[0] if isinstance(column, tuple) else column for name, column in columns.items()}
    count = len(next(iter(values.values())))
    channels, height, width = shape
    pixels = np.random.default_rng(seed).integers(0, 256, (count, channels, height, width), dtype=np.uint8)
    features = {
        name: hub.ClassLabel(names=list(column[1]))
        if isinstance(column, tuple)
        else hub.Value("string" if isinstance(column[0], str) else "int64")
        for name, column in columns.items()
    }
    pictures = [one.squeeze(2) if channels == 1 else one for one in pixels.transpose(0, 2, 3, 1)]
    table = hub.Dataset.from_dict(
        {image: pictures, **{name: list(column) for name, column in values.items()}},
        features=hub.Features({image: hub.Image(), **features}),
    )
    folder.mkdir(parents=True, exist_ok=True)
    table.to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return pixels
