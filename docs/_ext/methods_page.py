"""The page of methods is written from the methods themselves at every build, so that a new one is on it."""

from __future__ import annotations

import json
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from benchmarks._methods_page import page

NUMBERS = Path(__file__).parents[1] / "results" / "methods.json"


def write(app: Sphinx, document: str, source: list[str]) -> None:
    """In place of the stored page: what its command would write now."""
    if document == "methods":
        source[0] = page(json.loads(NUMBERS.read_text(encoding="utf-8")))


def outdated(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """The page is read at every build, whether its file changed or not."""
    return ["methods"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Give Sphinx the page."""
    app.connect("source-read", write)
    app.connect("env-get-outdated", outdated)
    return {"parallel_read_safe": True}
