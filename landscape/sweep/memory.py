"""What happens where memory ends: work is done in smaller parts, or one clear line says what to lower."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_SIGNS = ("can't allocate memory", "out of memory", "not enough memory", "std::bad_alloc")


class OutOfMemory(RuntimeError):
    """Memory that did not suffice; the message says for what, and what to lower."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory, of the machine or of an accelerator, did not suffice."""
    if isinstance(error, MemoryError | OutOfMemory):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)


def halve_on_oom(
    work: Callable[[Sequence[Item]], Result], items: Sequence[Item], free: Callable[[], None]
) -> Iterator[Result]:
    """Results of `work` on all items at once, or on halves of them, and so on, where memory does not suffice.

    Args:
        work: Is given consecutive items.
        items: What is to be done.
        free: Gives up memory that is only kept for speed; called before halves are tried.

    Raises:
        OutOfMemory: If a single item is too much.
    """
    try:
        result = work(items)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        if len(items) < 2:
            raise OutOfMemory(
                f"memory does not suffice for a single point ({_requested_amount(error)}); lower block."
            ) from error
    else:
        yield result
        return
    free()
    half = len(items) // 2
    yield from halve_on_oom(work, items[:half], free)
    yield from halve_on_oom(work, items[half:], free)


def keep_memory() -> None:
    """Have this process keep freed memory for its next step, as one that has read a dataset does.

    glibc hands each block back to the system that is larger than any freed before, up to 32 MiB. Without this, steps
    have their memory faulted in anew: 1.4 times the CPU time of a training step of the FMNIST CNN, 1.05 of a sweep.
    """
    import torch  # this module is read by commands that need no torch

    with suppress(MemoryError, RuntimeError):  # little memory is left; there is nothing to keep then
        torch.empty(31 * 2**20, dtype=torch.uint8)


@contextmanager
def explain_oom(what: str, remedy: str) -> Iterator[None]:
    """Turn an error that says memory did not suffice into one line.

    Raises:
        OutOfMemory: With what it was for and what to lower.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, OutOfMemory) or not is_out_of_memory(error):
            raise
        raise OutOfMemory(f"memory does not suffice for {what} ({_requested_amount(error)}); {remedy}.") from error


def _requested_amount(error: BaseException) -> str:
    """The part of a message that says how much was asked for."""
    text = " ".join(str(error).split())
    start = max(text.lower().find("you tried to allocate"), text.lower().find("tried to allocate"))
    return text[start:].split(".")[0][:80] if start >= 0 else text[:80] or type(error).__name__
