"""Runs that are stopped, killed or out of disk: the same bits when they go on, and what is left when they cannot."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import tiny

from drift.config.load import read, validated
from drift.runs.run import Run
from drift.simulation import background_writer
from drift.simulation.simulate import simulate
from drift.store import files


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["local.persist_optimizer=true"],
        ["method.name=ima", "method.start=0.5", "method.window=2"],
        ["method.name=fedfomo", "clients.valid_ratio=0.3"],
    ],
)
def test_a_run_stopped_between_rounds_goes_on_with_the_same_bits(tmp_path, changes, monkeypatch):
    monkeypatch.setattr(background_writer, "SHARE", 0.0)  # a round is on disk before the next one trains
    experiment = read(validated(tiny.DIGITS), *changes)
    whole = simulate(experiment, runs=tmp_path / "whole")

    def stop(record):
        if record.index == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(experiment, runs=tmp_path / "parts", progress=stop)
    tiny.assert_same_bits(simulate(experiment, runs=tmp_path / "parts"), whole)


def test_a_round_written_without_its_commit_is_played_again(tmp_path, monkeypatch):
    """A kill between the round's file and the state leaves a file that does not count yet."""
    whole = simulate(validated(tiny.DIGITS), runs=tmp_path / "whole")
    real, calls = files.write_tensors, []

    def dies_before_third_commit(path, tensors, about, **options):
        if path.name == "state.safetensors":
            calls.append(path)
            if len(calls) == 3:
                raise KeyboardInterrupt
        real(path, tensors, about, **options)

    monkeypatch.setattr(files, "write_tensors", dies_before_third_commit)
    with pytest.raises(KeyboardInterrupt):
        simulate(validated(tiny.DIGITS), runs=tmp_path / "parts")
    monkeypatch.undo()
    stopped = Run(tmp_path / "parts" / whole.name)
    assert stopped.rounds() == [0, 1]
    assert files.round_path(stopped.folder, 2).exists()
    tiny.assert_same_bits(simulate(validated(tiny.DIGITS), runs=tmp_path / "parts"), whole)


CHILD = """
import sys
import json

from drift.config.load import validated
from drift.simulation.simulate import simulate

simulate(validated(json.loads(sys.argv[1])), runs=sys.argv[2], progress=lambda record: print(record.index, flush=True))
"""


@pytest.mark.slow  # tests/torture/test_short.py kills training, recording and analysis
def test_kill_9_at_random_moments_then_resume_gives_the_same_bits(tmp_path):
    """The process is killed at random moments until it gets through; another process never was."""
    settings = {**tiny.DIGITS, "rounds": 12, "local": {"lr": 0.1, "epochs": 3, "batch": 4}}
    arguments = [sys.executable, "-c", CHILD, json.dumps(settings)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole = simulate(validated(settings), runs=tmp_path / "whole")
    moments = np.random.default_rng(0).uniform(0, 0.25, size=4)
    kills = 0
    for moment in moments:
        child = subprocess.Popen([*arguments, str(tmp_path / "parts")], stdout=subprocess.PIPE, env=environment)
        child.stdout.readline()  # at least one round of this life is written
        time.sleep(moment)
        kills += child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert kills, "every child finished before it was killed; make the run longer"
    tiny.assert_same_bits(simulate(validated(settings), runs=tmp_path / "parts"), whole)


def test_two_processes_give_the_same_bits(tmp_path):
    here = simulate(validated(tiny.DIGITS), runs=tmp_path / "here")
    subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(tiny.DIGITS), str(tmp_path / "there")],
        check=True,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "77"},
    )
    tiny.assert_same_bits(Run(tmp_path / "there" / here.name), here)


def test_a_run_that_would_not_fit_the_disk_is_refused_before_it_starts(tmp_path, monkeypatch):
    monkeypatch.setattr("drift.simulation.disk_space.shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match="keep fewer rounds"):
        simulate(validated(tiny.DIGITS), runs=tmp_path)
    assert not list(tmp_path.glob("*/rounds"))


def test_a_disk_that_fills_up_leaves_the_last_round_readable(tmp_path, monkeypatch):
    whole = simulate(validated(tiny.DIGITS), runs=tmp_path / "whole")
    real, writes = os.fsync, []

    def full(descriptor: int) -> None:
        writes.append(descriptor)
        if len(writes) == 6:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        simulate(validated(tiny.DIGITS), runs=tmp_path / "parts")
    monkeypatch.undo()
    stopped = Run(tmp_path / "parts" / whole.name)
    assert stopped.round(-1).index == stopped.committed - 1
    assert not list(stopped.folder.rglob("*.part"))
    tiny.assert_same_bits(simulate(validated(tiny.DIGITS), runs=tmp_path / "parts"), whole)
