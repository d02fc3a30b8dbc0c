"""A page asks and is told: the scene, growth, jobs, refusals, and that cancelled work stops."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest
import tiny
from asking import page, unpacked

from drift.simulation.simulate import simulate
from figures.axes.units import ABSENT
from figures.explore.answers import landscape as landscape_module
from figures.explore.session import plain_line
from figures.explore.work.messages import plain_error
from figures.gallery._runs import select_comparable
from figures.page.pictures import or_why


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two seeds of one method, and another method."""
    folder = tmp_path_factory.mktemp("runs")
    for overrides in (("seed=5",), ("seed=6",), ("method=fedprox", "method.mu=0.1")):
        tiny.trained(folder, *overrides)
    return folder


@pytest.fixture(scope="module")
def opened(folder, jobs):
    with page(folder, jobs=jobs) as one:
        yield one


def by_label(scene):
    return {entry["label"]: entry for entry in scene["runs"]}


def test_the_scene_has_runs_of_all_seeds_with_their_curves(opened, folder):
    scene = opened.ask("scene")
    entry = by_label(scene)["FedAvg"]
    assert [one["seed"] for one in entry["names"]] == ["5", "6"]
    assert entry["key"] == entry["names"][0]["name"] and (folder / entry["key"]).is_dir()
    run = opened.workspace.runs.run(entry["key"])
    assert entry["rounds"] == entry["able"] == [0, 1, 2]
    both = [opened.workspace.runs.run(one["name"]).metrics().loss.values for one in entry["names"]]
    assert unpacked(entry["series"]["loss"]) == pytest.approx(np.mean(both, axis=0), rel=1e-6)
    seeds = [opened.workspace.runs.run(one["name"]).metrics().accuracy.values for one in entry["names"]]
    assert entry["accuracies"] == pytest.approx([values.mean() for values in seeds])
    assert (entry["state"], entry["note"], entry["planned"]) == ("complete", "", 3)
    told = dict(map(tuple, entry["text"]))
    assert (told["local.lr"], told["local.steps"]) == ("0.05", ABSENT)
    assert ["method.mu", "0.1"] in [list(pair) for pair in by_label(scene)["FedProx"]["settings"]]
    assert scene["suggested"] == [one["key"] for one in scene["runs"]] and scene["none_yet"] == ""
    assert scene["classes"] == list(map(str, run.dataset.classes)) and scene["unit"] == "nats"
    changed = opened.wait(lambda message: message.get("push") == "scene" and message["value"]["runs"])["value"]
    assert "gain" in changed["runs"][-1]["series"], "what an analysis of the record gives comes later"
    assert changed["keys"] == [one["key"] for one in scene["runs"]]


def test_an_empty_folder_says_what_to_do_and_a_run_appears_in_it(jobs, tmp_path):
    with page(tmp_path, jobs=jobs) as one:
        scene = one.ask("scene")
        assert scene["runs"] == [] and "fedscape train digits-shards2" in scene["none_yet"]
        run = tiny.trained(tmp_path)
        told = one.wait(lambda message: message.get("push") == "scene" and message["value"].get("classes"))["value"]
        assert told["keys"] == [run.name] and told["runs"][0]["key"] == run.name
        assert told["classes"] == list(map(str, run.dataset.classes)), "the page had no run to begin with"


def test_a_growing_run_tells_what_changed_alone(jobs, tmp_path):
    tiny.trained(tmp_path, "method=fedprox", "method.mu=0.1")
    simulate(tiny.experiment("rounds=4"), runs=tmp_path, until=2)
    name = tiny.experiment("rounds=4").slug
    with page(tmp_path, jobs=jobs) as one:
        scene = one.ask("scene")
        assert by_label(scene)["FedAvg"]["state"] == "growing"

        def read(entries):
            return {entry["key"] for entry in entries if "gain" in entry["series"]}

        wanted = {entry["key"] for entry in scene["runs"]} - read(scene["runs"])
        # what the records give comes first, or it would come with the growth
        one.wait(lambda message: wanted <= read(entry for value in one.pushed("scene") for entry in value["runs"]))
        simulate(tiny.experiment("rounds=4"), runs=tmp_path)

        def grown(message):
            entries = message["value"]["runs"] if message.get("push") == "scene" else []
            whole = (name, "complete", [0, 1, 2, 3])  # the last round may be listed before it is read
            return any((entry["key"], entry["state"], entry["able"]) == whole for entry in entries)

        told = one.wait(grown)["value"]
        assert [entry["key"] for entry in told["runs"]] == [name]
        assert len(told["keys"]) == 2
        assert len(one.ask("landscape", run=name, round=3, points=3)["cohort"]) == 3


