"""Tiny image datasets in the layout of the Hugging Face hub."""

from __future__ import annotations

import io
import json
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
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra `data`")
    from pyarrow import parquet

    values = {name: column[0] if isinstance(column, tuple) else column for name, column in columns.items()}
    count = len(next(iter(values.values())))
    pixels = np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)
    features = {name: {"names": list(column[1])} for name, column in columns.items() if isinstance(column, tuple)}
    table = {image: [{"bytes": _png(one), "path": None} for one in pixels]}
    table |= {name: list(column) for name, column in values.items()}
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{split}-00000-of-00001.parquet"
    parquet.write_table(pyarrow.table(table).replace_schema_metadata(about), place)
    return pixels


def _png(pixels: np.ndarray) -> bytes:
    """The file of an image (C, H, W)."""
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(content, "png")
    return content.getvalue()
