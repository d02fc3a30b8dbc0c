"""Global models that Flower's guide saves after every round, as a run; needs numpy only."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import numpy as np

from drift.record.flat_arrays import State, arrays_by_name
from drift.record.recorder import Recorder


def read_weights(source: str | Path, folder: str | Path, *, model: State) -> Path:
    """The run of files `round-1-weights.npz`, `round-2-weights.npz`, ... as Flower's guide saves global models.

    Round N becomes round N - 1, and the first file only serves as the start of the next. There are no clients.

    Args:
        source: Folder of the files.
        folder: Folder of the run.
        model: Module or state dict with names and shapes of the arrays, which the files lack.

    Raises:
        LookupError: If there are fewer than two files in a row.
        ValueError: If a file is damaged or holds another model; the message names it.
    """
    files = {int(match[1]): path for path in Path(source).glob("*.npz") if (match := _WEIGHTS.fullmatch(path.name))}
    pairs = [(files[number - 1], path, number - 1) for number, path in sorted(files.items()) if number - 1 in files]
    if not pairs:
        raise LookupError(
            f"{source} has no two rounds in a row; expected are round-1-weights.npz, round-2-weights.npz."
        )
    recorder = Recorder(folder, model, continuous=False)
    shapes = [value.shape for value in arrays_by_name(model).values()]
    for start, end, index in pairs:
        if index >= recorder.next:
            recorder.round(start=_arrays(start, shapes), clients={}, end=_arrays(end, shapes), index=index)
    return recorder.folder


_WEIGHTS = re.compile(r"round-(\d+)-weights\.npz")


def _arrays(path: Path, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Arrays of a file, whose stated sizes are checked before memory is allocated."""
    room = sum(16 * int(np.prod(shape)) + 4096 for shape in shapes)
    try:
        with zipfile.ZipFile(path) as inside:
            if len(inside.infolist()) != len(shapes) or sum(entry.file_size for entry in inside.infolist()) > room:
                raise ValueError("it holds another number or size of arrays than the model")
        with np.load(path, allow_pickle=False) as arrays:
            return [arrays[name] for name in arrays.files]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as reason:
        raise ValueError(f"{path} cannot be read ({reason}).") from reason
