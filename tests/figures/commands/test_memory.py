"""--memory limits the client models of every command that computes, and is refused where it is no size."""

import os

import pytest
import tiny

from drift.diagnosis import diagnose
from drift.simulation import compare
from drift.store import memory_budget
from figures.commands import _draw_files, paper_set
from figures.page import report

COMPUTING = {
    "draw": (_draw_files, "draw_one", ["figures", "draw", "accuracy-rounds", "RUN"]),
    "paper": (paper_set, "draw_paper", ["figures", "draw", "RUN", "--paper", "ima"]),
    "gallery": (_draw_files, "draw_all", ["figures", "gallery", "RUN"]),
    "publish": (report, "report", ["publish", "RUN"]),
    "compare": (compare, "train_all", ["compare", "FILE", "--methods", "fedavg", "--seeds", "0"]),
    "diagnose": (diagnose, "diagnose", ["diagnose", "RUN"]),
}


class Reached(LookupError):
    """The work of a command began."""


@pytest.mark.parametrize("name", COMPUTING)
def test_commands_compute_within_the_memory_that_is_stated(fedscape, file, tmp_path, monkeypatch, name):
    module, function, words = COMPUTING[name]
    places = {"RUN": str(tiny.trained(tmp_path / "runs", "rounds=1").folder), "FILE": str(file)}
    seen = []

    def work(*_, **__):
        seen.append(memory_budget.budget())
        raise Reached("enough.")

    monkeypatch.setattr(module, function, work)
    call = [places.get(word, word) for word in words]
    assert fedscape(*call, "--memory", "123MB")[0] == 2
    assert seen == [123_000_000]
    assert memory_budget.VARIABLE not in os.environ


@pytest.mark.parametrize("size", ["apples", "0", "0GB", "-1GB", "nan"])
def test_what_is_no_size_is_one_line(fedscape, tmp_path, size):
    run = tiny.trained(tmp_path / "runs", "rounds=1").folder
    code, _, err = fedscape("publish", str(run), f"--memory={size}")
    assert code == 2
    assert "give a size above 0, such as" in err
    assert len(err.strip().splitlines()) == 1
