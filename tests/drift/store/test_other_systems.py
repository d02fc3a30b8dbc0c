"""What Linux has and Windows or macOS lack is not needed: a process without it trains, analyses, draws and resumes."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.seconds

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


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("system", ["win32", pytest.param("darwin", marks=pytest.mark.slow)])
def test_every_name_exists_on_other_systems(system, tmp_path):
    """By the stubs of the standard library, which state what each system has; what is asked for by hasattr may lack."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--platform", system, "--cache-dir", tmp_path, "--no-warn-unreachable"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in told.stdout.splitlines() if ": error:" in line]
    assert [line for line in errors if "PipeConnection" not in line] == []  # Windows' name for an end of a pipe
    assert "checked" in told.stdout or "no issues found" in told.stdout, told.stdout + told.stderr


SOURCES = [path for package in ("landscape", "drift", "figures") for path in (ROOT / package).rglob("*.py")]


def calls(pattern):
    """Every call in the files of the packages that have a text, with the place where it is."""
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    return [
        (node, f"{path.relative_to(ROOT)}:{node.lineno}")
        for path, text in texts.items()
        if re.search(pattern, text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
    ]


def test_text_files_name_their_encoding():
    """On Windows it is another one by default."""
    for node, place in calls(r"\bopen\(|(read|write)_text\(|\brun\("):
        words = {word.arg: word.value for word in node.keywords}
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("read_text", "write_text") or (isinstance(node.func, ast.Name) and name == "open"):
            mode = words.get("mode", node.args[1] if name == "open" and len(node.args) > 1 else None)
            binary = isinstance(mode, ast.Constant) and "b" in mode.value
            variable = mode is not None and not isinstance(mode, ast.Constant)  # its type is Literal["xb", "r+b"]
            assert "encoding" in words or binary or variable, place
        assert "encoding" in words or not {"text", "universal_newlines"} & words.keys() or name != "run", place


def test_stored_names_have_slashes():
    """A path as text has backslashes on Windows, and a run or an import from there would name other files."""
    for node, place in calls(r"relative_to\("):
        if isinstance(node.func, ast.Name) and node.func.id == "str" and "explore" not in place:
            called = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
            assert not any(isinstance(part, ast.Attribute) and part.attr == "relative_to" for part in called), place


def test_only_a_free_name_is_taken_by_rename():
    """On Windows, `rename` refuses a name that is taken; `os.replace` does not."""
    renaming = {
        place.partition(":")[0]
        for node, place in calls(r"\.rename\(")
        if isinstance(node.func, ast.Attribute)
        and node.func.attr == "rename"
        and node.args
        and not isinstance(node.args[0], ast.Dict | ast.DictComp)  # which renames variables of a dataset
    }
    free = {"drift/simulation/repair.py", "figures/commands/export.py"}
    assert renaming == free


def test_processes_are_never_forked():
    """Windows has no fork, and a fork of a process with threads may hang."""
    assert len(SOURCES) > 100
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for name in ("fcntl", "resource", "pwd", "grp", "termios", "msvcrt"):
            assert not re.search(rf"^\s*(import {name}\b|from {name} import)", text, re.MULTILINE), path
        assert not re.search(r"signal\.SIG(KILL|ALRM|HUP|USR)|\"/(tmp|dev)/", text), path
        # on Linux alone, copies of a process that has loaded torch and started no thread
        text = text.replace('get_context("forkserver" if FORKED else "spawn")', 'get_context("spawn")')
        assert "os.fork" not in text and 'get_context("fork' not in text, path
        if "import multiprocessing" in text or "from multiprocessing" in text:
            assert "get_context" not in text or 'get_context("spawn")' in text, path
            assert "import Process" not in text and "multiprocessing.Process" not in text, path
        assert "ProcessPoolExecutor(" not in text or "mp_context=" in text, path
