"""Work of the page away from its server: quick calls in one warm process, long computations each in its own.

    jobs.quick(function, run, item, on_end=...)         function(run, item), most urgent first
    jobs.long(function, run, *arguments, on_end=...)    function(run, *arguments), each in a process of its own

Functions are those of modules. Callbacks come in a thread of the jobs; a page pushes from there.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from figures.explore.work.job import LongJob, OnJob, State
from figures.explore.work.lanes import Call, LostProcess, ProcessLane, ThreadLane
from figures.explore.work.quick_calls import QuickCall, cores, printed_errors

if TYPE_CHECKING:  # jobs are there before this process has loaded torch
    from drift.runs.run import Run
    from figures.explore.work.addresses import Address

URGENT = 10
"""Priorities below this are those of what a person's hand waits for, such as a slider's number."""


_NUMBERS = count()


class Jobs:
    """All work of a page.

    Args:
        threads: Quick calls at a time; by default one per core, at most eight.
        computations: Long computations at a time; the others wait.
    """

    def __init__(self, threads: int | None = None, computations: int = 1) -> None:
        self.threads = threads or min(8, cores())
        self._computations = computations
        self._lock = threading.RLock()
        self._waiting: list[tuple[int, int, QuickCall]] = []
        self._calls: dict[int, QuickCall] = {}
        self._warm = ProcessLane(self.threads, self._answered, self._stepped)
        self._warm.start()
        self._local = ThreadLane(self.threads, self._answered, self._stepped)
        self._long: list[tuple[LongJob, Call]] = []
        self._lanes: dict[LongJob, ProcessLane | ThreadLane] = {}
        self._jobs: list[LongJob] = []

    @property
    def active(self) -> list[LongJob]:
        """Jobs that have not ended, in the order of their start."""
        with self._lock:
            self._jobs = [job for job in self._jobs if not job.ended]
            return list(self._jobs)

    def quick(
        self,
        function: Callable[[Run, Any], Any],
        run: Run,
        item: Any,
        *,
        title: str = "",
        priority: int = 0,
        on_progress: OnJob = lambda job: None,
        on_end: OnJob = lambda job: None,
    ) -> LongJob:
        """Call `function(run, item)` in the process that keeps runs, data and models warm.

        Args:
            function: Of a module; it should take less than a second, for others wait for it.
            priority: Small ones first. Those below `URGENT` wait for no others: they have a thread of their own.
            on_progress: Called with the job when the call reports a step (`stopping.step`).
            on_end: Called with the job when it is done, failed or cancelled.
        """
        job = LongJob(title, state="running", _stop=self._stop_quick, _on_end=on_end, _on_progress=on_progress)
        call = QuickCall(job, function, _address(run), item)
        with self._lock:
            self._jobs.append(job)
            heapq.heappush(self._waiting, (priority, next(_NUMBERS), call))
            self._send()
        return job

    def long(
        self,
        function: Callable[..., Any],
        runs: Run | Sequence[Run],
        *arguments: Any,
        title: str = "",
        on_progress: OnJob = lambda job: None,
        on_end: OnJob = lambda job: None,
    ) -> LongJob:
        """Call `function(runs, *arguments)` in a process of its own; `cancel` kills it.

        Args:
            function: Of a module. Its runs report progress (`run.context.progress`).
            runs: A run, or several.
            on_progress: Called with the job whenever a step is done.
            on_end: Called with the job when it is done, failed or cancelled.
        """
        job = LongJob(title, _stop=self._stop_long, _on_end=on_end, _on_progress=on_progress)
        several = list(runs) if isinstance(runs, Sequence) else [runs]
        single, addresses = not isinstance(runs, Sequence), tuple(map(_address, several))
        call = Call(next(_NUMBERS), function, addresses, arguments, single)
        with self._lock:
            self._jobs.append(job)
            self._long.append((job, call))
        self._start_long()
        return job

    def close(self) -> None:
        """Stop everything."""
        with self._lock:
            self._waiting.clear()
            self._long.clear()
            jobs = list(self._lanes)
        for job in jobs:
            self._close_lane(job)
        self._warm.close()
        self._local.close()

    def _send(self) -> None:
        """Send the most urgent calls while threads are free."""
        while self._waiting:
            priority, number, call = self._waiting[0]
            if not call.job.ended and len(self._calls) >= self.threads + (priority < URGENT):
                return
            heapq.heappop(self._waiting)
            if call.job.ended:
                continue
            self._calls[number] = call
            self._lane(call).send(Call(number, call.function, (call.address,), (call.item,)))

    def _lane(self, call: QuickCall) -> ProcessLane | ThreadLane:
        return self._warm if call.address.local is None else self._local

    def _answered(self, number: int, result: Any, error: Exception | None) -> None:
        with self._lock:
            call = self._calls.pop(number, None)
            if call is not None and isinstance(error, LostProcess) and call.lives > 1 and not call.job.ended:
                call.lives -= 1
                heapq.heappush(self._waiting, (-1, next(_NUMBERS), call))
                call = None
            self._send()
        if call is None or call.job.ended:
            return
        call.job.result, call.job.error = result, error
        self._finish(call.job, "done" if error is None else "failed")

    def _stepped(self, number: int, done: int, total: int) -> None:
        with self._lock:
            call = self._calls.get(number)
        if call is not None and not call.job.ended:
            _progress(call.job, number, done, total)

    def _stop_quick(self, job: LongJob) -> None:
        self._finish(job, "cancelled")
        with self._lock:
            sent = {number: call for number, call in self._calls.items() if call.job is job}
            for lane in {self._lane(call) for call in sent.values()}:
                for number in lane.stop([*sent]):
                    self._calls.pop(number, None)
            self._send()

    def _start_long(self) -> None:
        with self._lock:
            while self._long and len(self._lanes) < self._computations:
                job, call = self._long.pop(0)
                job.state, job._begun = "running", time.monotonic()
                lane = ThreadLane if call.only_here else ProcessLane
                self._lanes[job] = lane(1, partial(self._ended, job), partial(_progress, job), long=True)
                self._lanes[job].send(call)

    def _ended(self, job: LongJob, number: int, result: Any, error: Exception | None) -> None:
        self._close_lane(job)
        if not job.ended:
            job.result, job.error = result, error
            self._finish(job, "done" if error is None else "failed")
        self._start_long()

    def _stop_long(self, job: LongJob) -> None:
        with self._lock:
            self._long = [entry for entry in self._long if entry[0] is not job]
        self._close_lane(job)
        self._finish(job, "cancelled")
        self._start_long()

    def _close_lane(self, job: LongJob) -> None:
        with self._lock:
            lane = self._lanes.pop(job, None)
        if lane is not None:
            lane.close()

    def _finish(self, job: LongJob, state: State) -> None:
        with self._lock:
            if job.ended:
                return
            job.state = state
        with printed_errors():
            job._on_end(job)


def _progress(job: LongJob, number: int, done: int, total: int) -> None:
    if done < job.done or not job.done:  # the next of several computations: its time is counted anew
        job._begun, job._first = time.monotonic(), done
    job.done, job.total = done, total
    with printed_errors():
        job._on_progress(job)


def _address(run: Run) -> Address:
    from figures.explore.work.addresses import Address

    return Address.from_run(run)