def test_what_is_asked_wrongly_is_refused_in_a_line(opened, folder):
    name = opened.ask("scene")["runs"][0]["key"]
    lines = {
        "no ask named 'landscapes'. Did you mean 'landscape'?": ("landscapes", {}),
        "the ask landscape lacks run, round.": ("landscape", {}),
        "points is 1; give a whole number from 2 to 101.": ("landscape", {"run": name, "round": 1, "points": 1}),
        "spot is ['a', 1]; give two numbers, distances on the plane, of at most 1e30.": (
            "point",
            {"run": name, "round": 1, "spot": ["a", 1]},
        ),
        f"run {name} has no round 77; it has 0 to 2.": ("landscape", {"run": name, "round": 77}),
        "quantity is 'class 9'; this run has": ("landscape", {"run": name, "round": 1, "quantity": "class 9"}),
        "no client 77; the run has clients 0 to 3.": ("landscape", {"run": name, "round": 1, "split": "client 77"}),
        "no run": ("landscape", {"run": "../elsewhere", "round": 1}),
        "run is ['a']; give the name of a run.": ("landscape", {"run": ["a"], "round": 1}),
    }
    for line, (kind, args) in lines.items():
        assert opened.error(kind, **args).startswith(line), line
    for number in ("x", -1, 1.5, True, None):
        line = opened.error("landscape", run=name, round=number)
        assert line == f"round is {number!r}; give the number of a round, 0 or more."
    before = len(opened.messages)
    for message in (None, [], "x", {"id": "7", "ask": "scene"}, {"ask": "scene"}, {"id": 9**9, "cancel": True}):
        opened.session.receive(message)
    assert len(opened.messages) == before


def test_cancelled_work_stops_and_the_page_hears_nothing_more(opened, monkeypatch):
    name = opened.ask("scene")["runs"][0]["key"]
    number = opened.send("landscape", run=name, round=0, points=101, samples="all")
    opened.wait(lambda message: message.get("id") == number and "rough" in message)
    opened.session.receive({"id": number, "cancel": True})
    ends = time.monotonic() + 30
    while [job for job in opened.workspace.jobs.active if job.title]:
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert not any(message.get("id") == number and "value" in message for message in opened.messages)
    begun = time.monotonic()
    opened.ask("point", run=name, round=1, spot=[0, 0])
    assert time.monotonic() - begun < 30, "no thread is taken by what was cancelled"


def test_a_job_is_listed_with_what_is_done_and_can_be_cancelled(opened):
    name = opened.ask("scene")["runs"][0]["key"]
    number = opened.send("publish", runs=[name])

    def lists(message):
        return message.get("push") == "jobs" and any(job["title"] == "the page to send" for job in message["value"])

    (job,) = (job for job in opened.wait(lists)["value"] if job["title"] == "the page to send")
    assert job.keys() == {"job", "title", "done", "total", "left"}
    assert opened.ask("cancel", job=job["job"]) is True
    assert opened.answer(number)["error"].startswith("It was cancelled.")
    assert opened.ask("cancel", job=10**6) is False


def test_the_end_of_a_job_is_told_although_the_folders_cannot_be_looked_at(folder, jobs, monkeypatch, capfd):
    with page(folder, jobs=jobs) as one:
        number = one.send("publish", runs=[one.ask("scene")["runs"][0]["key"]])
        one.wait(lambda message: message.get("push") == "jobs" and message["value"])
        told = len(one.messages)
        monkeypatch.setattr(one.workspace.runs, "poll", lambda: 1 / 0)
        one.session.receive({"id": number, "cancel": True})
        one.wait(lambda message: message in one.messages[told:] and message == {"push": "jobs", "value": []})
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_an_error_of_the_program_is_a_line_and_has_its_traceback_in_the_terminal(opened, monkeypatch, capfd):
    def broken(ask, run, round):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(landscape_module, "landscape", broken)
    line = opened.error("landscape", run="x", round=1)
    assert line == "an error of fedscape, ZeroDivisionError: division by zero. The terminal has more."
    assert "Traceback" in capfd.readouterr().err
    assert "No space left" in plain_line(OSError(28, "No space left on device", "a.nc")) and "28" not in plain_line(
        OSError(28, "No space left on device", "a.nc")
    )


def test_a_page_whose_runs_are_ticked_has_no_advice_for_commands_or_python(runs, tmp_path):
    other = tiny.trained(tmp_path, "clients.partition=iid", "keep.clients=all")
    with pytest.raises(ValueError, match="one setting") as refused:
        select_comparable([runs[0], other])
    assert "in Python" in str(refused.value)

    def refuse():
        raise refused.value

    sent = or_why(refuse, "map", None, refused=ValueError)
    for words in (plain_line(refused.value), str(plain_error(refused.value)), sent):
        assert "clients.partition" in words and words.endswith(" more.") and str(refused.value).startswith(words)
        assert "Python" not in words and "folder" not in words
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_a_closed_page_gets_nothing_and_leaves_the_others_alone(folder, jobs):
    with page(folder, jobs=jobs) as one, page(folder, jobs=jobs) as other:
        name = one.ask("scene")["runs"][0]["key"]
        one.send("landscape", run=name, round=2, points=31, samples="all")
        one.session.close()
        count = len(one.messages)
        assert other.ask("landscape", run=name, round=2, points=5, samples="all")["plane"]["points"] == [5, 5]
        assert len(one.messages) == count
