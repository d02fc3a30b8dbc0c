"""Messages to another process, without torch before there is one."""

from __future__ import annotations

import pickle
from typing import Any


def to_bytes(content: Any) -> bytes:
    """A value with its tensors as bytes."""
    from drift.parallel.shared_tensors import serialize

    return serialize(content)


def from_bytes(message: bytes) -> Any:
    """Inverse of `to_bytes`."""
    from drift.parallel.shared_tensors import deserialize

    return deserialize(message)


def answer_bytes(number: int, result: Any, error: Exception | None) -> bytes:
    """An answer in bytes; a result that cannot be sent becomes an error."""
    try:
        return to_bytes((number, result, error))
    except (TypeError, AttributeError, pickle.PicklingError) as reason:
        return to_bytes((number, None, TypeError(f"the result cannot be sent: {reason}")))


def plain_error(error: Exception) -> Exception:
    """The nearest built-in class of an error with its message, which any process can read."""
    kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return kind(" ".join(str(error).split()) or type(error).__name__)
