"""The scene that was shown last is there before torch is loaded, and only if no run has changed."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time

import pytest
import tiny
from asking import page

pytest.importorskip("tornado", reason="no tornado here; pip install 'fedscape[explore]'")
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

from drift.analyses.rounds import coherence
from drift.simulation.simulate import simulate
from figures.explore import server
from figures.explore.work import first_scene
from figures.explore.work.first_scene import stored_scene
from figures.explore.work.unread_runs import unread_runs
from figures.explore.work.workspace import Workspace
from figures.looks import palette
from landscape.measures import similarity


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDSCAPE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs"


def stored_after_a_page(folder, jobs, seconds=20.0):
    """The stored scene once a page of a folder has read all of its runs; None if there is none."""
    with page(folder, jobs=jobs) as one:
        one.ask("scene")
        one.session._scene._reader.join(seconds)
        return stored_scene([folder])


def test_a_scene_is_stored_once_all_is_read_and_dropped_when_a_run_changes(folder, jobs):
    run = tiny.trained(folder)
    scene = stored_after_a_page(folder, jobs)
    (entry,) = scene["runs"]
    assert entry["key"] == run.name and "client_variance" in entry["series"] and scene["suggested"] == [run.name]
    tiny.trained(folder, "seed=6")
    assert stored_scene([folder]) is None
    assert len(stored_after_a_page(folder, jobs)["runs"][0]["names"]) == 2
    os.utime(folder / run.name / "state.safetensors")
    assert stored_scene([folder]) is None


def test_a_growing_run_and_a_task_of_one_s_own_store_nothing(folder, jobs):
    simulate(tiny.experiment(), runs=folder, until=2)
    assert stored_after_a_page(folder, jobs) is None
    run = tiny.trained(folder)
    with page(run, jobs=jobs) as one:
        assert one.workspace.runs.folders == []


def test_a_cache_that_cannot_be_read_or_written_is_left_out(folder, jobs, tmp_path):
    tiny.trained(folder)
    assert stored_after_a_page(folder, jobs) is not None
    (file,) = (tmp_path / "cache" / "explore").iterdir()
    file.write_text("{")
    assert stored_scene([folder]) is None
    file.unlink()
    file.parent.rmdir()
    file.parent.write_text("no folder")
    assert stored_after_a_page(folder, jobs) is None


@pytest.mark.parametrize("seen", [True, False], ids=["seen before", "never seen"])
def test_the_server_answers_while_the_runs_are_opened(folder, jobs, seen):
    run = tiny.trained(folder)
    known = {"value": stored_after_a_page(folder, jobs)} if seen else {"rough": unread_runs([folder])}
    loaded = threading.Event()

    def make():
        loaded.wait()
        return Workspace([folder], jobs=jobs)

    async def talk():
        started, address, _ = server.serve(make, 0, folders=[folder])
        base = address.split("/?")[0]
        response = await AsyncHTTPClient().fetch(HTTPRequest(address, follow_redirects=False), raise_error=False)
        headers = {"Cookie": response.headers["Set-Cookie"].split(";")[0], "Origin": base}
        socket = await websocket_connect(HTTPRequest(f"{base.replace('http', 'ws')}/ws", headers=headers))
        await socket.write_message(json.dumps({"id": 1, "ask": "scene", "args": {}}))
        first = json.loads(await socket.read_message())
        await socket.write_message(
            json.dumps({"id": 2, "ask": "point", "args": {"run": run.name, "round": 1, "spot": [0, 0]}})
        )
        loaded.set()
        while (message := json.loads(await socket.read_message())).get("id") != 2:
            pass
        socket.close()
        started.stop()
        return first, message

    first, point = asyncio.run(talk())
    assert first == {"id": 1, **known}
    assert point["value"]["samples"] > 0
    time.sleep(0.1)


def test_a_stored_scene_and_unread_runs_are_read_without_torch(folder, jobs):
    tiny.trained(folder)
    stored_after_a_page(folder, jobs)
    code = (
        "import sys, pathlib; from figures.explore.server import stored_scene, unread_runs;"
        "folders = [pathlib.Path(sys.argv[1])];"
        "print(len(stored_scene(folders)['runs']), len(unread_runs(folders)), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1", "False"]


def test_unread_runs_have_the_accuracies_of_their_records(folder):
    run, other = tiny.trained(folder), tiny.trained(folder, "seed=6")
    (folder / other.name / "rounds" / "000001.safetensors").write_bytes(b"damaged")
    (folder / "no-run").mkdir()
    (folder / "no-run" / "run.json").write_text("{")
    entries = {entry["name"]: entry for entry in unread_runs([folder])}
    assert set(entries) == {run.name, other.name}
    whole = {"label": "FedAvg", "colour": palette.colour("fedavg"), "planned": 3, "done": 3}
    accuracies = [run.round(index).metrics["accuracy"] for index in run.rounds()]
    assert entries[run.name] == {"name": run.name, **whole, "accuracies": accuracies}
    assert len(entries[other.name]["accuracies"]) == 1, "up to the first that cannot be read"


def test_a_change_of_any_code_that_a_scene_comes_from_drops_it(folder, monkeypatch):
    before, stamp = first_scene.identity([folder]), first_scene.paths.stamp
    for changed in (coherence, palette, similarity):
        monkeypatch.setattr(
            first_scene.paths, "stamp", lambda file, of=changed: (file.samefile(of.__file__), stamp(file))
        )
        marked = first_scene.identity([folder])
        monkeypatch.setattr(first_scene.paths, "stamp", lambda file: (False, stamp(file)))
        assert marked != first_scene.identity([folder])
        monkeypatch.setattr(first_scene.paths, "stamp", stamp)
    assert first_scene.identity([folder]) == before
