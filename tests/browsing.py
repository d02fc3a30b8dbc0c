"""Headless Chromium for tests of pages."""

import importlib.util
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-compositing",  # pages are put together without OpenGL, which here is computed; WebGL stays
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; apt-get install chromium"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="no playwright here; pip install it"),
]
DESK = {"width": 1200, "height": 900}
READING = {"width": 900, "height": 700}
"""Of reports, whose surfaces take the longer to paint the larger they are."""


@contextmanager
def chromium():
    """A started browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def watched(address):
    """A report that was opened and drew all its figures, what it asked for (not its own workers), and its complaints.

    All figures count as near the screen, so that a change draws each of them anew.
    """
    told = {"requests": [], "errors": []}
    with chromium() as browser:
        page = browser.new_page(viewport=READING)
        page.on("request", lambda request: request.url.startswith("blob:") or told["requests"].append(request.url))
        page.on("console", lambda line: told["errors"].append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda problem: told["errors"].append(str(problem)))
        page.goto(address)
        page.evaluate("unpacking")
        page.evaluate("watcher.disconnect(); plots.forEach(plot => near.add(plot))")
        page.evaluate("Promise.all(plots.map(draw)).then(() => 0)")
        yield page, told
