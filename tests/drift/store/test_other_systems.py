"""What Linux has and Windows or macOS lack is not needed: a process without it trains, analyses, draws and resumes."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

ROOT = Path(__file__).resolve().parents[3]

WITHOUT = """
import os, sys, types
import multiprocessing.connection, multiprocessing.spawn, subprocess  # which know which system this is
import torch

for name in {absent!r}:
    delattr(os, name) if hasattr(os, name) else None
if "fcntl" in {modules!r}:
    real = __import__("fcntl")

    def locking(number, mode, size):
        try:
            real.flock(number, real.LOCK_EX | real.LOCK_NB)
        except BlockingIOError as reason:
            raise PermissionError(13, "Permission denied") from reason

    sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
for name in {modules!r}:
    sys.modules[name] = None
"""
"""Takes away what a system lacks; `msvcrt` stands for Windows' own locks."""

SYSTEMS = {
    "macOS": (("memfd_create", "sched_getaffinity", "sched_setaffinity"), ()),
    "Windows": (
        *(
            (
                "memfd_create",
                "sched_getaffinity",
                "sched_setaffinity",
                "O_NOFOLLOW",
                "nice",
                "fork",
                "pread",
                "preadv",
                "pwrite",
                "killpg",
                "getloadavg",
                "getuid",
                "geteuid",
            ),
        ),
        ("fcntl",),
    ),
}

USE = """
if __name__ == "__main__":
    import drift
    import figures
    from drift.store import locks

    run = drift.simulate("tiny.toml", runs="runs", workers=2)
    assert run.rounds() == [0, 1, 2]
    run.cached(drift.coherence)
    assert all(path.exists() for path in figures.draw("norms-rounds", [run], "drawn"))
    with locks.locked(run.folder):
        try:
            drift.simulate("tiny.toml", "rounds=4", runs="runs")
            with locks.locked(run.folder):
                raise SystemExit("two processes may write")
        except locks.Busy as busy:
            print("refused:", busy)
    print("done", len(drift.open(run.folder).round(-1).ids))
"""


@pytest.mark.parametrize("system", [pytest.param("macOS", marks=pytest.mark.slow), "Windows"])
def test_a_run_is_trained_in_two_processes_locked_and_analysed(tmp_path, system):
    absent, modules = SYSTEMS[system]
    (tmp_path / "tiny.toml").write_text(tiny.TOML)
    (tmp_path / "use.py").write_text(WITHOUT.format(absent=absent, modules=modules) + USE)
    (tmp_path / "temporary").mkdir()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path / "temporary")}
    told = subprocess.run(
        [sys.executable, "use.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr[-3000:]
    assert "refused:" in told.stdout and "done" in told.stdout
    assert not list((tmp_path / "temporary").iterdir()), "shared memory is removed"


def test_text_files_name_their_encoding():
    """On Windows it is another one by default."""
    for package in ("landscape", "drift", "figures"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                called = node.func if isinstance(node, ast.Call) else None
                if isinstance(called, ast.Attribute) and called.attr in ("read_text", "write_text"):
                    assert "encoding" in [word.arg for word in node.keywords], f"{path}:{node.lineno}"


def test_processes_are_never_forked():
    """Windows has no fork, and a fork of a process with threads may hang."""
    sources = [path for package in ("landscape", "drift", "figures") for path in (ROOT / package).rglob("*.py")]
    assert len(sources) > 100
    for path in sources:
        text = path.read_text(encoding="utf-8")
        assert "os.fork" not in text and 'get_context("fork' not in text, path
        if "import multiprocessing" in text or "from multiprocessing" in text:
            assert "get_context" not in text or 'get_context("spawn")' in text, path
            assert "import Process" not in text and "multiprocessing.Process" not in text, path
        assert "ProcessPoolExecutor(" not in text or "mp_context=" in text, path
