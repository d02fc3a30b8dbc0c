"""Messages to another process, without torch before there is one."""

from __future__ import annotations

from typing import Any


def to_bytes(content: Any) -> bytes:
    """A value with its tensors as bytes."""
    from drift.parallel.shared_tensors import serialize

    return serialize(content)


def from_bytes(message: bytes) -> Any:
    """Inverse of `to_bytes`."""
    from drift.parallel.shared_tensors import deserialize

    return deserialize(message)
