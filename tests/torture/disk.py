"""A disk that is full at the n-th operation, for every n: the last good round stays readable, the message is clear."""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torture.compared import difference
from torture.outcome import LOST, SURVIVED, Budget, Outcome
from torture.result_digest import digest
from torture.settings import DIGITS

from drift.analyses.landscapes.planes import global_line
from drift.config.load import read, validated
from drift.runs import unstored_results
from drift.runs.run import Run
from drift.simulation.simulate import simulate
from drift.simulation.verify import verify


def disk(budget: Budget) -> list[Outcome]:
    """Every write, flush and rename of a training of three rounds, then of a result, fails once."""
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        short = read(validated(DIGITS), "rounds=3", "local.epochs=1")
        whole = simulate(short, runs=place / "whole")
        right = digest(whole.cached(global_line, points=5).drop_attrs(deep=False))

        def train() -> str:
            return difference(simulate(short, runs=place / "run"), whole)

        def analyse() -> str:
            again = Run(place / "run" / whole.name).cached(global_line, points=5)
            return "" if digest(again.drop_attrs(deep=False)) == right else "the result differs"

        for kind, work in (("training", train), ("analysis", analyse)):
            step = 1 if budget.places > 4 else 5
            for number in range(1, 10_000, step):
                if budget.over:
                    break
                if kind == "training":
                    shutil.rmtree(place / "run", ignore_errors=True)
                else:
                    shutil.rmtree(place / "run" / whole.name / "results", ignore_errors=True)
                told, failed = _with_full_disk(work, place / "run", number)
                if not failed and not told:
                    break
                found.append(_after(place / "run" / whole.name, f"disk full in {kind}", told, work))
    return found


def _with_full_disk(work: Callable[[], str], place: Path, number: int) -> tuple[str, bool]:
    """What work under a disk that is full at operation `number` told, and whether it met that."""
    with full(place, number) as count, warned() as said:
        try:
            work()
        except OSError as error:
            return str(error), True
        except Exception as error:  # noqa: BLE001 - whatever else comes out is a finding
            return f"{type(error).__name__}: {error}", True
    return "; ".join(str(warning.message) for warning in said), count() >= number


@contextmanager
def warned() -> Iterator[list[warnings.WarningMessage]]:
    """All warnings; those on results that are not stored, which come once per folder, anew."""
    unstored_results._WARNED.clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield said


def _after(folder: Path, fault: str, told: str, work: Callable[[], str]) -> Outcome:
    if "No space left" not in told:
        return Outcome(fault, LOST, f"not told: {told!r}")
    if (folder / "run.json").exists():
        run = Run(folder)
        begun = any(folder.glob("rounds/*.safetensors"))  # before, there is nothing to lose, as verify says
        problems = [str(problem) for problem in verify(folder)] if begun else []
        if problems or (run.committed and run.round(-1).index != run.committed - 1):
            return Outcome(fault, LOST, "; ".join(problems) or "the last round cannot be read")
    if left := list(folder.rglob("*.part")):
        return Outcome(fault, LOST, f"left {left[0].name}")
    problem = work()  # space has been made: it goes on
    return Outcome(fault, LOST if problem else SURVIVED, problem or told)


@contextmanager
def full(place: Path, number: int, error: int = errno.ENOSPC) -> Iterator[Callable[[], int]]:
    """From the n-th write, flush or rename below a folder on, each fails; writes leave half behind."""
    done = 0

    def operation() -> bool:
        nonlocal done
        done += 1
        return done >= number

    def no_space() -> OSError:
        return OSError(error, os.strerror(error))

    real_open, real_fsync, real_replace, real_rename, real_link = io.open, os.fsync, os.replace, os.rename, os.link

    def opened(path: Any, mode: str = "r", *given: Any, **more: Any) -> Any:
        file = real_open(path, mode, *given, **more)
        name = Path(os.readlink(f"/proc/self/fd/{path}")) if isinstance(path, int) else Path(path)  # or without a name
        writes = "r" not in mode or isinstance(path, int)
        inside = place in name.parents and not str(path).endswith(".lock")
        return _Full(file, operation, no_space) if inside and "b" in mode and writes else file

    def fsync(descriptor: int) -> None:
        if operation():
            raise no_space()
        real_fsync(descriptor)

    def renaming(real: Callable[..., None]) -> Callable[..., None]:
        def renamed(source: Any, target: Any, **more: Any) -> None:
            if place in Path(target).parents and operation():
                raise no_space()
            real(source, target, **more)

        return renamed

    def link(source: Any, target: Any, **more: Any) -> None:
        if operation():
            raise no_space()
        real_link(source, target, **more)

    try:
        io.open = builtins.open = opened
        os.fsync, os.replace, os.rename = fsync, renaming(real_replace), renaming(real_rename)
        os.link = link
        yield lambda: done
    finally:
        io.open = builtins.open = real_open
        os.fsync, os.replace, os.rename, os.link = real_fsync, real_replace, real_rename, real_link


class _Full:
    """A file whose writes count as operations and fail when the disk is full."""

    def __init__(self, file: Any, operation: Callable[[], bool], error: Callable[[], OSError]) -> None:
        self._file, self._operation, self._error = file, operation, error

    def write(self, data: Any) -> int:
        """Write, or half of it and fail."""
        if self._operation():
            self._file.write(memoryview(data).cast("B")[: memoryview(data).nbytes // 2])
            raise self._error()
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _Full:
        self._file.__enter__()
        return self

    def __exit__(self, *given: Any) -> None:
        self._file.__exit__(*given)
