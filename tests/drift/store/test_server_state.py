"""States of clients in files of their own: only what changed is written, and a stop at any moment costs one round."""

import shutil

import pytest
import tiny
import torch
from warm import printed

import drift
from drift.runs.run import Run
from drift.simulation import run_index
from drift.simulation.repair import repair
from drift.simulation.shared_rounds import begin_from
from drift.simulation.verify import verify
from drift.store import files, numpy_files, server_state
from drift.store.paths import CLIENTS
from landscape.results import atomic_write

pytestmark = pytest.mark.seconds

SCAFFOLD = ("method=scaffold", "local.momentum=0.0")
MANY = ("clients.number=12", "clients.per_round=2", "clients.partition=iid", "rounds=5")


@pytest.fixture
def apart(monkeypatch):
    """All states of clients have files of their own, as if they were large."""
    monkeypatch.setattr(server_state, "ONE_FILE", 0)


def last_rounds(run):
    """Last round in which each client trained, by client."""
    return {int(client): index for index in run.rounds() for client in run.cohort(index)}


def names(run):
    return [path.name for path in server_state.client_files(run.folder)]


@pytest.mark.parametrize(
    "settings",
    [
        [*SCAFFOLD],
        ["method=feddyn", "evaluate_every=2"],
        ["method=moon"],
        ["method=fedrep", "task.model=mlp"],
        ["method=ima", "method.base=scaffold", "method.window=2", "method.start=0", "local.momentum=0.0"],
        ["local.persist_optimizer=true", "local.momentum=0.5"],
        [*SCAFFOLD, "engine=batched"],
        [*SCAFFOLD, "clients.train_all=true"],
    ],
    ids=" ".join,
)
def test_files_of_clients_change_no_bit(tmp_path, monkeypatch, settings):
    together = tiny.trained(tmp_path / "together", *settings)
    monkeypatch.setattr(server_state, "ONE_FILE", 0)
    apart = tiny.trained(tmp_path / "apart", *settings)
    assert not server_state.client_files(together.folder)
    assert names(apart)
    tiny.assert_same_bits(together, apart)
    assert not verify(apart.folder)


def test_each_client_has_the_file_of_its_last_round(tmp_path, apart):
    run = tiny.trained(tmp_path, *SCAFFOLD, *MANY)
    assert names(run) == [f"{client:06d}-{index:06d}.safetensors" for client, index in sorted(last_rounds(run).items())]
    assert len(names(run)) > 2  # of several rounds
    assert len(set(last_rounds(run).values())) > 1


def test_a_round_writes_the_states_of_its_cohort_only(tmp_path, apart, monkeypatch):
    written = []

    def write_bytes(path, *data):
        atomic_write.write_bytes(path, *data)
        written.append((path.parent.name, path.name, path.stat().st_size))

    monkeypatch.setattr(numpy_files, "write_bytes", write_bytes)
    run = tiny.trained(tmp_path, *SCAFFOLD, *MANY)
    commits = [number for number, (_, name, _) in enumerate(written) if name == files.STATE]
    sizes = []
    for number, (begin, end) in enumerate(zip([0, *commits], commits, strict=False)):
        clients = [(name, size) for place, name, size in written[begin:end] if place == CLIENTS]
        expected = [f"{client:06d}-{number:06d}.safetensors" for client in run.cohort(number)]
        assert [name for name, _ in clients] == expected
        sizes.append(sum(size for _, size in clients))
    assert len(sizes) == 5
    assert len(set(sizes)) == 1  # not growing with the clients that were seen
    growth = written[commits[-1]][2] - written[commits[0]][2]
    assert growth < 100 * (len(last_rounds(run)) - 2)  # a line of the table per client, and no state


def test_workers_train_clients_from_files(tmp_path, apart):
    one = tiny.trained(tmp_path / "one", *SCAFFOLD)
    two = drift.simulate(tiny.experiment(*SCAFFOLD), runs=tmp_path / "two", workers=2)
    tiny.assert_same_bits(one, two)


def test_states_leave_the_memory_once_they_are_written(tmp_path, apart):
    run = tiny.trained(tmp_path, *SCAFFOLD)
    states = run.stored_state().clients
    assert all(entry.state is None for entry in states.entries.values())
    fresh = states.updated({0: {"control": torch.ones(3)}})
    server_state.write(run.folder, run.stored_state().tensors, fresh, 3)
    assert fresh.entries[0].state is None
    assert fresh[0]["control"].tolist() == [1, 1, 1]
    assert fresh.entries[1] is states.entries[1]


