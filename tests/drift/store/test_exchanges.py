"""Whole files of another run or another round are noticed by every reader."""

import shutil

import pytest
import tiny
import torch
from torture.compared import difference

import drift
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.variance import drift_variances
from drift.record.recorder import Recorder
from drift.simulation.recompute import server_after
from drift.simulation.repair import repair
from drift.simulation.simulate import simulate
from drift.simulation.verify import verify
from drift.store import chain, files, links
from figures.gallery import norms_rounds
from landscape.results import netcdf_files

pytestmark = pytest.mark.seconds

LENGTH = 6
DONE = 4


def stopped(runs, *overrides):
    """A run of six rounds, of which four are complete as after a kill, with one stored result."""
    run = tiny.trained(runs, f"rounds={LENGTH}", *overrides)
    server = server_after(run, DONE - 1, run.rounds())
    for index in range(DONE, LENGTH):
        files.round_path(run.folder, index).unlink()
    origin = links.origin(run.identity, files.link(run.round(DONE - 1)))
    files.write_state(run.folder, server.tensors(), server.next, origin)
    run.cached(coherence)
    return run.folder


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Folders of runs of the same shape: the own one, and others in seed, in rate, and in the data."""
    place = tmp_path_factory.mktemp("stored")
    changes = {"own": [], "seed": ["seed=6"], "rate": ["local.lr=0.06"], "data": ["task.dataset_options.samples=64"]}
    return {name: stopped(place / name, *overrides) for name, overrides in changes.items()}


def round_file(index):
    return f"rounds/{index:06d}.safetensors"


def result_of(folder):
    (found,) = (folder / "results").glob("[!.]*.nc")
    return found


FILES = {f"round {index}": round_file(index) for index in range(DONE)}
FILES |= {"state": files.STATE, "description": "run.json"}


@pytest.fixture
def mine(stored, tmp_path):
    """A copy of the own run."""
    return shutil.copytree(stored["own"], tmp_path / "runs" / stored["own"].name)


@pytest.fixture(params=["seed", pytest.param("rate", marks=pytest.mark.slow), "data"])
def other(request, mine, stored, tmp_path):
    """A copy of another run."""
    return shutil.copytree(stored[request.param], tmp_path / request.param / stored[request.param].name)


def named_by(folder):
    return [problem.file for problem in verify(folder)]


def go_on(folder):
    return tiny.trained(folder.parent, f"rounds={LENGTH}")


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_another_run_is_noticed_by_every_reader(mine, other, stored, kind):
    name = FILES[kind]
    own = (mine / name).read_bytes()
    assert own != (other / name).read_bytes()
    shutil.copyfile(other / name, mine / name)
    assert named_by(mine) == [name]
    with pytest.raises(LookupError, match=name.split("/")[-1]):
        go_on(mine)
    with pytest.raises(LookupError, match=name.split("/")[-1]):
        drift.open(mine).cached(drift_variances)
    with pytest.raises(LookupError, match=name.split("/")[-1]):
        norms_rounds.data([drift.open(mine)])
    repaired = repair(mine)
    if kind == "description":
        assert [entry.file for entry in repaired if not entry.done] == ["run.json"]
        assert named_by(mine) == ["run.json"]
    else:
        assert all(entry.done for entry in repaired), repaired
        assert named_by(mine) == []
        assert (mine / f"{name}.aside").read_bytes() == (other / name).read_bytes()
        assert difference(drift.open(mine), drift.open(stored["own"])) == ""


@pytest.mark.parametrize("index", range(DONE))
def test_another_round_of_the_same_run_is_noticed_by_every_reader(mine, stored, index):
    source = (index + 2) % DONE
    shutil.copyfile(mine / round_file(source), mine / round_file(index))
    assert named_by(mine) == [round_file(index)]
    for reader in (go_on, lambda folder: drift.open(folder).cached(drift_variances)):
        with pytest.raises(LookupError, match=f"{index:06d}.safetensors holds round {source}, not {index}"):
            reader(mine)
    assert all(entry.done for entry in repair(mine))
    assert named_by(mine) == []
    assert difference(drift.open(mine), drift.open(stored["own"])) == ""


@pytest.mark.parametrize("extra", [DONE, DONE + 1, LENGTH, 123456])
@pytest.mark.parametrize("of", ["own", "rate"])
def test_an_extra_round_is_named_never_read_and_never_trained(mine, stored, extra, of):
    shutil.copyfile((mine if of == "own" else stored[of]) / round_file(1), mine / round_file(extra))
    assert named_by(mine) == [round_file(extra)]
    assert drift.open(mine).rounds() == list(range(DONE))
    assert drift.open(mine).cached(coherence).sizes["round"] == DONE
    entries = repair(mine)
    assert [entry.file for entry in entries] == [round_file(extra)] and all(entry.done for entry in entries)
    assert not (mine / round_file(extra)).exists() and (mine / f"{round_file(extra)}.aside").exists()
    assert named_by(mine) == []
    assert go_on(mine).rounds() == list(range(LENGTH))


def test_a_result_of_another_run_is_refused_and_set_aside(stored, tmp_path):
    for name in ("seed", "rate", "data"):
        folder = shutil.copytree(stored["own"], tmp_path / name / stored["own"].name)
        right, own = drift.open(folder).cached(coherence), result_of(folder)
        foreign = result_of(stored[name])
        shutil.copyfile(foreign, folder / "results" / foreign.name)  # as it was called there: never read
        assert drift.open(folder).cached(coherence).identical(right)
        assert named_by(folder) == [f"results/{foreign.name}"]
        own.unlink()
        (folder / "results" / foreign.name).rename(own)
        with pytest.raises(LookupError, match="is of run"):
            drift.open(folder).cached(coherence)
        with pytest.raises(LookupError, match="is of run"):
            drift.open(folder).with_progress(None).cached(coherence)
        assert named_by(folder) == [f"results/{own.name}"]
        assert [entry.done for entry in repair(folder)] == [True]
        assert named_by(folder) == []
        assert drift.open(folder).cached(coherence).identical(right)


def test_a_result_of_another_training_of_the_same_settings_is_not_read(stored, tmp_path):
    folder = shutil.copytree(stored["own"], tmp_path / stored["own"].name)
    own = result_of(folder)
    netcdf_files.save(netcdf_files.load(own).assign_attrs(head="0" * 32), own)
    assert named_by(folder) == [f"results/{own.name}"]
    with pytest.raises(LookupError, match="was computed from other rounds"):
        drift.open(folder).cached(coherence)


@pytest.mark.parametrize("both", [("rounds", files.STATE), ("rounds",)])
def test_all_rounds_of_another_run_are_noticed(mine, other, both):
    for name in both:
        if (mine / name).is_dir():
            shutil.rmtree(mine / name)
            shutil.copytree(other / name, mine / name)
        else:
            shutil.copyfile(other / name, mine / name)
    assert named_by(mine)
    with pytest.raises(LookupError):
        go_on(mine)
    with pytest.raises(LookupError):
        drift.open(mine).round(1)


def test_a_run_can_be_copied_and_renamed(mine, stored, tmp_path):
    for name in ("mine", "results-20261122", "fedavg on blobs"):
        folder = shutil.copytree(mine, tmp_path / name)
        assert named_by(folder) == []
        assert drift.open(folder).cached(coherence).sizes["round"] == DONE
        assert named_by(folder) == []


def test_a_round_of_the_same_run_trained_elsewhere_takes_its_place(mine, tmp_path):
    whole = tiny.trained(tmp_path / "whole", f"rounds={LENGTH}")
    run = go_on(mine)
    assert difference(run, whole) == ""
    for index in (1, LENGTH - 1):
        shutil.copyfile(whole.folder / round_file(index), mine / round_file(index))
        assert named_by(mine) == []


def recorded(folder, by):
    recorder, model = Recorder(folder), {"w": torch.zeros(4)}
    for index in range(3):
        end = {"w": model["w"] + by * (index + 1)}
        clients = {0: ({"w": end["w"] + by}, 3), 1: ({"w": end["w"] - by}, 3)}
        recorder.round(start=model, clients=clients, end=end, metrics={"loss": 1.0})
        model = end
    return folder


@pytest.mark.parametrize("name", [round_file(0), round_file(1), round_file(2), files.STATE])
def test_exchanges_between_recorded_runs_are_noticed(tmp_path, name):
    mine, other = recorded(tmp_path / "mine", 0.1), recorded(tmp_path / "other", 0.2)
    assert named_by(mine) == [] and named_by(other) == []
    shutil.copyfile(other / name, mine / name)
    assert name in named_by(mine)
    with pytest.raises(LookupError):
        drift.open(mine).cached(coherence)
    with pytest.raises(LookupError):
        Recorder(mine)


def test_a_newer_format_is_refused_and_never_repaired(mine):
    for name in (round_file(1), files.STATE, "run.json"):
        folder = shutil.copytree(mine, mine.parent / f"copy-{name.split('/')[-1]}")
        path = folder / name
        if name == "run.json":
            content = path.read_bytes().replace(b'"fedscape-4"', b'"fedscape-9"')
        else:
            content = path.read_bytes().replace(b'"format":"fedscape-4"', b'"format":"fedscape-9"')
        path.write_bytes(content)
        (problem,) = verify(folder)
        assert problem.file == name and "newer version of fedscape" in problem.what and "delete" not in problem.usable
        entries = repair(folder)
        assert [entry.done for entry in entries] == [False], entries
        assert "delete" not in entries[0].what
        assert path.read_bytes() == content
        with pytest.raises(files.Newer):
            simulate(drift.open(mine).experiment, runs=_named_as(folder, mine))


def _named_as(folder, mine):
    """A folder of runs in which the damaged copy has the name of the run."""
    place = folder.parent / f"runs-{folder.name}"
    place.mkdir()
    shutil.copytree(folder, place / mine.name)
    return place


def test_what_a_killed_writer_left_is_cleared_under_the_lock(stored, tmp_path):
    folder = shutil.copytree(stored["own"], tmp_path / stored["own"].name)
    left = [folder / ".state.safetensors.77.part", folder / "rounds" / ".000004.safetensors.77.part"]
    for path in left:
        path.write_bytes(b"half")
    go_on(folder)
    assert not any(path.exists() for path in left)


def test_a_run_without_rounds_and_state_is_not_called_whole(stored, tmp_path):
    folder = shutil.copytree(stored["own"], tmp_path / "run")
    shutil.rmtree(folder / "rounds")
    (folder / files.STATE).unlink()
    (problem,) = [problem for problem in verify(folder) if problem.file == "rounds"]
    assert "no round is recorded" in problem.what


def test_what_lies_between_a_chains_breaks_is_named_by_the_fewer_files():
    assert chain._foreign_stretches([5]) == []
    assert chain._foreign_stretches([3, 1, 4]) == [1]
    assert chain._foreign_stretches([1, 5]) == [0]
    assert chain._foreign_stretches([1, 1]) == [0, 1]
    assert chain._foreign_stretches([4, 2, 5, 1]) == [1, 3]
