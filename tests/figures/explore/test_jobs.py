"""Work in other processes: order, progress, cancel, death of a process, runs that only this process can open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import get_context

import pytest
import tiny

import drift
from figures.explore.work import lanes, stopping
from figures.explore.work.jobs import Jobs


def process_and_item(run, item):
    return os.getpid(), run.name, item


def slow(run, item):
    time.sleep(item)
    return item


def refuse(run, item):
    raise LookupError(f"no {item}.")


def die_once(run, path):
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def die(run, item):
    os.kill(os.getpid(), signal.SIGKILL)


def unsendable(run, item):
    return lambda: None


def count_slowly(run, steps):
    for step in range(steps):
        run.context.progress(step, steps)
        time.sleep(0.05)
    return os.getpid()


def names(runs):
    return os.getpid(), [run.name for run in runs]


def loaded(run):
    return [name in sys.modules for name in lanes.LOADED]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


def ended(start):
    """The job that `start(on_end)` returns, once it has ended."""
    event = threading.Event()
    job = start(lambda job: event.set())
    assert event.wait(60)
    return job


def results(jobs, function, run, items, **how):
    """The last of the jobs of some items, and their results."""
    called = [ended(lambda end, item=item: jobs.quick(function, run, item, on_end=end, **how)) for item in items]
    return called[-1], [job.result for job in called]


def test_quick_calls_share_one_other_process(jobs, run):
    job, values = results(jobs, process_and_item, run, ["a", "b", "c"])
    assert (job.state, job.seconds_left) == ("done", None)
    assert [values[place][1:] for place in range(3)] == [(run.name, "a"), (run.name, "b"), (run.name, "c")]
    assert len({values[place][0] for place in range(3)} - {os.getpid()}) == 1


def test_calls_begin_in_a_fresh_process(run, cold):
    fresh = Jobs(threads=2)
    job, values = results(fresh, process_and_item, run, ["a"])
    assert job.state == "done" and values[0][0] != os.getpid()
    fresh.close()


def test_an_error_ends_a_job(jobs, run):
    job, _ = results(jobs, refuse, run, ["luck"])
    assert job.state == "failed" and str(job.error) == "no luck." and isinstance(job.error, LookupError)
    job, _ = results(jobs, unsendable, run, [0])
    assert "cannot be sent" in str(job.error)


def test_urgent_calls_come_first(jobs, run):
    order, event = [], threading.Event()
    for _ in range(2):
        jobs.quick(slow, run, 0.5, priority=20)  # both threads are busy
    for _ in range(2):
        jobs.quick(
            slow, run, 0.3, priority=15, on_end=lambda job: (order.append("late"), len(order) < 3 or event.set())
        )
    jobs.quick(slow, run, 0.0, priority=12, on_end=lambda job: order.append("soon"))
    assert event.wait(60)
    assert order == ["soon", "late", "late"]


def test_what_a_hand_waits_for_has_a_thread_of_its_own(jobs, run):
    busy, event = [jobs.quick(slow, run, 3.0, priority=20) for _ in range(2)], threading.Event()
    jobs.quick(slow, run, 0.0, priority=0, on_end=lambda job: event.set())
    assert event.wait(2) and not any(job.ended for job in busy)
    for job in busy:
        job.cancel()


def wait_for_the_end(run, blocks):
    for block in range(blocks):
        stopping.step(block, blocks)
        time.sleep(0.01)
    return os.getpid()


def test_a_cancelled_call_ends_between_two_blocks_and_frees_its_thread(jobs, run):
    endless = [jobs.quick(wait_for_the_end, run, 10**7, priority=20) for _ in range(2)]
    time.sleep(0.3)
    for job in endless:
        job.cancel()
    job, values = results(jobs, wait_for_the_end, run, [3, 3, 3], priority=20)
    assert job.state == "done" and len(set(values)) == 1
    for _ in range(20):  # else all threads of the process would be busy for hours
        jobs.quick(wait_for_the_end, run, 10**7, priority=20).cancel()
    assert results(jobs, slow, run, [0.0, 0.0, 0.0], priority=20)[0].state == "done"


def test_a_cancelled_job_reports_nothing_more(jobs, run):
    steps = []
    job = jobs.quick(wait_for_the_end, run, 10**7, on_progress=lambda job: steps.append((job.done, job.total)))
    while len(steps) < 3:
        time.sleep(0.01)
    assert job.seconds_left > 100, "10 ms each of ten million steps"
    job.cancel()
    seen = len(steps)
    assert (job.state, steps[:2]) == ("cancelled", [(0, 10**7), (1, 10**7)])
    assert results(jobs, slow, run, [0.0])[0].state == "done"
    assert len(steps) == seen and job not in jobs.active


def test_calls_of_a_process_that_died_are_repeated_once(jobs, run, tmp_path):
    job, values = results(jobs, die_once, run, [str(tmp_path / "died")])
    assert (job.state, values) == ("done", ["alive"])
    job, _ = results(jobs, die, run, [0])
    assert job.state == "failed" and "signal 9" in str(job.error)
    assert results(jobs, slow, run, [0.0])[0].state == "done"


SCRIPT = """
import sys
import threading

