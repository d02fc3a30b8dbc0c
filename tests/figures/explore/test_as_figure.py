"""A figure of the gallery: command line and Python lines make the same numbers."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
import tiny

from figures.commands.options import arguments
from figures.explore.work.figure_command import FigureCommand, toml_value

pytestmark = pytest.mark.usefixtures("not_laid_out")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("figure", ["clients-round", "samples-round"])
def test_command_line_and_python_lines_write_the_same_table(run, figure, fedscape, tmp_path, monkeypatch):
    client = int(run.round(1).ids[0])
    own = {"clients": [client]} if figure == "clients-round" else {"model": f"client {client}", "groups": 3}
    request = FigureCommand.from_runs(figure, [run], {"round": 1, **own})
    monkeypatch.chdir(tmp_path)
    code, _, errors = fedscape(*shlex.split(request.command())[1:])
    assert (code, "Traceback" in errors) == (0, False), errors
    (tmp_path / "out").rename(tmp_path / "by command")
    exec(compile(request.python(), "lines", "exec"), {})
    (tmp_path / "out").rename(tmp_path / "by python")
    tables = [(tmp_path / f"{by}/figures/{figure}.csv").read_bytes() for by in ("by command", "by python")]
    assert tables[0] == tables[1]
    assert f"{client}".encode() in tables[0]
    for kind in ("pdf", "png", "svg"):
        assert (tmp_path / f"by command/figures/{figure}.{kind}").stat().st_size > 1000


VALUES = [
    3,
    -0.25,
    1e-7,
    True,
    "test",
    "client 3",
    "3",
    "true",
    " spaced",
    "",
    'say "hi"',
    "été\n",
    [1, 2],
    ["client 3", "start"],
    [0.5, -1.0],
    {"a b": [1.5, "x"], "c": False},
    float("inf"),
    [],
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_options_survive_the_command_line(value):
    (word,) = shlex.split(shlex.join([f"option={toml_value(value)}"]))
    assert arguments([word]) == {"option": value}


def test_values_that_no_option_takes_are_refused():
    with pytest.raises(TypeError, match="give a number, a text"):
        toml_value(np.zeros(2))


def test_paths_data_and_tasks_are_in_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    request = FigureCommand(
        "clients-round", (tmp_path / "runs" / "a b", Path("/else")), {}, Path("/my data"), own_task=True
    )
    words = shlex.split(request.command())
    assert words[:6] == ["fedscape", "figures", "draw", "clients-round", "runs/a b", "/else"]
    assert words[6:] == ["--data", "/my data", "--task", "FILE.py:FUNCTION"]
    assert "drift.open('runs/a b', data='/my data', task=\"FILE.py:FUNCTION\")" in request.python()
