"""Pictures of explorer and report for README and docs, from runs in a paper's own setting.

    python docs/_ext/explorer_pictures.py RUNS [NAME ...]

starts `fedscape explore` on a folder with the runs of FedAvg and IMA of one seed of `ima-table1-fmnist-shards2`
(`fedscape reproduce --paper ima`), opens views in headless Chromium and writes docs/images/explore-NAME.png; `report`
is the beginning of the page that `fedscape report` writes of these runs, as docs/images/report.png.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
WIDE, HIGH = 1380, 860
PICTURES = {
    "plane": ("view=plane&second=weights&round=150", {}),
    "runs": ("view=runs&number=accuracy", {}),
    "round": ("view=round&round=150", {}),
    "samples": ("view=samples&round=150&truth=6", {}),
    "drift": ("view=drift&second=path&round=150", {"color_scheme": "dark"}),
}
"""Name: selection, and options of the browser's page."""
SETTLED = "() => document.querySelector('html').dataset.explorer && !document.querySelector('progress')"


def main(runs: Path, *names: str) -> None:
    """Write the pictures of some names, by default of all."""
    wanted = names or (*PICTURES, "report")
    flags = ["--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        if views := {name: PICTURES[name] for name in wanted if name in PICTURES}:
            explored(browser, runs, views)
        if "report" in wanted:
            reported(browser, runs)
        browser.close()


def explored(browser: Browser, runs: Path, views: Mapping[str, tuple[str, dict[str, Any]]]) -> None:
    """Pictures of the explorer."""
    command = [sys.executable, "-m", "figures.cli", "explore", str(runs), "--no-browser"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().strip() if server.stdout else ""
    try:
        for name, (query, options) in views.items():
            page = browser.new_page(viewport={"width": WIDE, "height": HIGH}, **options)
            page.set_default_timeout(180_000)
            page.goto(f"{address}&{query}")
            page.wait_for_function(SETTLED)
            page.wait_for_timeout(90_000)  # grids are coarse at first and refined
            page.screenshot(path=IMAGES / f"explore-{name}.png")
            page.close()
    finally:
        server.terminate()


def reported(browser: Browser, runs: Path) -> None:
    """Picture of the report."""
    with TemporaryDirectory() as scratch:
        out = Path(scratch) / "report.html"
        subprocess.run([sys.executable, "-m", "figures.cli", "report", str(runs), "-o", str(out)], cwd=ROOT, check=True)
        page = browser.new_page(viewport={"width": WIDE, "height": 2 * HIGH})
        page.goto(out.as_uri())
        page.wait_for_timeout(10_000)
        page.screenshot(path=IMAGES / "report.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
