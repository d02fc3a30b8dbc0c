"""Quick calls, and what both kinds of jobs call."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from figures.explore.work.job import LongJob

if TYPE_CHECKING:
    from figures.explore.work.addresses import Address

LIVES = 2
"""Times that a call is tried before the death of its process is its error."""


@dataclass(eq=False)
class QuickCall:
    job: LongJob
    function: Callable[..., Any]
    address: Address
    item: Any
    lives: int = LIVES


@contextmanager
def printed_errors() -> Iterator[None]:
    """An error of a view that is called back is printed, and stops neither the jobs nor the other views."""
    try:
        yield
    except Exception:  # noqa: BLE001 - see above
        traceback.print_exc(file=sys.stderr)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
