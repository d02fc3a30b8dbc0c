"""Whether a file of tensors is whole: its bytes against the digest in its header; needs no torch and makes no array."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError, safe_open

from drift.store.file_layout import read_places
from drift.store.numpy_files import FORMAT, PIECE, SEPARATE


def is_whole(path: Path) -> bool:
    """Whether a file that is not compressed has the content that was written; False also where that is not known.

    False is no verdict: compressed files are decompressed by `drift.store.files.read_tensors`, which names the damage.
    """
    with suppress(SafetensorError, OSError, ValueError, LookupError, TypeError, AttributeError):
        with safe_open(path, framework="numpy") as file:  # checks places and sizes of the tensors
            stated = file.metadata() or {}
        if stated.get("format") not in (FORMAT, SEPARATE):
            return False
        total = hashlib.sha256(stated.get("about", "").encode())
        with open(path, "rb", buffering=0) as content:
            for name, place in sorted(read_places(content).items()):
                total.update(f"{name} torch.{place.dtype} {place.shape};".encode())
                content.seek(place.begin)
                for begin in range(place.begin, place.end, PIECE):
                    total.update(content.read(min(PIECE, place.end - begin)))
        return total.hexdigest() == stated.get("digest")
    return False
