"""`fedscape new` writes a plug-in of each kind that passes its own test and works in the command that it names."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from kinds import one_of_each

import drift
from drift.plugins import trust
from figures.cli import main
from figures.commands.new import COMMANDS


@pytest.fixture
def fedscape(tmp_path, monkeypatch, capsys):
    """The command in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(trust.TRUSTED, "")

    def call(*tokens):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(token) for token in tokens])
        told = capsys.readouterr()
        return stop.value.code, told.out, told.err

    return call


@pytest.mark.parametrize("kind", one_of_each(COMMANDS, ["method"]))
def test_what_is_written_passes_its_test_and_works_in_the_next_command(fedscape, tmp_path, kind, monkeypatch):
    name = f"my_own_{kind}"
    code, out, err = fedscape("new", kind, f"my-own-{kind}")
    assert code == 0 and out.split() == [f"{name}.py", f"test_{name}.py"], err
    for path in out.split():
        assert not re.search(r"\b(NAME|CLASS|FILE)\b", Path(path).read_text())
    monkeypatch.syspath_prepend(tmp_path)
    checks = [check for title, check in runpy.run_path(f"test_{name}.py").items() if title.startswith("test_")]
    assert checks
    for check in checks:
        check()
    shown = shlex.split(err.strip().splitlines()[-1])
    assert shown[0] == "fedscape"
    if kind in ("figure", "analysis"):
        assert fedscape("train", "digits-shards2", "--set", "method=fedavg", "rounds=2")[0] == 0
        shown = [str(next(Path("runs").glob("*-*"))) if token == "RUN" else token for token in shown]
    code, out, err = fedscape(*shown[1:])
    assert code == 0, err
    if kind == "analysis":
        assert "spread" in out
    sys.modules.pop(name, None)


def test_nothing_is_replaced_and_names_are_checked(fedscape, tmp_path):
    (tmp_path / "mine.py").write_text("kept")
    code, _, err = fedscape("new", "method", "mine")
    assert code == 2 and "mine.py exists already and is not replaced" in err
    assert (tmp_path / "mine.py").read_text() == "kept" and not (tmp_path / "test_mine.py").exists()
    for name in ("3d", "class", "a b", "_x"):
        code, _, err = fedscape("new", "method", name)
        assert code == 2 and "is not a name for a Python file" in err
    code, _, err = fedscape("new", "method", "other", "--folder", "nowhere")
    assert code == 2 and "there is no folder nowhere" in err
    code, _, err = fedscape("new", "method", "other", "--folder", Path(drift.__file__).parent / "methods")
    assert code == 2 and "belongs to fedscape; choose a --folder of your own, or follow CONTRIBUTING.md" in err
    code, _, err = fedscape("new", "methods", "other")
    assert code == 2 and "method" in err
