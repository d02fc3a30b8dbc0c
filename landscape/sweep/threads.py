"""Chunks of points of a sweep, or of samples at few points, shared by threads or processes."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

import torch

from landscape.sweep.memory import explain_oom, halve_on_oom
from landscape.sweep.worker import Points, Values, Work, Worker, mean_metrics

CHUNK_SECONDS = 2.0
"""Approximate time between reports of finished points."""

RUN_BLOCKS = 2
"""Approximate number of blocks of samples per task of a thread, if threads share the samples."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class PointPool(Protocol):
    """Other processes that share the points of a sweep."""

    def evaluate_points(self, work: Work, points: Points, most: int) -> Iterator[tuple[slice, Values]]:
        """(points, values) per chunk of at most `most` points, in any order."""


class Evaluator(Protocol):
    """Anything that computes a chunk."""

    work: Work

    def chunk(self, points: Points) -> Values:
        """Mean metrics at a few points."""

    def free(self) -> None:
        """Release memory that is only a cache."""


def evaluate_chunks(
    first: Worker, points: Points, spans: Iterator[slice], workers: int
) -> Iterator[tuple[slice, Values]]:
    """(points, values) per chunk, in order, by threads that share the points, or at few points the samples."""
    if workers == 1:
        yield from ((span, at_points(first, points[span])) for span in spans)
        return
    if len(points) < workers:
        blocks = first.blocks
        runs = [blocks[start : start + RUN_BLOCKS] for start in range(0, len(blocks), RUN_BLOCKS)]
        with explain_oom("a forward pass", "lower block, or workers"):
            passed = _run_in_threads(first, lambda worker, run: list(worker.outputs(run)), runs, workers, points)
            values = mean_metrics(first.work, len(points), (outputs for _, some in passed for outputs in some))
        yield slice(0, len(points)), values
        return
    yield from _run_in_threads(first, lambda worker, span: at_points(worker, points[span]), spans, workers)


def _run_in_threads(
    first: Worker,
    do: Callable[[Worker, Item], Result],
    items: Iterable[Item],
    workers: int,
    points: Points | None = None,
) -> Iterator[tuple[Item, Result]]:
    """(item, result) in order, computed by threads with one worker each; few items are started ahead.

    Args:
        points: Points that every worker takes before its first item.
    """
    threads, local, spare = torch.get_num_threads(), threading.local(), iter([first])

    def begin() -> None:
        torch.set_num_threads(1)

    def run(item: Item) -> Result:
        if not hasattr(local, "worker"):
            local.worker = next(spare, None) or Worker(first.work)
            if points is not None:
                with torch.no_grad():  # grad mode belongs to a thread
                    local.worker.take(points)
        return do(local.worker, item)

    ahead: deque[tuple[Item, Future[Result]]] = deque()
    try:
        with ThreadPoolExecutor(workers, initializer=begin) as pool:
            for item in items:
                ahead.append((item, pool.submit(run, item)))
                if len(ahead) >= 2 * workers:
                    done, future = ahead.popleft()
                    yield done, future.result()
            while ahead:
                done, future = ahead.popleft()
                yield done, future.result()
    finally:
        torch.set_num_threads(threads)


@torch.no_grad()
def at_points(evaluator: Evaluator, points: Points) -> Values:
    """Values of a chunk, computed in smaller chunks where memory does not suffice."""
    chunks = list(halve_on_oom(lambda few: evaluator.chunk(list(few)), points, evaluator.free))
    return chunks[0] if len(chunks) == 1 else {name: torch.cat([chunk[name] for chunk in chunks]) for name in chunks[0]}


def pieces(count: int, most: int, workers: int) -> list[slice]:
    """Consecutive pieces of at most `most`, about eight per worker, so that workers end at about the same time."""
    size = min(most, max(1, -(-count // (8 * workers))))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def chunks(count: int, least: int, most: int, workers: int = 1) -> Iterator[slice]:
    """Consecutive pieces, from `least` to `most` long, that grow until one takes CHUNK_SECONDS.

    Several workers get pieces of equal size in turn, also at the end, so that they end at the same time.
    """
    start, size = 0, least
    while start < count:
        begun = time.perf_counter()
        fair = min(size, -(-(count - start) // workers))
        for _ in range(workers):
            if start < count:
                yield slice(start, min(start + fair, count))
                start += fair
        if time.perf_counter() - begun < CHUNK_SECONDS:
            size = min(2 * size, most)
