"""The explorer for tests: `fedscape explore` as a process of its own, and its page."""

import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import warm

VIEW = "document.getElementById('stage').view"


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


def slide(page):
    """Drag the first slider of the weights."""
    slider = page.locator("#stage .weights input[type=range]").first
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + box["height"] / 2, steps=6)
    page.mouse.up()
