"""Repair drops or recomputes exactly what is broken, bit for bit, and deletes nothing that is whole."""

import pytest
import tiny
import torch

from drift.analyses.landscapes.planes import global_line
from drift.simulation.repair import repair
from drift.simulation.verify import verify
from drift.store import files as store
from drift.store import locks


@pytest.fixture
def run(tmp_path):
    return tiny.trained(tmp_path)


def files(folder):
    """Content of every file by its path; locks left out."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def put(path, content):
    """Replace a file; records read from the old one lie in its memory map and stay as they are."""
    path.with_name("fresh").write_bytes(content)
    path.with_name("fresh").replace(path)


def cut(path):
    put(path, path.read_bytes()[:-3])


def same_round(folder, index, before):
    after = store.read_round(folder, index)
    for name in ("ids", "sizes", "weights", "gram", "start", "end", "clients", "start_buffers", "end_buffers"):
        assert torch.equal(getattr(after, name), getattr(before, name)), name
    assert after.metrics.keys() == before.metrics.keys()
    for name in after.metrics.keys() - {"seconds"}:
        assert after.metrics[name] == before.metrics[name]
    assert after.metrics["seconds"] != after.metrics["seconds"]


def test_a_whole_run_is_left_alone(run):
    run.cached(global_line, points=3)
    before = files(run.folder)
    assert repair(run.folder) == []
    assert files(run.folder) == before


def remove(path):
    path.unlink()


@pytest.mark.parametrize(
    ("how", "lost"), [(cut, [0]), (remove, [1]), (cut, [2]), (remove, [0, 1]), (cut, [1, 2]), (remove, [0, 1, 2])]
)
def test_lost_rounds_come_back_bit_for_bit_and_nothing_else_changes(run, lost, how):
    before, kept = {index: run.round(index) for index in run.rounds()}, files(run.folder)
    names = {f"rounds/{index:06d}.safetensors" for index in lost}
    for index in lost:
        how(store.round_path(run.folder, index))
    found = repair(run.folder)
    assert {entry.file for entry in found} == names
    assert all(entry.done for entry in found), found
    assert verify(run.folder) == []
    for index in lost:
        same_round(run.folder, index, before[index])
    assert {name: data for name, data in files(run.folder).items() if name not in names} == {
        name: data for name, data in kept.items() if name not in names
    }


def test_a_lost_state_is_made_again_from_the_last_round(run):
    before = (run.folder / "state.safetensors").read_bytes()
    (run.folder / "state.safetensors").unlink()
    (entry,) = repair(run.folder)
    assert entry.done and entry.file == "state.safetensors"
    assert (run.folder / "state.safetensors").read_bytes() == before


def test_state_and_last_round_lost_together_come_back(run):
    state, last = run.state()[0], run.round(2)
    cut(run.folder / "state.safetensors")
    cut(store.round_path(run.folder, 2))
    assert all(entry.done for entry in repair(run.folder))
    assert verify(run.folder) == []
    assert store.digest(run.state()[0]) == store.digest(state)
    same_round(run.folder, 2, last)


def test_what_the_server_keeps_between_rounds_is_not_guessed(tmp_path):
    run = tiny.trained(tmp_path, "method=fedadam")
    cut(store.round_path(run.folder, 1))
    damaged = files(run.folder)
    (entry,) = repair(run.folder)
    assert not entry.done
    assert "fedadam keeps a state of the server" in entry.what
    assert "delete it together with the run's state.safetensors and train again" in entry.what
    assert files(run.folder) == damaged


@pytest.mark.parametrize("name", ["fedadam", "ima", "fedeve"])
def test_round_0_comes_back_under_every_method(tmp_path, name):
    extra = ["method.window=2", "method.start=0.4"] if name == "ima" else []
    run = tiny.trained(tmp_path, f"method={name}", *extra)
    before = run.round(0)
    cut(store.round_path(run.folder, 0))
    (entry,) = repair(run.folder)
    assert entry.done, entry
    same_round(run.folder, 0, before)


@pytest.mark.parametrize("keep", ["keep.clients=none", "keep.dtype='bfloat16 deltas'"])
def test_rounds_that_do_not_determine_the_next_are_not_used(tmp_path, keep):
    run = tiny.trained(tmp_path, keep)
    cut(store.round_path(run.folder, 1))
    (entry,) = repair(run.folder)
    assert not entry.done
    assert "not recomputed" in entry.what


def test_other_bits_than_the_rest_needs_are_not_written(run, monkeypatch):
    from drift.simulation import recompute

    real = recompute.run_round

    def other(*given):
        record, server = real(*given)
        server.theta[0] += 1e-3
        return record, server

    monkeypatch.setattr(recompute, "run_round", other)
    cut(store.round_path(run.folder, 1))
    before = files(run.folder)
    (entry,) = repair(run.folder)
    assert not entry.done and "other bits" in entry.what
    assert files(run.folder) == before


def test_a_damaged_result_is_removed_and_a_whole_one_stays(run):
    run.cached(global_line, points=3)
    (first,) = (run.folder / "results").glob("*.nc")
    run.cached(global_line, points=5)
    (second,) = set((run.folder / "results").glob("*.nc")) - {first}
    cut(first)
    (entry,) = repair(run.folder)
    assert entry.done and entry.file == f"results/{first.name}"
    assert not first.exists() and second.exists()
    assert run.cached(global_line, points=3).sizes["t"] == 3


def test_left_overs_of_stopped_writes_are_removed(run):
    run.cached(global_line, points=3)
    (whole,) = (run.folder / "results").glob("*.nc")
    (run.folder / "rounds" / ".000003.safetensors.77.part").write_bytes(b"half")
    (run.folder / ".state.safetensors.77.part").write_bytes(b"half")
    whole.with_name(f".{whole.name}.77.part").write_bytes(b"half")
    found = repair(run.folder)
    assert len(found) == 3 and all(entry.done for entry in found)
    assert whole.exists()
    assert repair(run.folder) == []


def test_a_renamed_round_is_put_back(run):
    before = files(run.folder)
    (run.folder / "rounds" / "000001.safetensors").rename(run.folder / "rounds" / "000007.safetensors")
    found = repair(run.folder)
    assert all(entry.done for entry in found), found
    assert files(run.folder) == before


def test_a_whole_round_of_another_run_is_set_aside(run, tmp_path):
    other = tiny.trained(tmp_path / "other", "task.model=mlp")
    before, path = run.round(1), store.round_path(run.folder, 1)
    foreign = store.round_path(other.folder, 1).read_bytes()
    put(path, foreign)
    found = repair(run.folder)
    assert any("kept as 000001.safetensors.aside" in entry.what for entry in found)
    assert path.with_name("000001.safetensors.aside").read_bytes() == foreign
    same_round(run.folder, 1, before)


def test_a_damaged_description_is_named_and_left(run):
    cut(run.folder / "run.json")
    before = files(run.folder)
    (entry,) = repair(run.folder)
    assert not entry.done and entry.file == "run.json"
    assert files(run.folder) == before


def test_a_run_that_is_being_trained_is_left_alone(run):
    with locks.locked(run.folder), pytest.raises(locks.Busy, match="another process"):
        repair(run.folder)


def test_a_result_that_is_being_computed_is_left_alone(run):
    run.cached(global_line, points=3)
    (whole,) = (run.folder / "results").glob("*.nc")
    part = whole.with_name(f".{whole.name}.77.part")
    part.write_bytes(b"half")
    with locks.lock_result(whole):
        (entry,) = repair(run.folder)
    assert not entry.done and "another process" in entry.what
    assert part.exists()
