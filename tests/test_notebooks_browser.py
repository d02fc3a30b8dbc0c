"""The explorer in a real JupyterLab and a real marimo, in a headless Chromium: it is used, reloaded, and seen without a
kernel."""

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

import nbformat
import pytest
import tiny

REPO = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
NEEDED = ("playwright", "jupyterlab", "ipykernel", "anywidget", "marimo")
ABSENT = [name for name in NEEDED if importlib.util.find_spec(name) is None]
NAME = "explorer.ipynb"
CELLS = ["import figures\nexplorer = figures.explorer('runs')\nexplorer", "explorer.show(round=0).selection['round']"]
MARIMO, APP = (
    "explorer.py",
    """import marimo
app = marimo.App()
@app.cell
def _():
    import figures, marimo
    explorer = marimo.ui.anywidget(figures.explorer('runs'))
    return (explorer,)
@app.cell
def _(explorer):
    explorer
@app.cell
def _(explorer, marimo):
    explorer.value
    marimo.md(f"selected: {explorer.widget.selection.get('round')}")
if __name__ == "__main__":
    app.run()
""",
)
VIEW = "document.getElementById('stage').view"
LARGEST = 1_000_000
"""Bytes of a saved notebook."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.timeout(900),
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; apt-get install chromium"),
    pytest.mark.skipif(bool(ABSENT), reason=f"no {', '.join(ABSENT)} here; pip install 'fedscape[notebook,test]'"),
]


def server_of(folder, arguments, **environment):
    """Address of a server that runs in a folder until the test ends; `arguments` take its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = os.pathsep.join([str(REPO), os.environ.get("PYTHONPATH", "")])
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *arguments(port)],
            env={**os.environ, **environment, "PYTHONPATH": path, "MPLBACKEND": ""},
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        yield f"http://127.0.0.1:{port}"
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with runs, a notebook of JupyterLab and one of marimo."""
    folder = tmp_path_factory.mktemp("notebooks")
    tiny.trained(folder / "runs")
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / NAME)
    (folder / MARIMO).write_text(APP)
    return folder


@pytest.fixture(scope="module")
def lab(folder):
    """Address of a JupyterLab, and its notebook."""
    places = {f"JUPYTER_{name}_DIR": str(folder / f".{name.lower()}") for name in ("CONFIG", "DATA", "RUNTIME")}
    places["JUPYTER_PATH"] = str(Path(importlib.util.find_spec("anywidget").origin).parents[4] / "share" / "jupyter")
    told = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    told += [f"--ServerApp.root_dir={folder}", "--IdentityProvider.token=", "--LabApp.news_url="]
    for address in server_of(folder, lambda port: ["jupyterlab", *told, f"--ServerApp.port={port}"], **places):
        yield address, folder / NAME


@pytest.fixture(scope="module")
def marimo(folder):
    """Address of a marimo."""
    yield from server_of(
        folder, lambda port: ["marimo", "run", MARIMO, "--headless", "--no-token", f"--port={port}", "--host=127.0.0.1"]
    )


@pytest.fixture
def page():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened.new_page(viewport={"width": 1400, "height": 1100})
        opened.close()


def go(page, address):
    """Open an address as soon as its server listens."""
    from playwright.sync_api import Error

    for _ in range(240):
        try:
            page.goto(address)
            return
        except Error:  # not listening yet
            time.sleep(0.5)


def stage_of(page):
    """The frame of the explorer, once a landscape is drawn."""
    frame = page.wait_for_selector("iframe[title='fedscape explorer']", timeout=200_000).content_frame()
    frame.wait_for_function(f"() => {VIEW}?.pictures.some((picture) => picture.shown?.frame)", timeout=200_000)
    return frame


def saved(page, path):
    """The outputs of the first cell, once the notebook is saved with a picture."""
    for _ in range(40):
        page.keyboard.press("Control+s")
        page.wait_for_timeout(3000)
        outputs = json.loads(path.read_text())["cells"][0]["outputs"]
        if any("image/png" in output.get("data", ()) for output in outputs):
            break
    return outputs


END_KERNELS = """async () => { for (const { id } of await (await fetch('/api/sessions')).json())
    await fetch(`/api/sessions/${id}`, { method: 'DELETE',
        headers: { 'X-XSRFToken': /_xsrf=([^;]+)/.exec(document.cookie)?.[1] ?? '' } }); }"""


def test_a_cell_is_used_reloaded_and_seen_without_a_kernel(page, lab):
    address, path = lab
    problems = []
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    go(page, f"{address}/lab/tree/{NAME}")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=120_000)
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    frame = stage_of(page)
    assert frame.evaluate(f"{VIEW}.state.round") == 2
    page.keyboard.press("Shift+Enter")
    frame.wait_for_function(f"() => {VIEW}.state.round === 0", timeout=60_000)
    frame.evaluate(f"{VIEW}.set({{ round: 1, view: 'relief' }})")
    outputs = saved(page, path)
    assert "image/png" in outputs[1]["data"] and path.stat().st_size < LARGEST

    page.goto(f"{address}/lab/tree/{NAME}")
    assert stage_of(page).evaluate(f"[{VIEW}.state.round, {VIEW}.state.view]") == [1, "relief"]

    page.evaluate(END_KERNELS)
    page.goto(f"{address}/lab/tree/{NAME}?reset")
    page.get_by_text("when this cell is run").wait_for(timeout=120_000)
    page.wait_for_timeout(5000)
    assert page.locator(".jp-RenderedImage img").is_visible()
    assert not page.get_by_text("model not found").is_visible()
    assert problems == []


def test_a_cell_of_marimo_shows_it_and_reacts(page, marimo):
    go(page, marimo)
    frame = stage_of(page)
    assert frame.evaluate(f"{VIEW}.state.round") == 2
    frame.evaluate(f"{VIEW}.set({{ round: 1 }})")
    page.get_by_text("selected: 1").wait_for(timeout=60_000)
