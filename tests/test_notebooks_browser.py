"""A notebook in a real JupyterLab in a headless Chromium: it runs, its explorer is drawn and follows its pickers."""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
NEEDED = ("playwright", "jupyterlab", "ipykernel", "ipywidgets", "anywidget")
ABSENT = [name for name in NEEDED if importlib.util.find_spec(name) is None]
NAME = "01_first_run.ipynb"
SHOWN = """() => [...document.querySelectorAll('.widget-vbox .js-plotly-plot')].map(plot => ({
    title: plot.querySelector('.gtitle')?.textContent ?? '',
    first: [...(plot._fullData[0].z ?? [plot._fullData[0].y])].map(row => [...row]),
    dots: plot._fullData.at(-1).x.length,
    type: plot._fullLayout.yaxis.type,
    round: plot._fullLayout.shapes[0]?.x0 ?? null,
    width: plot.getBoundingClientRect().width,
}))"""
"""What the explorer's figures show: the plane first, the drift second."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.timeout(600),
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


def followed(page, before):
    """What is shown once the pickers' last change is drawn."""
    page.wait_for_function(f"before => JSON.stringify(({SHOWN})()) !== before", arg=before, timeout=120_000)
    page.wait_for_function("!document.querySelector('.widget-vbox').innerText.includes('drawing')", timeout=120_000)
    page.wait_for_timeout(500)
    return page.evaluate(SHOWN)


def test_the_explorer_is_drawn_and_follows_its_pickers(page, lab, tmp_path):
    problems, asked = [], []
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=120_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_function("document.querySelectorAll('.widget-vbox .js-plotly-plot').length === 2", timeout=400_000)
    page.locator(".widget-vbox").first.scroll_into_view_if_needed()
    page.wait_for_timeout(1000)
    assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    keep = Path(os.environ.get("FEDSCAPE_SHOTS", tmp_path))
    page.screenshot(path=keep / "explorer-begun.png")

    plane, drift = page.evaluate(SHOWN)
    assert plane["title"] == "test loss, round 23, client 1"
    assert len(plane["first"]) == 11 and drift["round"] == 23
    assert plane["width"] + drift["width"] <= page.locator(".widget-vbox").first.bounding_box()["width"]

    run, client, shows, curve = (page.locator(".widget-vbox .widget-dropdown select").nth(place) for place in range(4))
    before = page.evaluate(f"JSON.stringify(({SHOWN})())")
    page.locator(".widget-vbox .noUi-handle").focus()
    page.keyboard.press("ArrowLeft")
    plane_before, (plane, drift) = plane, followed(page, before)
    assert plane["first"] != plane_before["first"]
    assert "round 22" in plane["title"] and drift["round"] == 22

    before, plane_before = page.evaluate(f"JSON.stringify(({SHOWN})())"), plane
    run.select_option("IMA")
    plane, _ = followed(page, before)
    assert plane["first"] != plane_before["first"]

    before = page.evaluate(f"JSON.stringify(({SHOWN})())")
    client.select_option(index=2)
    plane, drift = followed(page, before)
    picked = client.locator("option:checked").text_content()
    assert plane["title"].endswith(f"client {picked}")

    before = page.evaluate(f"JSON.stringify(({SHOWN})())")
    shows.select_option(index=2)
    plane, _ = followed(page, before)
    assert plane["title"].startswith("loss of the client's own samples")

    for name, kind in (("client variance", "log"), ("accuracy", "linear")):
        before = page.evaluate(f"JSON.stringify(({SHOWN})())")
        curve.select_option(name)
        _, drift = followed(page, before)
        assert drift["type"] == kind
    page.screenshot(path=keep / "explorer-picked.png")
    assert problems == []
    assert [url for url in asked if not url.startswith((lab, lab.replace("http", "ws"), "data:", "blob:"))] == []
