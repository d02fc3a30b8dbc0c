"""Whether a file of tensors is whole: its bytes against the digest in its header; needs no torch and makes no array."""

from __future__ import annotations

import hashlib
import json
import mmap
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError, safe_open

from drift.store.numpy_files import FORMAT, TYPES

_NAMES = {short: dtype for dtype, (short, _) in TYPES.items()}


def is_whole(path: Path) -> bool:
    """Whether a file of the first format has the content that was written; False also where that is not known.

    False is no verdict: compressed files are decompressed by `drift.store.files.read_tensors`, which names the damage.
    """
    with suppress(SafetensorError, OSError, ValueError, LookupError, TypeError, AttributeError):
        with safe_open(path, framework="numpy") as file:  # checks places and sizes of the tensors
            stated = file.metadata() or {}
        if stated.get("format") != FORMAT:
            return False
        with open(path, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            length = int.from_bytes(content[:8], "little")
            header = json.loads(content[8 : 8 + length])
            total = hashlib.sha256(stated.get("about", "").encode())
            for name, entry in sorted(header.items()):
                if name == "__metadata__":
                    continue
                first, last = entry["data_offsets"]
                total.update(f"{name} torch.{_NAMES[entry['dtype']]} {tuple(entry['shape'])};".encode())
                total.update(content[8 + length + first : 8 + length + last])
            return total.hexdigest() == stated.get("digest")
    return False
