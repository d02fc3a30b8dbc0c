"""Progress of long computations, reported to a callback."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

Progress = Callable[[int, int], None]
"""(steps done, all steps) -> None; first with the steps done at the start, last with all."""


def share(progress: Progress | None, index: int, count: int) -> Progress | None:
    """Progress of stage `index` (0, 1, ..) of `count` computations of equal length."""
    if progress is None or count == 1:
        return progress
    return lambda done, total: progress(index * total + done, count * total)


def with_progress(items: Sequence[Item], progress: Progress | None) -> Iterator[Item]:
    """The items one by one; `progress` is called before the first and after each item."""
    for done, item in enumerate(items):
        if progress is not None:
            progress(done, len(items))
        yield item
    if progress is not None:
        progress(len(items), len(items))
