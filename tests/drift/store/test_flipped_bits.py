"""Every bit of what is read without models is compared with a digest, by every reader, at resuming and in results."""

import json
import shutil
from itertools import product

import pytest
import tiny
import torch
from kinds import one_of_each

import drift
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.export_table import table
from drift.record.recorder import Recorder
from drift.runs.growing_run import GrowingRun
from drift.simulation import description
from drift.simulation import simulate as loop
from drift.simulation.repair import repair
from drift.simulation.run_index import index
from drift.simulation.verify import verify
from drift.store import files, server_state
from landscape.results import netcdf_files

pytestmark = pytest.mark.seconds

LENGTH, DONE, ALTERED = 6, 4, 1
ARRAYS = ("gram", "weights", "ids", "sizes", "metric.loss", "metric.accuracy", "metric.local_loss", "metric.seconds")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A run of six rounds that was stopped after four, and the same run under another torch."""
    place = tmp_path_factory.mktemp("flipped")
    own = loop.simulate(tiny.experiment(f"rounds={LENGTH}"), runs=place / "own", until=DONE).folder
    real = description.versions
    description.versions = lambda: real() | {"torch": "1.0"}
    try:
        other = loop.simulate(tiny.experiment(f"rounds={LENGTH}"), runs=place / "other", until=DONE).folder
    finally:
        description.versions = real
    return {"own": own, "other": other}


@pytest.fixture
def mine(stored, tmp_path):
    return shutil.copytree(stored["own"], tmp_path / "runs" / stored["own"].name)


def span(path, name):
    """First and last byte of a tensor in a file, by the format's own words."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    return [8 + length + place for place in json.loads(content[8 : 8 + length])[name]["data_offsets"]]


def flip(path, place, mask=1):
    content = bytearray(path.read_bytes())
    content[place] ^= mask
    path.unlink()
    path.write_bytes(bytes(content))


def resume(folder):
    loop.simulate(tiny.experiment(f"rounds={LENGTH}"), runs=folder.parent)


READERS = {
    "without_models": lambda folder: list(drift.open(folder).without_models([ALTERED])),
    "metrics": lambda folder: drift.open(folder).metrics(),
    "coherence": lambda folder: drift.open(folder).cached(coherence),
    "head": lambda folder: drift.open(folder).head,
    "export": lambda folder: table(drift.open(folder)),
    "growing": lambda folder: GrowingRun(folder).update(),
    "whole round": lambda folder: drift.open(folder).round(ALTERED),
    "resume": resume,
}


@pytest.mark.parametrize(
    ("array", "reader"),
    one_of_each(product(ARRAYS, READERS), [*product(ARRAYS, ["without_models"]), *product(["gram"], READERS)]),
)
def test_a_flipped_bit_of_a_small_array_is_noticed_by_every_reader(mine, array, reader):
    path = files.round_path(mine, ALTERED)
    first, last = span(path, array)
    for place in {first, (first + last) // 2, last - 1}:
        flip(path, place, 1 << place % 8)
        with pytest.raises(LookupError, match=r"000001\.safetensors was altered"):
            READERS[reader](mine)
        flip(path, place, 1 << place % 8)
    assert not any((mine / "results").glob("*.nc")) or reader in ("coherence", "export")
    READERS[reader](mine)


def test_every_byte_of_a_header_is_compared_by_readers_of_small_arrays(mine):
    path, run = files.round_path(mine, ALTERED), drift.open(mine)
    right = next(run.without_models([ALTERED]))
    length = int.from_bytes(path.read_bytes()[:8], "little")
    for place in range(0, 8 + length, 5):
        flip(path, place)
        try:
            found = next(drift.open(mine).without_models([ALTERED]))
        except LookupError:
            pass
        else:  # the models' places, and what pads the header, are not read
            assert torch.equal(found.gram, right.gram) and found.metrics == right.metrics, place
        flip(path, place)


def test_the_list_of_runs_shows_no_altered_number(mine):
    right = index(mine.parent)[0]["accuracy"]
    path = files.round_path(mine, DONE - 1)
    flip(path, span(path, "metric.accuracy")[0] + 6)
    (row,) = index(mine.parent)
    assert "was altered" in row["problem"] and row.get("accuracy") != right


def test_a_state_whose_number_of_rounds_was_altered_is_refused(mine):
    path = mine / files.STATE
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content.replace(b'\\"next\\": 4', b'\\"next\\": 3'))
    with pytest.raises(LookupError, match=r"state\.safetensors was altered"):
        drift.open(mine).rounds()


def test_recorders_refuse_to_go_on_over_an_altered_round(tmp_path):
    recorder, model = Recorder(tmp_path / "run"), {"w": torch.zeros(3)}
    for number in range(3):
        end = {"w": model["w"] + number + 1}
        recorder.round(start=model, clients={0: (end, 2), 1: (model, 1)}, end=end, metrics={"loss": 1.0})
        model = end
    path = files.round_path(tmp_path / "run", 0)
    flip(path, span(path, "gram")[0])
    with pytest.raises(LookupError, match=r"000000\.safetensors was altered"):
        Recorder(tmp_path / "run")


@pytest.mark.parametrize("what", [("run.json",), ("rounds", files.STATE), ("rounds/000001.safetensors",)])
def test_files_of_the_same_settings_under_another_torch_are_noticed(mine, stored, what):
    for name in what:
        source, target = stored["other"] / name, mine / name
        shutil.copytree(source, target, dirs_exist_ok=True) if source.is_dir() else shutil.copyfile(source, target)
    assert verify(mine)
    for reader in ("coherence", "resume"):
        with pytest.raises(LookupError, match=r"is of run|describes run"):
            READERS[reader](mine)


