"""Rounds are written in the background: in order, unchanged, and every failure reaches the one who trains."""

import os
import threading
import time
from dataclasses import replace

import pytest
import tiny
import torch
from kinds import FEW, one_of_each
from torture.settings import of_method

from drift.config import method as methods
from drift.runs.run import Run
from drift.simulation import background_writer
from drift.simulation.background_writer import Writer
from drift.simulation.simulate import simulate
from drift.simulation.unfinished_round import UnfinishedRound
from drift.store import files, numpy_files
from drift.store.keep import Keep
from drift.store.server_state import ClientStates
from drift.training.server import Server


def server(following: int) -> Server:
    return Server(torch.full((3,), float(following)), torch.zeros(0), torch.zeros(3), {}, {}, following)


@pytest.fixture
def record(tmp_path):
    return tiny.trained(tmp_path / "source").round(0)


def test_rounds_are_committed_in_order_and_reported_once(tmp_path, record):
    with Writer(tmp_path, Keep(), 9) as background:
        for index in range(5):
            background.put(UnfinishedRound(replace(record, index=index)), server(index + 1))
        background.flush()
        assert [found.index for found in background.committed()] == [0, 1, 2, 3, 4]
        assert background.committed() == []
    tensors, following = files.read_state(tmp_path)
    assert following == 5
    assert torch.equal(tensors["theta"], torch.full((3,), 5.0))
    assert files.read_round(tmp_path, 4).index == 4


def test_no_more_than_a_few_rounds_wait(tmp_path, record, monkeypatch):
    gate = threading.Event()
    real = files.write_round
    monkeypatch.setattr(files, "write_round", lambda *given: (gate.wait(), real(*given)))
    put = []

    def fill(background):
        for index in range(9):
            background.put(UnfinishedRound(replace(record, index=index)), server(index + 1))
            put.append(index)

    with Writer(tmp_path, Keep(), 9) as background:
        filling = threading.Thread(target=fill, args=(background,))
        filling.start()
        time.sleep(0.2)
        assert len(put) == background_writer.WAITING + 1
        gate.set()
        filling.join()
    assert files.read_state(tmp_path)[1] == 9


def test_where_memory_is_short_a_round_is_on_disk_before_the_next(tmp_path, record, monkeypatch):
    monkeypatch.setattr(background_writer, "SHARE", 0.0)
    with Writer(tmp_path, Keep(), 9) as background:
        background.put(UnfinishedRound(record), server(1))
        assert files.read_state(tmp_path)[1] == 1


def test_the_state_is_never_ahead_of_the_round(tmp_path, record, monkeypatch):
    real, seen = numpy_files.write_bytes, []
    monkeypatch.setattr(numpy_files, "write_bytes", lambda path, *data: (seen.append(path.name), real(path, *data)))
    with Writer(tmp_path, Keep(), 9) as background:
        for index in range(2):
            background.put(UnfinishedRound(replace(record, index=index)), server(index + 1))
    assert seen == ["000000.safetensors", "state.safetensors", "000001.safetensors", "state.safetensors"]


def test_a_failed_write_is_raised_by_the_next_call_and_drops_what_waits(tmp_path, record, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    def write():
        with Writer(tmp_path, Keep(), 9) as background:
            background.put(UnfinishedRound(record), server(1))
            background.flush()
            monkeypatch.setattr(files, "write_round", full)
            for index in range(1, 9):
                background.put(UnfinishedRound(replace(record, index=index)), server(index + 1))

    with pytest.raises(OSError, match="No space left"):
        write()
    assert files.read_state(tmp_path)[1] == 1
    assert len(list((tmp_path / "rounds").iterdir())) == 1


def test_a_failure_after_the_last_round_is_raised_too(tmp_path, record, monkeypatch):
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(30, "Read-only file system")))
    with pytest.raises(OSError, match="Read-only"), Writer(tmp_path, Keep(), 9) as background:
        background.put(UnfinishedRound(record), server(1))


def test_an_interruption_leaves_what_was_put_on_disk(tmp_path, record):
    def interrupted():
        with Writer(tmp_path, Keep(), 9) as background:
            background.put(UnfinishedRound(record), server(1))
            background.put(UnfinishedRound(replace(record, index=1)), server(2))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert files.read_state(tmp_path)[1] == 2


def test_a_record_without_a_server_commits_nothing(tmp_path, record):
    with Writer(tmp_path, Keep(), 9) as background:
        background.put(UnfinishedRound(record), None)
        background.flush()
        assert background.committed() == []
    assert files.round_path(tmp_path, 0).exists()
    assert not (tmp_path / "state.safetensors").exists()


def test_a_slow_disk_gives_the_bits_of_a_fast_one(tmp_path, monkeypatch):
    fast = tiny.trained(tmp_path / "fast")
    real = files.write_round
    monkeypatch.setattr(files, "write_round", lambda *given: (time.sleep(0.05), real(*given)))
    slow = tiny.trained(tmp_path / "slow")
    for index in fast.rounds():
        assert torch.equal(fast.round(index).gram, slow.round(index).gram)
    assert files.digest(fast.state()[0]) == files.digest(slow.state()[0])


@pytest.mark.parametrize("name", one_of_each(methods.names(), (*FEW, "fedrep", "fedfomo")))
def test_no_method_changes_what_waits_to_be_written(tmp_path, monkeypatch, name):
    """What is put and what is written later, while the next round trains, have the same digest."""
    before: dict[int, str] = {}
    real_put, real_write = Writer.put, Writer._write

    def content(trained, state, clients):
        record = trained.finished()
        parts = {"clients": record.clients, "end": record.end, "gram": record.gram, **record.sent, **record.carried}
        parts |= record.extras
        state = {**state, **ClientStates(clients).tensors()}
        return files.digest({**parts, **{f"state {name}": value for name, value in state.items()}})

    def put(self, trained, after):
        before[trained.record.index] = content(trained, after.tensors(), after.clients)
        real_put(self, trained, after)

    def write(self, job):
        deadline = time.perf_counter() + 0.2
        index = job.trained.record.index
        while len(before) <= index + 1 < 3 and time.perf_counter() < deadline:
            time.sleep(0.005)
        assert content(job.trained, job.state, job.clients) == before[index]
        return real_write(self, job)

    monkeypatch.setattr(Writer, "put", put)
    monkeypatch.setattr(Writer, "_write", write)
    run = simulate(of_method(name), runs=tmp_path)
    assert Run(run.folder).committed == 3
