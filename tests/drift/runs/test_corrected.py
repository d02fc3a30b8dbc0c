"""A run of a method that was corrected since is never continued in silence, nor taken for one of today's."""

from __future__ import annotations

import json
import warnings

import pytest
import tiny

import drift
from drift.config import method as methods
from drift.store import files

CORRECTED = [name for name in methods.names() if methods.load(name).corrections and name != "ima"]
OPTIONS = {
    "fedbabu": ["task.model=mlp"],
    "swad": ["clients.valid_ratio=0.2", "method.patience_end=2"],
}


def of_an_earlier_version(run):
    """The run with a description that lacks what later versions write."""
    about = files.read_json(run.folder / "run.json")
    files.write_json(run.folder / "run.json", {name: value for name, value in about.items() if name != "corrections"})
    return run


def test_there_are_corrected_methods():
    assert {"fedfa", "swad", "fedbabu", "fedrep"} <= set(CORRECTED)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", CORRECTED)
def test_an_earlier_run_is_refused_when_trained_and_named_when_opened(name, wrapped, tmp_path):
    choice = (
        ["method=ima", f"method.base={name}", "method.start=2", "method.window=1"] if wrapped else [f"method={name}"]
    )
    spec = tiny.experiment(
        *choice, *[text.replace("method.", "method.base.") if wrapped else text for text in OPTIONS.get(name, [])]
    )
    run = of_an_earlier_version(drift.simulate(spec, runs=tmp_path, until=2))
    with pytest.raises(ValueError, match="was corrected") as caught:
        drift.simulate(spec, runs=tmp_path)
    assert "--runs DIR" in str(caught.value)
    with pytest.warns(UserWarning, match="numbers are those of the earlier version"):
        drift.open(run.folder)


@pytest.mark.parametrize("name", CORRECTED)
def test_a_run_of_today_goes_on_and_opens_without_a_word(name, tmp_path):
    spec = tiny.experiment(f"method={name}", *OPTIONS.get(name, []))
    drift.simulate(spec, runs=tmp_path, until=1)
    run = drift.simulate(spec, runs=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert drift.open(run.folder).rounds() == [0, 1, 2]


def test_methods_without_corrections_go_on_with_earlier_runs(tmp_path):
    run = of_an_earlier_version(drift.simulate(tiny.experiment(), runs=tmp_path, until=1))
    assert "corrections" not in json.loads((run.folder / "run.json").read_text())
    assert drift.simulate(tiny.experiment(), runs=tmp_path).rounds() == [0, 1, 2]
