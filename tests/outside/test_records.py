"""Runs record plug-ins outside the package, however named, and are opened, refused and continued by that record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny
from outside_plugins import CODE, NAMES, OTHER, ROOT, SETTINGS, WAYS, called, forgotten, recorded

import drift
from drift.config.load import read
from drift.plugins import trust
from drift.runs.run import Run
from drift.simulation.run_index import index


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SETTINGS)
def test_trained_recorded_opened_again_and_refused_where_nobody_trusts_it(elsewhere, monkeypatch, kind, way):
    run = tiny.trained(Path("runs"), f"{SETTINGS[kind]}={called(kind, way)}", *OTHER.get(kind, ()))
    about, text = json.loads((run.folder / "run.json").read_text()), recorded(elsewhere, kind, way)
    assert text in json.dumps(about["experiment"])
    assert (
        list(about["sources"]) == [text.removeprefix(f"{elsewhere}/")]
        and len(next(iter(about["sources"].values()))) == 16
    )
    assert all(part.isalnum() for part in run.name.split("-")), run.name
    if kind in ("method", "partition", "dataset"):
        assert NAMES[kind] in run.name
    assert run.rounds() == [0, 1, 2] and run.task.layout.size > 0
    monkeypatch.setenv(trust.TRUSTED, "")
    forgotten(kind)
    (elsewhere / "ran").unlink()
    with pytest.raises(ValueError, match=f"code that is not part of fedscape.*--trust {text}"):
        _ = drift.open(run.folder).setting
    assert not (elsewhere / "ran").exists()
    found = drift.open(run.folder, trust=text)
    assert found.setting.task.layout.size == run.task.layout.size and (elsewhere / "ran").exists()
    assert found.experiment.hash == run.experiment.hash and found.experiment.slug == run.name
    assert index("runs")[0]["problem"] is None


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_changed_source_is_told_when_opened_and_refused_when_gone_on_with(elsewhere, kind):
    setting = f"{SETTINGS[kind]}=my_{kind}.py:{NAMES[kind]}"
    run = tiny.trained(Path("runs"), setting)
    path = elsewhere / f"my_{kind}.py"
    path.write_text(path.read_text() + "\n# other\n")
    with pytest.warns(UserWarning, match=f"my_{kind}.py:{NAMES[kind]} has changed since run {run.name} was started"):
        _ = Run(run.folder).task
    (run.folder / "state.safetensors").unlink()
    for record in (run.folder / "rounds").iterdir():
        record.unlink()
    with pytest.raises(ValueError, match=f"my_{kind}.py:{NAMES[kind]} has changed since .* restore it, or train into"):
        tiny.trained(Path("runs"), setting)


@pytest.mark.parametrize("kind", ["method", pytest.param("partition", marks=pytest.mark.slow)])
def test_an_object_from_a_script_is_found_again(elsewhere, kind):
    given = {"method": "method=Halved()", "partition": "clients__partition=Strided()"}[kind]
    script = f"{CODE[kind]}\nif __name__ == '__main__':\n    import drift\n    drift.simulate('tiny.toml', {given})\n"
    (elsewhere / "script.py").write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT), trust.TRUSTED: ""}
    subprocess.run([sys.executable, "script.py"], cwd=elsewhere, env=environment, check=True)
    (folder,) = Path("runs").glob("*/run.json")
    assert "--" not in folder.parent.name
    found = drift.open(folder.parent, trust=f"script.py:{NAMES[kind]}")
    assert found.experiment.slug == folder.parent.name
    moved = elsewhere / "moved"
    moved.mkdir()
    (elsewhere / "script.py").rename(moved / "script.py")
    again = drift.open(folder.parent, trust=["mine:net", f"moved/script.py:{NAMES[kind]}"])
    assert again.experiment.hash == found.experiment.hash


def test_a_class_that_nothing_could_find_again_is_refused_before_anything_is_written(elsewhere):
    from drift.config.method import Method

    class Hidden(Method):
        pass

    with pytest.raises(ValueError, match="Hidden is defined inside a function or in a session"):
        drift.simulate("tiny.toml", method=Hidden())
    assert not Path("runs").exists()
    lines = "import drift\nfrom drift.config.method import Method\nclass Mine(Method): pass\n"
    code = f"{lines}drift.simulate('tiny.toml', method=Mine())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Mine is defined inside a function or in a session" in told.stderr.splitlines()[-1]


def test_slugs_and_hashes_of_what_is_built_in_are_what_they_were():
    assert read("digits-shards2").slug == "fedavg-digits-shards-s8-87a1437b"
    assert {name: read("digits-shards2", method=name).hash for name in PINNED} == PINNED
    assert read("digits-shards2", "task.model=mine:net").slug == "fedavg-digits-shards-s8-8486244d"


PINNED = {"fedavg": "87a1437b", "ima": "a31ca58d", "fedeve": "03624169", "lss": "15c664fc", "scaffold": "9eb81673"}
