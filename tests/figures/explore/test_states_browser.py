"""Runs in every state on the live page: diverged, stopped, damaged, without data, on a disk that takes no file."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import tiny
from browsing import MARKS
from exploring import exploring, idle

from drift.record.recorder import Recorder
from drift.simulation.simulate import Diverged, simulate

pytestmark = [*MARKS, pytest.mark.timeout(600)]
VIEW = "document.getElementById('stage').view"
RAW = re.compile(r"\bnan\b|NaN|Errno|Traceback|undefined|Infinity|\bnull\b|\[object|once it has")
LOST = ("task.dataset=digits", "task.dataset_options={}", "task.train_samples=80", "task.test_samples=40")
OLD = 1_600_000_000
"""Seconds: long before now."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs in five states, none written lately; the folder of each is named after its state."""
    made, folder = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("states")
    with pytest.raises(Diverged):
        tiny.trained(made / "diverged", *LOST, "task.model=mlp", "local.lr=1e4")
    simulate(tiny.experiment("rounds=4"), runs=made / "stopped", until=2)
    for state in ("unreadable", "truncated"):
        tiny.trained(made / state, f"seed={len(state)}")
    model = tiny.trained(made / "bare").task.model
    recorder, start = Recorder(folder / "bare", model), model.state_dict()
    for step in range(3):
        moved = {client: ({name: value + step + client for name, value in start.items()}, 10) for client in range(3)}
        recorder.round(start=start, clients=moved, end=moved[1][0])
    for state in ("diverged", "stopped", "unreadable", "truncated"):
        (source,) = (made / state).iterdir()
        shutil.copytree(source, folder / state)
    (folder / "unreadable" / "run.json").write_text('{"name": ')
    last = folder / "truncated" / "rounds" / "000002.safetensors"
    last.write_bytes(last.read_bytes()[:100])
    for path in folder.rglob("*"):
        os.utime(path, (OLD, OLD))
    return folder


@pytest.fixture
def opened(browser):
    """Opens a page, which may not complain."""
    errors = []
    page = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(120_000)
    page.on("pageerror", lambda problem: errors.append(str(problem)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    yield page
    page.close()
    assert errors == []


STATES = {
    "diverged": ("diverged", r"none of its losses is finite"),
    "stopped": ("stopped", r"stopped after 2 of 4 rounds; fedscape train goes on with it"),
    "unreadable": ("damaged", r"run\.json cannot be read .*; it is truncated .*Restore it from a copy"),
    "truncated": ("damaged", r"Round 2 is damaged; the others are shown"),
    "bare": ("complete", r"without its data"),
}


def test_every_state_is_one_plain_line_in_every_view(opened, folder):
    with exploring(folder) as address:
        opened.goto(address)
        idle(opened)
        opened.wait_for_function(f"() => {VIEW}.runs.length === 5")
        for name, (state, line) in STATES.items():
            card = f"#stage .card[data-run={name}]"
            opened.wait_for_selector(f"{card} .state.{state}" if state != "complete" else card)
            opened.wait_for_function(f"() => new RegExp({line!r}).test(document.querySelector('{card}').textContent)")
            for view in ("map", "relief", "path"):
                opened.evaluate(
                    f"fields => {VIEW}.set(fields)", {"runs": [name], "look": name, "view": view, "round": 2}
                )
                idle(opened)
                text = opened.evaluate("document.body.innerText")
                assert not RAW.search(text), f"{name}, {view}: {RAW.search(text)}"
                shown = opened.locator("#stage .absent:visible").all_text_contents()
                assert all(len(words) > 20 and "\n" not in words for words in shown), (name, view)
                if name == "truncated" and view == "map":
                    assert shown[0].startswith("Round 2 of run truncated cannot be read (")
                    assert re.search(r"To restore it: fedscape verify \S+/truncated --repair$", shown[0])
                    assert text.count("Round 2 of run truncated") == 1, "said once"
                    weights = {"run": "truncated", "round": 2, "gamma": 1, "weights": {0: 0.5, 1: 0.5}}
                    opened.evaluate(f"mix => {VIEW}.set({{ mix }})", weights)
                    assert "round 2 has no models" in opened.text_content("#stage .lost-weights")
                    opened.locator("#stage .curves").press("ArrowLeft")
                    idle(opened)
                    assert opened.locator("#stage .plate:visible").count() == 1, "the others are shown"
                    assert opened.locator("#stage .sentences li").count() == 4
                elif state == "damaged" and view == "map":
                    assert shown[0].startswith("No landscape, because this run is damaged: "), name
                elif name == "bare" and view == "path":
                    assert opened.locator("#stage .mark.round").count() == 3, "it has its places, without a map"
                    assert "its path has no map" in opened.text_content("#stage .reading")
                assert shown or opened.locator("#stage .plate:visible").count() == 1, (name, view)
        assert opened.locator("#stage .jobs .warn").count() == 0, "said on the card of the run, and only there"
        shutil.rmtree(folder / "stopped")
        opened.wait_for_selector("#stage .card[data-run=stopped] .state:text-is('gone')")
        said = opened.text_content("#stage .complaint")
        assert said.startswith("Run stopped is gone: ") and said.endswith("Put it back to see it again.")
        opened.evaluate(f"{VIEW}.set({{ smooth: 3 }})")
        assert opened.locator("#stage .complaint").is_hidden(), "until the next change"
        opened.goto("about:blank")  # before the server ends


@contextlib.contextmanager
def mounted(place, *options):
    """A small file system in memory, which only the user root can mount."""
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root mounts a file system")
@pytest.mark.parametrize("kind", ["read-only", "full"])
def test_a_disk_that_takes_no_file_changes_nothing_on_the_page(opened, tmp_path, kind):
    with mounted(tmp_path / "disk") as disk:
        run = tiny.trained(disk)
        if kind == "full":
            with contextlib.suppress(OSError), (disk / "filler").open("wb") as filler:
                while True:
                    filler.write(bytes(4096))
                    filler.flush()
        else:
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with exploring(disk) as address:
            opened.goto(address + "#round=1&view=path&figure=accuracy-rounds")
            idle(opened)
            opened.wait_for_selector("#stage .diagnosis li")
            opened.wait_for_selector(".figure-shown img")
            assert opened.locator("#stage .plate:visible").count() == 1
            opened.evaluate(f"{VIEW}.set({{ view: 'map', point: [0, 0] }})")
            idle(opened)
            assert "evaluated exactly" in opened.text_content("#stage .reading")
            opened.click("#stage .save summary")
            with opened.expect_download(timeout=300_000) as started:
                opened.click("#stage .save button:has-text('This page')")
            assert pathlib.Path(started.value.path()).read_text().rstrip().endswith("</html>")
            assert not RAW.search(opened.evaluate("document.body.innerText"))
            opened.goto("about:blank")  # before the server ends
        assert not [path for path in run.folder.glob("results/*") if path.is_file() and path.stat().st_size]
