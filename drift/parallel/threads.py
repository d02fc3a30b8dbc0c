"""Threads of torch in this process."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from drift.parallel.job_pool import require_workers


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Torch computes with this number of threads; the former number comes back at the end."""
    require_workers(number, "threads")
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
