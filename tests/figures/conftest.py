"""Runs that several tests of pictures look at, trained once in a session."""

import pytest
import tiny

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
