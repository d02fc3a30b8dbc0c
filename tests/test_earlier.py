"""Modules that moved are found by their earlier paths, with a warning that names the new one."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import drift
import figures
import landscape
from landscape import earlier

ROOT = Path(__file__).resolve().parents[1]
ROWS = [row for package in (landscape, drift, figures) for row in earlier.moved_modules(package.__name__).items()]


@pytest.mark.parametrize(("before", "now"), ROWS)
def test_a_module_is_found_by_its_earlier_path(before, now):
    if now == "drift.engines.worker_plugin":
        pytest.importorskip("distributed")
    sys.modules.pop(before, None)
    with pytest.warns(DeprecationWarning, match=rf"{before} is now {now}"):
        assert importlib.import_module(before) is importlib.import_module(now)


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("landscape.results", "load"),
        ("landscape.sweep", "Sweep"),
        ("drift.store", "read_round"),
        ("drift.diagnosis", "Diagnosis"),
    ],
)
def test_a_room_that_was_a_module_has_its_names(package, name):
    with pytest.warns(DeprecationWarning, match=rf"{package}\.{name} is now {package}\."):
        assert callable(getattr(importlib.import_module(package), name))


def test_the_explorer_s_room_has_the_names_of_the_module_before_it():
    with pytest.warns(DeprecationWarning, match=r"figures\.explore\.surface3d is now figures\.interactive\."):
        assert importlib.import_module("figures.explore").surface3d is figures.surface3d


def test_the_tables_are_read_only_where_an_earlier_path_is_asked_for():
    code = "import landscape, drift, figures; from landscape import earlier; print(earlier.moved_modules.cache_info())"
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "misses=0" in printed.stdout