def results(folder):
    return sorted((folder / "results").glob("[!.]*.nc"))


@pytest.fixture(scope="module")
def computed(stored, tmp_path_factory):
    """A run with results that differ by points, by round and by analysis, with what asks for each."""
    folder = shutil.copytree(stored["own"], tmp_path_factory.mktemp("computed") / stored["own"].name)
    asked = [("global_line", {"points": 3}), ("global_line", {"points": 5}), ("round_plane", {"round": 1, "points": 3})]
    asked += [("round_plane", {"round": 2, "points": 3}), ("coherence", {}), ("drift_variances", {})]
    found = {}
    for name, arguments in asked:
        before = set(results(folder))
        drift.open(folder).cached(getattr(drift, name), **arguments)
        (path,) = set(results(folder)) - before
        found[path.name] = name, arguments
    return folder, found


@pytest.fixture
def asked(computed, tmp_path):
    """A copy of that run, and what asks for each of its results, by path."""
    folder, found = computed
    copy = shutil.copytree(folder, tmp_path / "results" / folder.name)
    return copy, {copy / "results" / name: call for name, call in found.items()}


@pytest.mark.parametrize(("one", "two"), [(0, 1), (2, 3), (4, 5)])
def test_results_exchanged_within_a_run_are_refused_named_and_set_aside(asked, one, two):
    mine, found = asked
    paths = list(found)
    shutil.copyfile(paths[two], paths[one])
    name, arguments = found[paths[one]]
    with pytest.raises(LookupError, match=r"was computed with|is of analysis"):
        drift.open(mine).cached(getattr(drift, name), **arguments)
    assert [problem.file for problem in verify(mine)] == [f"results/{paths[one].name}"]
    assert [entry.done for entry in repair(mine)] == [True]
    assert verify(mine) == [] and not paths[one].exists()


def test_a_result_of_other_metrics_is_not_read(asked):
    mine, found = asked
    (path,) = [path for path, (name, _) in found.items() if name == "coherence"]
    netcdf_files.save(netcdf_files.load(path).assign_attrs(task="another"), path)
    with pytest.raises(LookupError, match="another task or other metrics"):
        drift.open(mine).cached(coherence)
    assert [problem.file for problem in verify(mine)] == [f"results/{path.name}"]


def test_repair_drops_the_results_of_a_round_that_it_replaces(mine, stored):
    """As where a run was read by a program that did not compare: its head names what it read."""
    right = drift.open(mine).cached(coherence)
    (path,) = results(mine)
    netcdf_files.save(right.assign_attrs(head="0" * 32), path)
    flip(files.round_path(mine, ALTERED), span(files.round_path(mine, ALTERED), "gram")[0])
    assert {entry.file for entry in repair(mine)} == {"rounds/000001.safetensors", f"results/{path.name}"}
    assert verify(mine) == [] and results(mine) == []
    assert drift.open(mine).cached(coherence).equals(right)


def snapshot(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.safetensors*")}


def spoil(path):
    path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)


BESIDE = {
    "nothing": lambda folder: None,
    "a damaged round": lambda folder: spoil(files.round_path(folder, 1)),
    "no state": lambda folder: (folder / files.STATE).unlink(),
    "a lost round": lambda folder: files.round_path(folder, 2).unlink(),
    "all damaged": lambda folder: (
        [files.round_path(folder, number).write_bytes(b"0") for number in range(DONE)]
        + [(folder / files.STATE).write_bytes(b"0")]
    ),
}


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("called", ["own", "mine"])
def test_repair_trains_no_foreign_run_in_a_folder(stored, tmp_path, beside, called):
    folder = shutil.copytree(stored["own"], tmp_path / "runs" / (stored["own"].name if called == "own" else "mine"))
    other = tiny.trained(tmp_path / "other", f"rounds={LENGTH}", "local.lr=0.06")
    shutil.copyfile(other.folder / "run.json", folder / "run.json")
    BESIDE[beside](folder)
    before = snapshot(folder)
    assert not any(entry.done for entry in repair(folder))
    assert snapshot(folder) == before


def test_no_foreign_file_of_a_client_is_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(server_state, "ONE_FILE", 0)
    options = (f"rounds={LENGTH}", "method=scaffold", "local.momentum=0.0")
    folder = loop.simulate(tiny.experiment(*options), runs=tmp_path / "own", until=DONE).folder
    other = loop.simulate(tiny.experiment(*options, "seed=6"), runs=tmp_path / "other", until=DONE).folder
    foreign, left = server_state.client_files(other)[0], server_state.client_files(folder)[0]
    kept = shutil.copyfile(foreign, folder / "clients" / "000003-000777.safetensors")
    stopped = shutil.copyfile(left, folder / "clients" / "000003-000778.safetensors")
    assert [problem.file for problem in verify(folder)] == ["clients/000003-000777.safetensors"]
    loop.simulate(tiny.experiment(*options), runs=tmp_path / "own", until=DONE + 1)
    assert kept.exists() and not stopped.exists()
    shutil.copyfile(left if left.exists() else server_state.client_files(folder)[0], stopped)
    done = {entry.file.split("/")[-1]: entry.what for entry in repair(folder) if entry.done}
    assert "set aside" in done[kept.name] and "left by a stopped write" in done[stopped.name]
    assert kept.with_name(f"{kept.name}.aside").read_bytes() == foreign.read_bytes()
    assert verify(folder) == []
