"""One page of the explorer: what it asks, answered in threads, and what is told to it unasked. Knows no transport.

    session = Session(workspace, send)
    session.receive({"id": 7, "ask": "landscape", "args": {"run": "fedavg-...", "round": 3}})

`send` gets {"id": 7, "value": ...}, or {"id": 7, "error": "one plain line"}; before that {"id": 7, "progress": ...} and
{"id": 7, "rough": ...}; and {"push": "scene" | "jobs" | "problems", "value": ...} at any time.
"""

import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from figures.explore.answers.arguments import accepted
from figures.explore.ask import Ask
from figures.explore.work.job import LongJob
from figures.explore.work.lanes import LostProcess
from figures.explore.work.messages import one_line
from figures.explore.work.open_runs import PROBLEMS, Changes
from figures.explore.work.workspace import Workspace

THREADS = 16
"""Asks of a page that are answered at a time; most of them wait for a job."""

Send = Callable[[dict[str, Any]], None]


class Session:
    """Asks and pushes of a page.

    Args:
        workspace: Runs and jobs, which all pages share.
        send: Takes messages to the page, from any thread.
    """

    def __init__(self, workspace: Workspace, send: Send) -> None:
        from figures.explore.answers.changed_scene import ChangedScene

        self.workspace, self._send = workspace, send
        self._asks: dict[int, tuple[Ask, Future[None]]] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="explore-ask")
        self._scene = ChangedScene(workspace.runs, self._push, self._closed)
        self._shown_jobs: list[Any] | None = None  # a page that comes back may still list what has ended
        self._unfollow = workspace.follow(self._grown, self._worked)

    def receive(self, message: Any) -> None:
        """Take a message of the page: an ask is answered later, in another thread."""
        number = message.get("id") if isinstance(message, Mapping) else None
        if not isinstance(number, int) or self._closed.is_set():
            return
        if message.get("cancel"):
            self._cancel(number)
            return
        ask = Ask(self.workspace, self._scene, lambda content: self._tell(number, content))
        with self._lock:
            if number in self._asks:
                self._send({"id": number, "error": f"ask {number} is being answered; give each ask its own id."})
                return
            future = self._pool.submit(self._answer, number, ask, message.get("ask"), message.get("args"))
            self._asks[number] = ask, future

    def close(self) -> None:
        """Stop all work for this page; nothing is sent any more."""
        self._closed.set()
        self._unfollow()
        with self._lock:
            numbers = list(self._asks)
        for number in numbers:
            self._cancel(number)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _cancel(self, number: int) -> None:
        with self._lock:
            ask, future = self._asks.pop(number, (None, None))
        if ask is not None and future is not None:
            ask.cancel()
            future.cancel()

    def _answer(self, number: int, ask: Ask, kind: Any, args: Any) -> None:
        try:
            function, values = accepted(kind, args)
            content = {"value": function(ask, **values)}
        except CancelledError:
            content = {"error": "It was cancelled. It begins again when you come back to it."}
        except Exception as reason:  # noqa: BLE001 - becomes the page's line
            content = {"error": plain_line(reason)}
        try:
            self._tell(number, content)
        except ValueError as reason:  # a number that JSON has not
            self._tell(number, {"error": plain_line(reason)})
        with self._lock:
            self._asks.pop(number, None)

    def _tell(self, number: int, content: dict[str, Any]) -> None:
        """Send something about an ask that the page still waits for."""
        with self._lock:
            waiting = number in self._asks
        if waiting and not self._closed.is_set():
            self._send({"id": number, **content})

    def _push(self, kind: str, value: Any) -> None:
        if not self._closed.is_set():
            self._send({"push": kind, "value": value})

    def _grown(self, changes: Changes) -> None:
        """Runs grew, appeared or vanished."""
        self._scene.grown(changes)
        runs = self.workspace.runs
        self._push("problems", [line for name in runs.names if (line := runs.problem(name))])

    def _worked(self) -> None:
        """Say which jobs there are, where that has changed."""
        jobs = [_job(job) for job in self.workspace.jobs.active if job.title]
        if jobs != self._shown_jobs:
            self._shown_jobs = jobs
            self._push("jobs", jobs)


def plain_line(reason: Exception) -> str:
    """An error in one line for a person; one that is not about their runs is also printed with its traceback."""
    words = one_line(reason)
    if isinstance(reason, OSError) and reason.strerror:
        return f"{reason.filename or 'a file'}: {reason.strerror}. Is the disk full, or the folder gone or locked?"
    bugs = KeyError | IndexError | TypeError | AttributeError
    if isinstance(reason, (LostProcess, *PROBLEMS)) and not isinstance(reason, bugs):
        return words
    traceback.print_exception(reason, file=sys.stderr)
    return f"an error of fedscape, {type(reason).__name__}: {words}. The terminal has more."


def _job(job: LongJob) -> dict[str, Any]:
    return {"job": job.number, "title": job.title, "done": job.done, "total": job.total, "left": job.seconds_left}
