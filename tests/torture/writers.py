"""Every program that writes files killed, on a full disk, in a folder that cannot be written, and beside its twin."""

from __future__ import annotations

import errno
import resource
import signal
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event as Begun
from pathlib import Path

import numpy as np
import torch
from torture.disk import full, warned
from torture.kills import begun, killed
from torture.outcome import LOST, SURVIVED, Budget, Outcome
from torture.programs import PROGRAMS, Program, prepared, reset
from warm import warm

from drift.store.locks import Busy


def writers(budget: Budget) -> list[Outcome]:
    """Each fault under each program, then the program once more: it ends with what it writes undisturbed."""
    found: list[Outcome] = []
    warm()
    with tempfile.TemporaryDirectory() as folder:
        place = prepared(Path(folder))
        programs = [program for program in PROGRAMS if budget.kills > 3 or not program.long]
        for number, program in enumerate(programs):
            until = time.monotonic() + (budget.until - time.monotonic()) / (len(programs) - number)
            own = Budget(budget.seed, max(1, budget.kills // 10), budget.places, until)
            reset(place)
            first = time.monotonic()
            program.work(place)
            seconds, right = time.monotonic() - first, program.found(place)
            for fault, told in _faults(program, place, seconds, own):
                problem = told or program.wrong(place)
                if not problem:
                    _go_on(program, place)
                    problem = "" if program.found(place) == right else f"{program.found(place)}, not {right}"
                found.append(Outcome(f"{fault} {program.name}", LOST if problem else SURVIVED, problem))
                reset(place)
    return found


def _faults(program: Program, place: Path, seconds: float, budget: Budget) -> Iterator[tuple[str, str]]:
    """What was done, and what is wrong with what was told; each time from the beginning."""
    reset(place)
    yield "folder not writable:", _refused(program, place, 1, errno.EROFS)
    source = np.random.default_rng(budget.seed)
    for number in range(max(budget.kills, 4 * budget.places)):
        if number and budget.over:
            return
        if number < budget.kills:
            killed(float(source.uniform(0, seconds)), work, program.name, place)
            yield "kill -9 in", ""
        if program.alone:
            yield "disk full in", _refused(program, place, 2 + number, errno.ENOSPC)
        if number == 0:
            yield "two processes:", _twins(program, place)


def _go_on(program: Program, place: Path) -> None:
    """Do what is left, once the workers of a killed process have noticed that it is gone."""
    for left in reversed(range(100)):
        try:
            program.work(place)
            break
        except OSError as reason:
            if "another process" not in str(reason) or not left:
                raise
        time.sleep(0.2)


def work(begun: Begun, name: str, place: Path) -> None:
    """A program in a process of its own; one that finds its twin at work says so and ends."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    begun.set()
    try:
        next(program for program in PROGRAMS if program.name == name).work(place)
    except (Busy, OSError) as reason:
        raise SystemExit(0 if "another" in str(reason) else 1) from reason


def _twins(program: Program, place: Path) -> str:
    children = [begun(work, program.name, place) for _ in range(2)]
    for child in children:
        child.join()
    codes = [child.exitcode for child in children]
    return "" if codes == [0, 0] else f"exit codes {codes}"


def _refused(program: Program, place: Path, number: int, error: int) -> str:
    """What is wrong with the message of a program that cannot write from an operation on; "" if it names the fault."""
    if not program.alone:
        return _limited(program, place)
    with full(place, number, error) as count, warned() as said:
        try:
            program.work(place)
        except (OSError, ValueError) as reason:
            named = any(word in str(reason) for word in ("No space left", "Read-only", "cannot write"))
            return "" if named else f"told {reason}"
        except Exception as reason:  # noqa: BLE001 - whatever else comes out is a finding
            return f"{type(reason).__name__}: {reason}"
        told = any("not stored" in str(warning.message) for warning in said)
        return "" if told or count() < number else "nothing was told"


def _limited(program: Program, place: Path) -> str:
    """The same for a program whose processes write: no file may have more than 100 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        program.work(place)
    except OSError as reason:
        return "" if "File too large" in str(reason) else f"told {reason}"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return "nothing was told"
