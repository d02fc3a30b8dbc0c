"""A run on disk: its numbers, and analyses that are computed once."""

import os
import re
import shutil
import sys
from dataclasses import replace

import pytest
import torch
import xarray as xr
from tiny import trained

import drift
from drift.runs.run import Run
from drift.simulation.repair import repair
from drift.simulation.verify import verify
from drift.store import files, round_headers
from landscape.results import netcdf_files

CALLS: list[object] = []
"""Calls of `counted`, which names no list: what a function of one's own uses is part of what names its result."""


def counted(run, *, number=1, names=("a",)):
    vars(sys.modules[__name__])["CALLS"].append((number, names))
    return xr.Dataset({"value": ((), float(number))})


def other():
    def counted(run, *, number=1, names=("a",)):
        return xr.Dataset({"value": ((), -1.0)})

    return counted


@pytest.fixture
def run(tmp_path):
    CALLS.clear()
    return trained(tmp_path)


def test_an_analysis_is_computed_once_for_each_set_of_arguments(run):
    for number in (1, 1, 2, 1):
        assert run.cached(counted, number=number).value == number
    assert run.cached(counted).value == 1
    assert CALLS == [(1, ("a",)), (2, ("a",))]


def test_another_function_of_the_same_name_is_another_analysis(run):
    assert run.cached(counted).value == 1
    assert run.cached(other()).value == -1


def test_arguments_that_cannot_be_told_apart_are_refused(run):
    with pytest.raises(TypeError, match="cached results take numbers"):
        run.cached(counted, names=object())
    with pytest.raises(TypeError, match="no argument of counted named 'nmber'"):
        run.cached(counted, nmber=2)
    run.cached(counted, names=torch.arange(2000))
    run.cached(counted, names=torch.arange(2000).flip(0))
    assert len(CALLS) == 2


def test_a_result_says_where_it_comes_from_and_a_broken_one_is_named(run):
    found = run.cached(counted, number=4)
    assert found.attrs["run"] == run.name
    (path,) = (run.folder / "results").glob("counted-*.nc")
    assert netcdf_files.load(path).identical(found)
    path.write_text("{}")
    with pytest.raises(LookupError, match="counted-"):
        run.cached(counted, number=4)


def test_a_result_that_is_read_again_opens_no_round_and_calls_few_functions(run, monkeypatch):
    first, called = run.cached(drift.coherence), set()
    for name in ("read_header", "reading"):
        monkeypatch.setattr(round_headers, name, lambda *_: pytest.fail("a header was read"))

    def observe(frame, event, argument):
        place = frame.f_code.co_filename
        if event == "call" and any(f"/{package}/" in place for package in ("landscape", "drift")):
            called.add((place, frame.f_code.co_qualname))

    sys.setprofile(observe)
    try:
        again = run.cached(drift.coherence)
    finally:
        sys.setprofile(None)
    assert again.identical(first)
    assert len([name for _, name in called if "<" not in name.rpartition(".")[2]]) <= 50


def test_rounds_count_from_the_end_and_absent_ones_are_named(run):
    assert run.round(-1).index == run.rounds()[-1] == 2
    with pytest.raises(LookupError, match="has no round 9; it has 0 to 2"):
        run.round(9)


def test_metrics_have_units(run):
    found = run.metrics()
    assert found.loss.attrs["units"] == "nats"
    assert found.accuracy.attrs["units"] == "fraction"
    assert found.sizes["round"] == 3


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(LookupError, match=r"run\.json"):
        drift.open(tmp_path)


def test_data_other_than_those_trained_on_are_noticed(run):
    about = files.read_json(run.folder / "run.json")
    files.write_json(run.folder / "run.json", {**about, "fingerprint": "other"})
    with pytest.raises(ValueError, match="was trained on other"):
        replace(run).task  # noqa: B018 (reads the data)


def test_cohorts_and_clients_are_those_of_the_record(run):
    record = run.round(1)
    assert run.cohort(1).tolist() == record.ids.tolist()
    client = int(record.ids[0])
    assert len(run.client_samples(client)) == int(record.sizes[0])
    assert torch.equal(run.client(1, client).start, record.start)


def test_a_folder_whose_name_is_no_text_is_to_be_renamed_not_deleted(tmp_path):
    source = trained(tmp_path)
    folder = tmp_path / os.fsdecode(b"again-\xff")
    try:
        shutil.copytree(source.folder, folder)
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    for read in (
        lambda: drift.open(folder),
        lambda: Run(folder).committed,
        lambda: verify(folder),
        lambda: repair(folder),
    ):
        with pytest.raises(LookupError, match=r"again-\\xff.* not UTF-8\. Rename the folder; do not delete it\."):
            read()
    stored = sorted(path.read_bytes() for path in folder.rglob("*.safetensors"))
    assert stored == sorted(path.read_bytes() for path in source.folder.rglob("*.safetensors"))


def test_rounds_without_the_state_are_named_and_not_taken_for_none(run):
    first = run.round(0).gram
    (run.folder / files.STATE).unlink()
    said = r"state\.safetensors is missing, .*; 3 round files, 0 to 2, are on disk\. Put it back"
    lost = drift.open(run.folder)
    assert re.search(said, repr(lost))
    for read in (lost.rounds, lambda: lost.kept("clients"), lambda: lost.round(-1), lambda: drift.coherence(lost)):
        with pytest.raises(LookupError, match=said):
            read()
    with pytest.raises(LookupError, match=said):
        lost.cached(drift.coherence)
    assert trained(run.folder.parent).folder == run.folder  # trained anew, the same bits
    torch.testing.assert_close(drift.open(run.folder).round(0).gram, first, rtol=0, atol=0)
