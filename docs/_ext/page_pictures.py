"""Pictures of the explorer and of the report for README and docs, from runs in a paper's own setting.

    python docs/_ext/page_pictures.py RUNS explore
    python docs/_ext/page_pictures.py RUNS report

The first starts `fedscape explore` on RUNS, a folder with the runs of FedAvg and IMA of seed 0 of the item
`cross-fmnist-mlp-shards2` (`fedscape reproduce --paper cross`). The second starts `fedscape publish` on RUNS, those of
four methods that `fedscape demo` trains. Pages are opened in headless Chromium, and what they show goes to
docs/images/explore-NAME.png and docs/images/report-NAME.png.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
WIDE, HIGH = 1020, 800
"""A small window, as a page of the docs has 640 pixels for it; the reasons lie below its first screen."""
VIEWS = {
    "samples": ("round=117&view=map&model=end", {"viewport": {"width": 760, "height": 660}}),
    "drift": ("round=117&view=path&below=client_variance", {"color_scheme": "dark"}),
    "plane": ("round=117&view=map", {}),
}
"""Name: selection of the explorer, and options of the browser's page; the last is at rest, as all its work is done."""
SECTIONS = {"landscape": "#runs=fedavg,ima&view=relief"}
"""Name: place in the report, or selection of its stage."""
SETTLED = """() => { const view = document.getElementById("stage").view;
    return view && !view.jobs.length && [...view.asks.entries.values()].every((one) => !one.pending); }"""
FEDSCAPE = (sys.executable, "-m", "figures.cli")


def explorer(runs: Path) -> None:
    """Write the pictures of the explorer."""
    command = [*FEDSCAPE, "explore", str(runs), "--no-browser"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().strip() if server.stdout else ""
    try:
        with _browser() as browser:
            for name, (query, options) in VIEWS.items():
                page = browser.new_page(**{"viewport": {"width": WIDE, "height": HIGH}, **options})
                page.set_default_timeout(180_000)
                page.goto(f"{address}#{query}")
                page.wait_for_timeout(3_000)
                page.wait_for_function(SETTLED)
                if name == "samples":
                    page.locator("#stage .samples").evaluate("one => one.scrollIntoView()")  # with its head
                page.wait_for_selector("#stage .diagnosis li")
                page.wait_for_timeout(1_000)
                page.wait_for_function(SETTLED)
                page.screenshot(path=IMAGES / f"explore-{name}.png")
                page.close()
    finally:
        server.terminate()


def report(runs: Path) -> None:
    """Write the pictures of the report."""
    with TemporaryDirectory() as folder, _browser() as browser:
        path = Path(folder) / "report.html"
        subprocess.run([*FEDSCAPE, "publish", str(runs), "--out", str(path), "--workers", "2"], cwd=ROOT, check=True)
        page = browser.new_page(viewport={"width": WIDE, "height": HIGH})
        for name, place in SECTIONS.items():
            page.goto(f"file://{path}{place}")
            page.wait_for_timeout(5_000)  # its plots are drawn when they come into sight
            page.screenshot(path=IMAGES / f"report-{name}.png")


@contextmanager
def _browser() -> Iterator[Any]:
    flags = ["--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        yield browser
        browser.close()


if __name__ == "__main__":
    {"explore": explorer, "report": report}[sys.argv[2]](Path(sys.argv[1]))
