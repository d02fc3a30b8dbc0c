"""What users have on disk and in scripts stays valid: compared with what commit 345e1f0 wrote (see make.py)."""

from __future__ import annotations

import importlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from guards import make

import drift
from drift import method as methods
from drift.runs.cache import REVISION
from drift.simulation.verify import verify
from drift.store.files import read_tensors

HERE = Path(__file__).resolve().parent
NAMES = json.loads((HERE / "names.json").read_text())
BITS = json.loads((HERE / "bits.json").read_text())

CORRECTED = {
    "fedbabu": "moved the head that it holds by the rounding of means",
    "fedfa": "kept moving the anchors that its loss reads",
    "swad": "averaged the epochs that end the valley",
}
"""Methods whose training was wrong in 345e1f0 and was corrected since, with what was wrong."""


@pytest.fixture(scope="module")
def now():
    return make.names()


@pytest.mark.parametrize("kind", ["presets", "methods"])
def test_folder_names_stay(now, kind):
    assert {name: now[kind].get(name) for name in NAMES[kind]} == NAMES[kind]


@pytest.mark.parametrize("package", sorted(NAMES["public"]))
def test_public_names_stay(now, package):
    assert set(NAMES["public"][package]) <= set(now["public"][package])
    module = importlib.import_module(package)
    for name in NAMES["public"][package]:
        assert getattr(module, name) is not None, name


@pytest.mark.parametrize("path", ["drift.method", "drift.partitions", "drift.recorder", "landscape.task"])
def test_documented_import_paths_stay(path):
    importlib.import_module(path)


def test_verbs_and_options_stay(now):
    for words, options in NAMES["commands"].items():
        assert words in now["commands"], words
        assert set(options) <= set(now["commands"][words]), words


@pytest.mark.parametrize("kind", sorted(NAMES["plugins"]))
def test_plug_in_names_stay(now, kind):
    assert set(NAMES["plugins"][kind]) <= set(now["plugins"][kind])


def test_analyses_and_their_options_stay(now):
    for name, options in NAMES["analyses"].items():
        assert name in now["analyses"], name
        assert set(options) <= set(now["analyses"][name]), name


@pytest.mark.parametrize("name", sorted(BITS["models"]))
def test_training_keeps_its_bits(name, tmp_path):
    if name in CORRECTED:
        assert name in methods.names()
        return
    run = drift.simulate(make.small(f"method={name}", *make.METHODS.get(name, [])), runs=tmp_path)
    _assert_same(make.model(run.folder), BITS["models"][name])


def _assert_same(model, before):
    np.testing.assert_allclose(model["numbers"], before["numbers"], rtol=1e-4, atol=1e-5)
    if make.processor() == BITS["processor"]:  # other processors add in another order
        assert model["digest"] == before["digest"]


@pytest.fixture
def runs(tmp_path):
    with zipfile.ZipFile(HERE / "stored.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path


def _only(folder):
    return next(path for path in folder.iterdir() if path.is_dir())


@pytest.mark.parametrize("kind", ["whole", "packed"])
def test_stored_runs_open_and_verify(runs, kind):
    run = drift.open(_only(runs / kind))
    assert run.rounds() == [0, 1, 2, 3]
    assert not verify(run.folder)
    for index in run.rounds():
        record = run.round(index)
        assert record.clients.shape == (3, len(record.end))


@pytest.mark.parametrize("kind", ["whole", "packed"])
@pytest.mark.parametrize(("name", "arguments"), [entry for entry in make.RESULTS if entry[0] not in REVISION])
def test_stored_results_are_read_and_not_computed(runs, kind, name, arguments):
    folder = _only(runs / kind)
    before = {path.name: path.stat().st_mtime_ns for path in (folder / "results").iterdir()}
    result = drift.open(folder).cached(getattr(drift, name), **arguments)
    assert result.attrs["run"] == folder.name
    assert {path.name: path.stat().st_mtime_ns for path in (folder / "results").iterdir()} == before


def test_a_stopped_run_goes_on_to_the_same_model(runs):
    experiment = make.small("method=scaffold", "local.momentum=0.0")
    assert _only(runs / "begun").name == experiment.slug
    run = drift.simulate(experiment, runs=runs / "begun")
    ended = read_tensors(runs / "begun-ended.safetensors")[0]
    state = run.state()[0]
    assert set(state) == set(ended)
    for name, before in ended.items():
        np.testing.assert_allclose(state[name].numpy(), before.numpy(), rtol=1e-4, atol=1e-5)
        if make.processor() == BITS["processor"]:
            assert bool((state[name] == before).all()), name
    assert not verify(run.folder)
