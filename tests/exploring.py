"""The explorer for tests: `fedscape explore` as a process of its own, and its page."""

import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import warm


@contextmanager
def exploring(*arguments, **environment):
    """The address that `fedscape explore ARGUMENTS` writes, with its token, while it runs."""
    tokens = ["--debug", "explore", *map(str, arguments), "--no-browser"]
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        with warm.command(tokens, told, OMP_NUM_THREADS="1", **environment) as server:
            while not (told.exists() and told.read_text().endswith("\n")) and server.is_alive():
                time.sleep(0.02)
            address = told.read_text().strip()
            assert address.startswith("http://"), told.with_name("told.errors").read_text()
            yield address


IDLE = """() => { const view = document.getElementById('stage').view;
    return view && !view.due && !view.tween && [...view.asks.entries.values()].every(one => !one.pending); }"""


def idle(page):
    """Wait until all that the page asked for is answered and drawn."""
    page.wait_for_timeout(60)
    page.wait_for_function(IDLE)
