"""A cache folder for decoded images per test."""

from __future__ import annotations

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of its own for every test, and no data folder from outside."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FEDSCAPE_CACHE", str(folder))
    monkeypatch.delenv("FEDSCAPE_DATA", raising=False)
    return folder