KILLED = """
import os, sys
import tiny
from drift.simulation import simulate
from drift.store import server_state

server_state.ONE_FILE, settings = 0, sys.argv[2:]


def dying(step, times, calls=[]):
    def call(*arguments, **options):
        calls.append(arguments)
        if len(calls) == times:
            os._exit(9)
        return step(*arguments, **options)
    return call


for times in range(2, 100, int(os.environ["EVERY"])):
    folder = f"{sys.argv[1]}/{times:02d}"
    child = os.fork()
    if child == 0:
        os.replace, os.unlink = (dying(step, times) for step in (os.replace, os.unlink))
        simulate.simulate(tiny.experiment(*settings), runs=folder)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        break
"""
"""Trains once for each replacement and removal of a file, and is killed before it."""


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_a_kill_at_any_write_or_removal_costs_a_round_and_no_bit(tmp_path, apart, every):
    settings = [*SCAFFOLD, *MANY, "rounds=3", "clients.number=3"]
    whole = tiny.trained(tmp_path / "whole", *settings)
    printed(KILLED, str(tmp_path / "killed"), *settings, EVERY=str(every))
    *killed, ended = sorted((tmp_path / "killed").iterdir())
    tiny.assert_same_bits(Run(ended / whole.name), whole)
    begun = set()
    for runs in killed:
        folder = runs / whole.name
        complete = Run(folder).committed == 3
        begun.add(len(server_state.client_files(folder)))
        if any(folder.glob("rounds/*.safetensors")):
            assert not verify(folder)
        resumed = drift.simulate(tiny.experiment(*settings), runs=runs)
        tiny.assert_same_bits(resumed, whole)
        if complete:  # killed in removing files, which repair does
            assert all(entry.done for entry in repair(folder))
        assert names(resumed) == names(whole)
        assert not verify(folder)
    assert len(killed) > 3 * 4 // every  # in each round its file, two clients and the state, and removals
    assert begun >= set(range(6)) or (every > 1 and len(begun) > 3)  # files of two rounds before the second's commit


def test_a_run_with_all_states_in_one_file_goes_on(tmp_path, monkeypatch):
    settings = [*SCAFFOLD, *MANY]
    whole = tiny.trained(tmp_path / "whole", *settings)
    begun = drift.simulate(tiny.experiment(*settings), runs=tmp_path / "begun", until=3)
    monkeypatch.setattr(server_state, "ONE_FILE", 0)
    tiny.assert_same_bits(drift.simulate(tiny.experiment(*settings), runs=tmp_path / "begun"), whole)
    assert names(begun)


def test_runs_that_share_rounds_have_files_of_their_own(tmp_path, apart):
    scaffold = drift.simulate(tiny.experiment(*SCAFFOLD), runs=tmp_path / "runs", until=1)
    ima = tiny.experiment(
        "method=ima", "method.base=scaffold", "method.window=1", "method.start=0.7", "local.momentum=0.0"
    )
    assert begin_from(scaffold, ima, runs=tmp_path / "runs") == 1
    shutil.rmtree(scaffold.folder)
    tiny.assert_same_bits(drift.simulate(ima, runs=tmp_path / "runs"), drift.simulate(ima, runs=tmp_path / "whole"))


def spoil(path, how):
    if how == "missing":
        path.unlink()
    elif how == "altered":
        path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    else:  # of another client
        shutil.copy(next(other for other in path.parent.iterdir() if other != path), path)


@pytest.mark.parametrize("how", ["missing", "altered", "exchanged"])
def test_damage_is_named_by_verify_and_stops_training(tmp_path, apart, how):
    run = drift.simulate(tiny.experiment(*SCAFFOLD), runs=tmp_path, until=2)
    path = server_state.client_files(run.folder)[0]
    spoil(path, how)
    (problem,) = verify(run.folder)
    assert problem.file == f"clients/{path.name}"
    (repaired,) = repair(run.folder)
    assert not repaired.done
    assert repaired.file == problem.file
    with pytest.raises(files.Damaged, match=path.name):
        run.state()
    (row,) = run_index.index(tmp_path)
    assert row["rounds"]
    if int(path.name[:6]) in run.cohort(2) or how == "missing":
        with pytest.raises(files.Damaged, match="train again"):
            drift.simulate(tiny.experiment(*SCAFFOLD), runs=tmp_path)


def test_left_overs_are_removed_and_foreign_files_named(tmp_path, apart):
    run = drift.simulate(tiny.experiment(*SCAFFOLD), runs=tmp_path, until=2)
    folder = run.folder / CLIENTS
    stale = folder / "000000-000009.safetensors"
    shutil.copy(server_state.client_files(run.folder)[0], stale)  # of a round that was not committed
    (folder / ".000001-000002.safetensors.77.part").write_bytes(b"half")
    (folder / "notes.txt").write_text("mine")
    assert [problem.file for problem in verify(run.folder)] == ["clients/notes.txt"]
    drift.simulate(tiny.experiment(*SCAFFOLD), runs=tmp_path)
    assert not stale.exists()
    assert not list(folder.glob(".*.part"))
    assert (folder / "notes.txt").exists()
