"""Handling of out-of-memory errors: smaller parts, or a one-line message that names what to lower."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from landscape.out_of_memory import OutOfMemory, is_out_of_memory

Item = TypeVar("Item")
Result = TypeVar("Result")


def halve_on_oom(
    work: Callable[[Sequence[Item]], Result], items: Sequence[Item], free: Callable[[], None]
) -> Iterator[Result]:
    """Results of `work` on all items, or where memory does not suffice on halves of them, and so on.

    Args:
        work: Function of consecutive items.
        items: All items.
        free: Releases memory that is only a cache; called before halves are tried.

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


@contextmanager
def explain_oom(what: str, remedy: str) -> Iterator[None]:
    """Replace an out-of-memory error by one line.

    Raises:
        OutOfMemory: Names the work and what to lower.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, OutOfMemory) or not is_out_of_memory(error):
            raise
        raise OutOfMemory(f"memory does not suffice for {what} ({_requested_amount(error)}); {remedy}.") from error


def _requested_amount(error: BaseException) -> str:
    """The part of a message that states the requested amount."""
    text = " ".join(str(error).split())
    start = max(text.lower().find("you tried to allocate"), text.lower().find("tried to allocate"))
    return text[start:].split(".")[0][:80] if start >= 0 else text[:80] or type(error).__name__
