"""Pictures of the explorer for README and docs/explore.md, from runs in a paper's own setting.

    python docs/_ext/explorer_pictures.py RUNS

starts `fedscape explore` on a folder with the runs of FedAvg and IMA of seed 0 of the item `ima-table1-fmnist-shards2`
(`fedscape reproduce --paper ima`), opens views in headless Chromium and writes docs/images/explore-NAME.png.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

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


def main(runs: Path) -> None:
    """Write the pictures."""
    command = [sys.executable, "-m", "figures.cli", "explore", str(runs), "--no-browser"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().strip() if server.stdout else ""
    flags = ["--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    try:
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
            for name, (query, options) in PICTURES.items():
                page = browser.new_page(viewport={"width": WIDE, "height": HIGH}, **options)
                page.set_default_timeout(180_000)
                page.goto(f"{address}&{query}")
                page.wait_for_function(SETTLED)
                page.wait_for_timeout(90_000)  # grids are coarse at first and refined
                page.screenshot(path=IMAGES / f"explore-{name}.png")
                page.close()
            browser.close()
    finally:
        server.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
