"""Runs that several tests of pictures look at, trained once in a session."""

import os
import shutil
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import tiny
from browsing import chromium
from gallery_runs import QUICK, every_kind, suited

from drift.store import locks
from figures import cli, gallery
from figures.page.report import report
from figures.texts import console


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """A folder of this worker by its name, with what the first worker that asked for it made there."""

    def folder(name, make):
        own = tmp_path_factory.mktemp(name)
        base = tmp_path_factory.getbasetemp()
        made = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"{name}.made"
        with locks.lock_result(made):
            if not made.exists():
                make(own)
                shutil.copytree(own, made.with_suffix(".copied"))
                made.with_suffix(".copied").rename(made)
                return own
        return Path(shutil.copytree(made, own, dirs_exist_ok=True))

    return folder


def _runs(folder):
    methods = (["method=fedavg"], ["method=fedlaw", "method.server_epochs=3", "method.server_lr=0.1"])
    return [tiny.trained(folder, *method, f"seed={seed}") for method in methods for seed in (5, 6)]


@pytest.fixture(scope="session")
def runs(once):
    """FedAvg and FedLAW with seeds 5 and 6."""
    return _runs(once("runs", _runs))


@pytest.fixture(scope="session")
def kinds(once):
    """Runs of every kind that figures take; what one test computes of them, the others read."""
    return every_kind(once("kinds", every_kind))


@pytest.fixture(scope="session")
def numbers(kinds):
    """Data of a figure by its name, from those of these runs that suit it; computed once, not to be changed."""
    return cache(lambda name: gallery.load(name).data(suited(name, kinds), **QUICK.get(name, {})))


@pytest.fixture(scope="session")
def whole_report(runs, once):
    """The report of these runs, as a file in a folder of its own."""
    return once("report", lambda folder: report(runs, folder / "deep" / "r.html", points=4)) / "deep" / "r.html"


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium for the tests of one file."""
    with chromium() as started:
        yield started


@pytest.fixture
def fedscape(capsys, tmp_path, monkeypatch):
    """Run the command line in an empty folder; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("warnings.showwarning", None)

    def call(*tokens):
        with pytest.raises(SystemExit) as stop:
            cli.main([str(token) for token in tokens])
        told = capsys.readouterr()
        return stop.value.code, told.out, told.err

    return call


@pytest.fixture
def file(tmp_path):
    """TOML file of a small experiment."""
    return tiny.written(tmp_path)


@pytest.fixture
def bars(monkeypatch):
    """Every (label, done, total) of the bars that are asked for, as they change; nothing is drawn."""
    from rich.progress import Progress

    seen = []

    class Watched(Progress):
        def update(self, task_id, **changes):
            super().update(task_id, **changes)
            task = self.tasks[task_id]
            seen.append((task.description, task.completed, task.total))

    @contextmanager
    def watched():
        with Watched(disable=True) as drawn:
            yield drawn

    monkeypatch.setattr(console, "bars", watched)
    return seen
