"""Worker processes: every job is done, errors come back, and the dead are replaced."""

import os
import signal
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

import psutil
import pytest
import torch

from drift.parallel.job_pool import JobWatch, require_workers
from drift.parallel.shared_tensors import (
    MemoryRegion,
    deserialize,
    map_memory,
    pickle_without_tensors,
    serialize,
    share_memory,
    unpickle_with_tensors,
)
from drift.parallel.worker_pool import LIVES, Crashed, Workers


class Odd(Exception):
    """An error that cannot be sent."""

    def __init__(self, left, right):
        super().__init__(left + right)


def begun(start):
    return [start]


def work(values, job):
    kind, value = job
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "die once":
        if not Path(value).exists():
            Path(value).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "alive"
    if kind == "wrong":
        raise ValueError(value)
    if kind == "warn":
        warnings.warn(value, RuntimeWarning, stacklevel=1)
    if kind == "odd":
        raise Odd("a", "b")
    values.append(value)
    return values[0] + value


def shared_work(values, shared, job):
    values.append(shared["models"].data_ptr())
    return len(set(values)) - 1, float(shared["models"].sum()) + job, torch.get_num_threads()


def test_a_shared_value_reaches_a_worker_once_per_call_and_jobs_have_one_thread():
    with Workers(1, begun, 0) as workers:
        for value in (torch.ones(3), torch.full((5,), 2.0)):
            done = dict(workers.as_completed(shared_work, [10, 20, 30], shared={"models": value}))
            total = float(value.sum())
            assert [done[place][1:] for place in range(3)] == [(total + job, 1) for job in (10, 20, 30)]
            assert len({done[place][0] for place in range(3)}) == 1, "its tensors lie at one place"
        with workers.memory(8) as path:
            path.write_bytes(b"12345678")
            assert path.read_bytes() == b"12345678"


def test_warnings_of_jobs_are_given_again_with_their_class(recwarn):
    with Workers(2, begun, "a") as workers:
        results = sorted(result.result for result in workers.results(work, [("add", "b"), ("warn", "is odd")]))
    assert results == ["ab", "ais odd"]
    assert [(str(given.message), given.category) for given in recwarn] == [("is odd", RuntimeWarning)]


def test_jobs_end_in_any_order_and_a_death_costs_one_job_one_try(tmp_path):
    jobs = [
        ("add", 1),
        ("die once", str(tmp_path / "died")),
        ("wrong", "bad value"),
        ("die", 0),
        ("odd", 0),
        ("add", 2),
    ]
    seen = set()
    with Workers(2, begun, 10) as workers:
        before = workers.pids()
        ended = {job.index: job for job in workers.results(work, jobs, watch=JobWatch(seen.update))}
        assert workers.pids() != before
        again = [job.result for job in workers.results(work, [("add", torch.ones(2, 3))])]
    assert sorted(ended) == list(range(len(jobs))) and seen == set(range(len(jobs)))
    assert (ended[0].result, ended[1].result, ended[5].result) == (11, "alive", 12)
    assert isinstance(ended[2].error, ValueError) and str(ended[2].error) == "bad value"
    assert isinstance(ended[3].error, Crashed) and f"{LIVES} workers died" in str(ended[3].error)
    assert isinstance(ended[4].error, Exception) and str(ended[4].error) == "ab"
    assert torch.equal(again[0], torch.full((2, 3), 11.0))


def sleep(values, path):
    Path(path).write_text(str(os.getpid()))
    time.sleep(300)


def wait_for_workers(places):
    with Workers(len(places), begun, 10) as workers:
        list(workers.results(sleep, places))


def test_workers_of_a_killed_process_end_in_the_middle_of_their_jobs(tmp_path):
    places = [str(tmp_path / name) for name in "ab"]
    parent = get_context("spawn").Process(target=wait_for_workers, args=(places,))
    parent.start()
    until = time.monotonic() + 60
    while not all(Path(place).exists() and Path(place).read_text() for place in places):
        assert time.monotonic() < until and parent.is_alive()
        time.sleep(0.05)
    parent.kill()
    parent.join()
    workers = [
        psutil.Process(pid) for pid in map(int, map(Path.read_text, map(Path, places))) if psutil.pid_exists(pid)
    ]
    alive = psutil.wait_procs(workers, timeout=5)[1]
    zombies = [process for process in alive if process.status() == psutil.STATUS_ZOMBIE]  # nobody reaps orphans here
    for process in alive:
        process.kill()
    assert zombies == alive


def test_a_worker_begins_in_a_fresh_process(cold):
    with Workers(1, begun, 10) as workers:
        assert [job.result for job in workers.results(work, [("add", 1)])] == [11]


def test_there_is_at_least_one_worker():
    for number in ("2", None, 2.0, True):
        with pytest.raises(ValueError, match=f"^workers is {number!r}; give 1 or more"):
            require_workers(number)
    with pytest.raises(ValueError, match="workers is 0"):
        Workers(0, begun, 1)


def test_values_are_put_together_as_they_were():
    shared = torch.arange(6.0).view(2, 3)
    value = {"a": [shared, shared], "b": (torch.tensor(3), torch.zeros(0, 4)), "c": torch.ones(3, dtype=torch.bfloat16)}
    for copy in (unpickle_with_tensors(*pickle_without_tensors(value)), deserialize(serialize(value))):
        assert torch.equal(copy["a"][0], shared) and copy["a"][0] is copy["a"][1]
        assert copy["b"][0] == 3 and copy["b"][1].shape == (0, 4)
        assert copy["c"].dtype == torch.bfloat16 and copy["c"].float().sum() == 3


def test_shared_values_lie_once_in_memory_and_nobody_writes_into_them():
    value = [torch.arange(5.0), torch.arange(3)]
    note, region = share_memory(value)
    with region:
        first = note.load()
        first[0].zero_()
        other = note.load()
    assert torch.equal(other[0], value[0]) and torch.equal(other[1], value[1])
    assert other[1].data_ptr() % 64 == 0
    with pytest.raises(RuntimeError):
        map_memory(region.path + "x", region.size)


def test_a_region_is_seen_by_all_who_map_it():
    with MemoryRegion(8) as region:
        left, right = (map_memory(region.path, region.size, writable=True) for _ in range(2))
        left.fill_(7)
        assert right.tolist() == [7] * 8


def test_more_processes_than_a_machine_bears_are_refused():
    with pytest.raises(ValueError, match=r"workers is 1000000; give 1 or more, and at most \d+ \(16 for each core\)"):
        Workers(1_000_000)