import drift
from figures.explore.work.jobs import Jobs
from figures.page.diagnosis import diagnosis

print("begun", flush=True)
over, jobs, run = threading.Event(), Jobs(), drift.open(sys.argv[1])
job = jobs.long(diagnosis, run, on_end=lambda job: over.set())
over.wait()
print(job.state, sys.modules["__main__"].__file__ == __file__, flush=True)
jobs.close()
"""


def test_a_script_without_a_main_guard_runs_once(run, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), str(run.folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["begun", "done", "True"], done.stderr


class NoProcess:
    """In place of the processes of a machine that can start none."""

    def Process(self, **about):
        return self

    def Pipe(self):
        return get_context("spawn").Pipe()

    def set_forkserver_preload(self, names):
        pass

    def start(self):
        raise BlockingIOError(11, "Resource temporarily unavailable")


def test_a_process_that_cannot_start_is_one_line_and_is_tried_again(run, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(lanes, "get_context", lambda kind: NoProcess())
        own = Jobs(threads=1)
        for start in (own.quick, own.long):
            for _ in range(2):
                job = ended(lambda end, start=start: start(slow, run, 0.0, on_end=end))
                assert job.state == "failed" and isinstance(job.error, lanes.LostProcess)
                assert "no process can be started" in str(job.error) and "temporarily unavailable" in str(job.error)
        assert own.active == []
    assert results(own, slow, run, [0.0])[0].state == "done"
    own.close()


def test_runs_with_a_task_of_the_users_stay_in_this_process(jobs, run):
    own = drift.open(run.folder, task=run.task)
    job, values = results(jobs, process_and_item, own, ["a"])
    assert values[0][0] == os.getpid()
    assert ended(lambda end: jobs.long(count_slowly, own, 2, on_end=end)).result == os.getpid()
    job = jobs.long(count_slowly, own, 10_000)
    job.cancel()
    assert job.state == "cancelled"


def test_a_long_computation_reports_and_is_killed_by_cancel(jobs, run):
    seen, event = [], threading.Event()

    def note(job):
        seen.append((job.done, job.total, job.seconds_left))
        event.set()

    job = jobs.long(count_slowly, run, 10_000, on_progress=note)
    following = jobs.long(names, [run, run], title="next")
    assert event.wait(60) and following.state == "waiting" and following in jobs.active
    job.cancel()
    assert job.state == "cancelled" and seen[0][1] == 10_000
    while not following.ended:
        time.sleep(0.02)
    process, called = following.result
    assert following.state == "done" and process != os.getpid() and called == [run.name] * 2


def test_a_run_that_is_gone_is_one_line(jobs, run, tmp_path):
    import shutil

    folder = tmp_path / "gone"
    shutil.copytree(run.folder, folder)
    gone = drift.open(folder)
    assert results(jobs, slow, gone, [0.0])[0].state == "done"
    shutil.rmtree(folder)
    job, _ = results(jobs, slow, gone, [0.0])
    assert job.state == "failed" and "no longer exists" in str(job.error)


@pytest.mark.skipif(not lanes.FORKED, reason="processes load what they need here")
def test_a_long_computation_begins_with_what_calls_need(run, cold):
    own = Jobs(threads=1)
    try:
        ended = threading.Event()
        job = own.long(loaded, run, on_end=lambda job: ended.set())
        assert ended.wait(120)
        assert job.result == [True] * len(lanes.LOADED)
    finally:
        own.close()
