"""Settings that every test shares: one thread, the same draws in every session, no window."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
sys.dont_write_bytecode = False  # else each run rewrites the assertions of all modules, half of the time of collection
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


LONG = re.compile(
    r"_browser\.py|tests/(outside|torture|figures/page)/|test_(drawings|docs|notebooks|howtos|readme|cli_processes)\.py|"
    r"test_(first_contact|same_bytes|caption|peak_memory|other_systems|server_state|stopped_runs|conformance)\.py|"
    r"test_(evidence|as_figure|campaign|memory_budget|crews|jobs|guard|size|gallery_\w+|minima)\.py|"
    r"test_(batch_statistics|interventions|replayed_rounds|diagnose|zoo|cross|groups|large_cohort)\.py"
)
"""Modules of few tests that take long; they begin first, so that no worker waits for one of them at the end."""


def pytest_sessionstart(session):
    """A process that runs tests imports what they need; that which hands them out to workers does not."""
    if getattr(session.config.option, "dist", "no") != "no" and not hasattr(session.config, "workerinput"):
        return
    import torch
    from hypothesis import settings

    settings.register_profile("fedscape", deadline=None, max_examples=25, derandomize=True, database=None)
    settings.load_profile("fedscape")
    torch.set_num_threads(1)
    torch.set_deterministic_debug_mode("error")


def pytest_collection_modifyitems(items):
    counts = Counter(item.path for item in items)
    items.sort(key=lambda item: (not LONG.search(item.path.as_posix()), -counts[item.path]))


@pytest.fixture(autouse=True, scope="session")
def _warm_processes():
    """Processes of the library are forked from one that has imported what they need."""
    import warm

    warm.take_over()
    yield
    warm.give_back()


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk():
    """Files are not flushed to the disk, which takes as long as a tiny run; processes of their own flush them."""
    real = os.fsync
    os.fsync = lambda descriptor: None
    yield
    os.fsync = real


@pytest.fixture
def cold(_warm_processes):
    """Processes start as in use."""
    import warm

    with warm.begun_cold():
        yield


@pytest.fixture
def not_laid_out(monkeypatch):
    """Figures are drawn without the layout of their panels."""
    from blocks import leave_out_layout

    leave_out_layout(monkeypatch)


@pytest.fixture(autouse=True)
def _same_global_draws():
    """A test gives the same result alone, in any order and on any worker."""
    import numpy as np
    import torch

    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - libraries under test may draw from the global generator


if os.environ.get("FEDSCAPE_NO_SKIPS"):  # tests/extras.py: what is tested there is installed

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item, call):
        return _no_skip((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(collector):
        return _no_skip((yield))


def _no_skip(report):
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"skipped: {report.longrepr}"
    return report
