"""Messages to another process, without torch before there is one."""

import pickle
import shlex
import signal
from typing import Any

from drift.store.numpy_files import Damaged, Newer
from figures.selection.advised import without_advice


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
    return kind(one_line(error))


def one_line(reason: Exception) -> str:
    """A reason in one line, without advice for commands; of a damaged round, with its run and what restores it."""
    if not isinstance(reason, Damaged) or (rounds := reason.path.parent).name != "rounds":
        return " ".join(without_advice(reason).split()) or type(reason).__name__
    restore = f"To restore it: fedscape verify {shlex.quote(str(rounds.parent))} --repair"
    words = f"Round {int(reason.path.stem)} of run {rounds.parent.name} {reason.what}."
    return f"{words} {reason.remedy if isinstance(reason, Newer) else restore}"


KILLED = getattr(signal, "SIGKILL", 9)


def ending(code: int | None) -> str:
    """How a process ended, by its exit code."""
    if code is not None and code < 0:
        return f"signal {-code}" + ("; memory may have run out" if code == -KILLED else "")
    return f"exit code {code}; the terminal has more"
