"""Runs are opened when they are looked at, grow while they are trained, and say in one line what is wrong with them."""

import shutil

import pytest
import tiny

import drift
from drift.simulation.simulate import simulate
from figures.explore.work.open_runs import OpenRuns


def test_runs_of_folders_are_named_and_opened(tmp_path):
    run = tiny.trained(tmp_path, "rounds=1")
    twin = tmp_path / "b" / run.name
    shutil.copytree(run.folder, twin)
    runs = OpenRuns([tmp_path, twin, run.folder])
    assert runs.names == [run.name, f"b/{run.name}"]
    assert runs.run(f"b/{run.name}").folder == twin.resolve() and runs.run(run.name) is runs.run(run.name)
    with pytest.raises(LookupError, match="no run named 'x'"):
        runs.run("x")


def test_runs_keep_how_they_were_opened(tmp_path):
    run = tiny.trained(tmp_path, "rounds=1")
    own = drift.open(run.folder, task=run.task)
    runs = OpenRuns([own])
    assert runs.run(run.name) is own and runs.recorded(run.name).task.samples is own.task.samples


def test_places_are_checked(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LookupError, match="is a file"):
        OpenRuns([tmp_path / "file"])
    with pytest.raises(LookupError, match=r"does not exist.*fedscape"):
        OpenRuns([tmp_path / "absent"])
    assert OpenRuns([tmp_path]).names == []


def test_a_run_appears_and_grows_and_only_commits_count(tmp_path):
    runs = OpenRuns([tmp_path])
    name = tiny.experiment("rounds=4").slug
    simulate(tiny.experiment("rounds=4"), runs=tmp_path, until=2)
    assert runs.poll().added == {name}
    assert runs.recorded(name).numbers().sizes == {"round": 2}
    (runs.run(name).folder / "rounds" / "half-written.tmp").write_bytes(b"x")
    assert not runs.poll().grown
    simulate(tiny.experiment("rounds=4"), runs=tmp_path)
    changes = runs.poll()
    assert changes.grown == {name} and not changes.added and runs.recorded(name).numbers().sizes == {"round": 4}
    assert not runs.poll().grown


def test_vanished_and_cut_runs_have_one_line_and_what_was_read(tmp_path):
    run = tiny.trained(tmp_path, "rounds=3")
    runs = OpenRuns([tmp_path])
    assert runs.recorded(run.name).numbers().sizes == {"round": 3} and runs.problem(run.name) == ""
    away = tmp_path.parent / "away"
    shutil.move(run.folder, away)
    assert runs.poll().gone == {run.name}
    assert "is gone" in runs.problem(run.name) and runs.recorded(run.name).numbers().sizes == {"round": 3}
    with pytest.raises(LookupError):
        runs.run(run.name)
    shutil.move(away, run.folder)
    assert runs.poll().grown == {run.name} and runs.problem(run.name) == ""
    (run.folder / "rounds" / "000001.safetensors").unlink()
    assert runs.poll().problems == {run.name}
    assert runs.problem(run.name) == "" and [*runs.recorded(run.name).damaged] == [1]
    assert runs.recorded(run.name).numbers()["round"].values.tolist() == [0, 2], "the others are read"


def test_a_damaged_description_is_a_problem_of_its_run_alone(tmp_path):
    good, bad = (tiny.trained(tmp_path, "rounds=1", f"seed={seed}") for seed in (1, 2))
    (bad.folder / "run.json").write_text("{")
    runs = OpenRuns([tmp_path])
    assert runs.recorded(good.name).rounds() == [0] and runs.recorded(bad.name).rounds() == []
    assert runs.problem(good.name) == "" and "cannot be read" in runs.problem(bad.name)
    assert runs.suggested == [good.name]


def test_runs_to_begin_with_share_their_setting(tmp_path):
    for overrides in (["seed=1"], ["seed=2"], ["method=fedprox", "seed=1"], ["clients.number=5", "seed=1"]):
        tiny.trained(tmp_path, "rounds=1", *overrides)
    suggested = OpenRuns([tmp_path]).suggested
    assert len(suggested) == 3 and {drift.open(tmp_path / name).experiment.clients.number for name in suggested} == {4}
