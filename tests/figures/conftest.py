"""Runs that several tests of pictures look at, trained once in a session."""

import pytest
import tiny

from figures import cli
from figures.report import report


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """FedAvg and FedLAW with seeds 5 and 6."""
    folder = tmp_path_factory.mktemp("runs")
    methods = (["method=fedavg"], ["method=fedlaw", "method.server_epochs=3", "method.server_lr=0.1"])
    return [tiny.trained(folder, *method, f"seed={seed}") for method in methods for seed in (5, 6)]


@pytest.fixture(scope="session")
def whole_report(runs, tmp_path_factory):
    """The report of these runs, as a file in a folder of its own."""
    return report(runs, tmp_path_factory.mktemp("report") / "deep" / "r.html", points=4)


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
