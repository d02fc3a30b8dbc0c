"""A notebook in a real JupyterLab in a headless Chromium, on a slow machine: its explorer is drawn and is used."""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from exploring import PLOT

REPO = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
NEEDED = ("playwright", "jupyterlab", "ipykernel", "panel")
ABSENT = [name for name in NEEDED if importlib.util.find_spec(name) is None]
NAME = "01_first_run.ipynb"
SLOWER = 4
"""Times that the processor of the page is slowed down."""
LARGEST = 10_000
"""Bytes of the largest message from the page: what a person does takes hundreds, a view that is sent back 100,000s."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.timeout(900),
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; apt-get install chromium"),
    pytest.mark.skipif(bool(ABSENT), reason=f"no {', '.join(ABSENT)} here; pip install 'fedscape[notebook,test]'"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Address of a JupyterLab whose folder holds the notebook and nothing else."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copy(REPO / "notebooks" / NAME, folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {f"JUPYTER_{name}_DIR": str(folder / f".{name.lower()}") for name in ("CONFIG", "DATA", "RUNTIME")}
    told = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    told += [f"--ServerApp.root_dir={folder}", "--IdentityProvider.token=", "--LabApp.news_url="]
    path = os.pathsep.join([str(REPO), os.environ.get("PYTHONPATH", "")])
    with (folder / "lab.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *told],
            env={**os.environ, **places, "PYTHONPATH": path, "MPLBACKEND": ""},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        yield f"http://127.0.0.1:{port}"
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@pytest.fixture
def page(lab):
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        found = opened.new_page(viewport={"width": 1400, "height": 1100})
        for _ in range(120):
            try:
                found.goto(f"{lab}/lab/tree/{NAME}")
                break
            except Error:  # not listening yet
                time.sleep(0.5)
        yield found
        opened.close()


def drawn(page, label, before=None):
    """The plot whose label contains a text, once it is drawn and shows something else than before."""
    other = f"plot.traces.length > 0 && JSON.stringify(plot.traces) !== {json.dumps(before)}"
    page.wait_for_function(f"({PLOT})({label!r}).some(plot => {other})", timeout=200_000)
    return page.evaluate(f"JSON.stringify(({PLOT})({label!r})[0].traces)")


def turn_to(page, tab, view, other):
    """Click a tab, and wait for its view and for the end of the other one."""
    page.get_by_role("button", name=tab, exact=True).click()
    page.locator(f".{view}").wait_for(state="attached", timeout=120_000)
    page.locator(f".{other}").wait_for(state="detached", timeout=120_000)


def test_the_explorer_is_drawn_and_used_in_a_cell_on_a_slow_machine(page, lab, tmp_path):
    problems, asked, sent = [], [], []
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    page.on("request", lambda request: asked.append(request.url))
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=120_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_selector(".jp-OutputArea-output .view-plane", state="attached", timeout=400_000)
    assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    begun = drawn(page, "on the plane")
    keep = Path(os.environ.get("FEDSCAPE_SHOTS", tmp_path))
    page.screenshot(path=keep / "explorer-begun.png")

    page.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowLeft")
    assert drawn(page, "on the plane", begun) != begun
    page.get_by_text("round: 22").wait_for(timeout=120_000)
    for _ in range(2):
        turn_to(page, "Round", "view-round", "view-plane")
        drawn(page, "cosine")
        page.locator(".noUi-handle").first.focus()
        page.keyboard.press("ArrowLeft")
        turn_to(page, "Plane", "view-plane", "view-round")
        drawn(page, "on the plane")
    turn_to(page, "Round", "view-round", "view-plane")
    page.get_by_text("round: 20").wait_for(timeout=120_000)
    drawn(page, "cosine")
    page.screenshot(path=keep / "explorer-used.png")
    assert problems == []
    assert 0 < max(map(len, sent)) < LARGEST
    assert [url for url in asked if not url.startswith((lab, lab.replace("http", "ws"), "data:", "blob:"))] == []
