"""Processes that begin warm: forked from one that has imported what they need.

A start by `spawn`, as the library does it, takes seconds of imports. Tests that are about the start itself, or about
what a process holds, ask for the fixture `cold`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from drift.parallel import worker_pool
from figures.explore.work import lanes

IMPORTED = [
    "tiny",
    "torture.kills",
    "drift.analyses",
    "drift.engines.pooled_clients",
    "figures.gallery",
    "figures.pictures.draw_files",
    "figures.page.report",
    "figures.cli",
    "figures.commands.explore",
    "figures.explore.answers.changed_scene",
    "figures.explore.answers.landscape",
    "figures.explore.session",
    "figures.explore.server",
    "figures.explore.work.points",
    "figures.explore.work.workspace",
    "matplotlib.pyplot",
    "warm",
]
FORKED = sys.platform == "linux"  # Windows forks nothing, and on macOS a fork may not use system libraries
PROCESSES = get_context("forkserver" if FORKED else "spawn")
if FORKED:
    import resource
    from multiprocessing import forkserver

    PROCESSES.set_forkserver_preload(IMPORTED)
STARTERS = (worker_pool, lanes)
"""Modules of the library that start processes."""


def warm() -> None:
    """Start the process that the others are forked from; one that was forked from it has it already."""
    if not FORKED or (forkserver._forkserver._forkserver_address and not forkserver._forkserver._forkserver_pid):
        return
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)  # it does not take over sys.path
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


class Warm:
    """Stands for the context of `multiprocessing` that a module of the library starts its processes by."""

    Pipe = staticmethod(PROCESSES.Pipe)
    set_forkserver_preload = staticmethod(lambda names: None)

    @staticmethod
    def Process(target: Callable[..., None], args: tuple[Any, ...] = (), **options: Any) -> Any:
        warm()
        return PROCESSES.Process(target=_within, args=(dict(os.environ), _source(), target, *args), **options)


def _source() -> tuple[Any, ...]:
    """Address of the process that others are forked from, its key where Python asks for one, and our largest file."""
    if not FORKED:
        return ()
    server = forkserver._forkserver
    key = getattr(server, "_forkserver_authkey", None)
    return server._forkserver_address, key, resource.getrlimit(resource.RLIMIT_FSIZE)


def _within(environment: dict[str, str], source: tuple[Any, ...], target: Callable[..., None], *arguments: Any) -> None:
    """Do it in this environment and limit; processes that it starts are forked from the same one."""
    os.environ.clear()
    os.environ.update(environment)
    if source:
        server = forkserver._forkserver
        server._forkserver_address, server._forkserver_authkey, largest = source
        server.ensure_running = lambda: None
        resource.setrlimit(resource.RLIMIT_FSIZE, largest)
    take_over()
    target(*arguments)


NICE = lanes.NICE


def take_over() -> None:
    """Have the library start its processes warm, and none wait for the other workers of the tests."""
    lanes.NICE = 0
    for module in STARTERS:
        module.get_context = lambda _: Warm  # type: ignore[assignment, attr-defined]


def give_back() -> None:
    """Have the library start its processes as it does."""
    lanes.NICE = NICE
    for module in STARTERS:
        module.get_context = get_context  # type: ignore[attr-defined]


@contextmanager
def begun_cold() -> Iterator[None]:
    """Processes start as in use, so that they have the limits of this one."""
    starters = [module.get_context for module in STARTERS]  # type: ignore[attr-defined]
    give_back()
    try:
        yield
    finally:
        for module, starter in zip(STARTERS, starters, strict=True):
            module.get_context = starter  # type: ignore[attr-defined]


@contextmanager
def command(tokens: list[str], told: Path, **environment: str) -> Iterator[Any]:
    """The process of a `fedscape` command whose output is written to a file; it is terminated at the end."""
    warm()
    given = {**os.environ, **environment}
    process = PROCESSES.Process(target=_within, args=(given, _source(), _command, tokens, str(told)))
    process.start()
    try:
        yield process
    finally:
        process.terminate()
        process.join(30)


def printed(code: str, *arguments: str, **environment: str) -> str:
    """What code prints in a process of its own, which has imported much already.

    Raises:
        RuntimeError: With what it wrote to stderr, if it ends badly.
    """
    warm()
    with TemporaryDirectory() as place:
        told, given = Path(place) / "told", {**os.environ, **environment}
        process = PROCESSES.Process(target=_within, args=(given, _source(), _code, code, arguments, str(told)))
        process.start()
        process.join()
        if process.exitcode:
            raise RuntimeError(Path(f"{told}.errors").read_text())
        return told.read_text()


def _code(code: str, arguments: tuple[str, ...], told: str) -> None:
    _redirect(told)
    sys.argv = ["code", *arguments]
    exec(compile(code, "code", "exec"), {"__name__": "__main__"})


def _redirect(told: str) -> None:
    for number, name in ((1, told), (2, f"{told}.errors")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)


def _command(tokens: list[str], told: str) -> None:
    _redirect(told)
    from figures.cli import main

    main(tokens)
