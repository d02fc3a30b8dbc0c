"""A process pool that ends with its parent process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context


@contextmanager
def processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of fresh processes with one torch thread each; on an error or Ctrl-C they are stopped at once.

    Files of a run are whole or absent, so that stopping at any instant is safe.
    """
    before = set(active_children())
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(active_children()) - before:
                child.terminate()
            raise


def _prepare() -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches workers too; end without tracebacks
    torch.set_num_threads(1)
