"""Runs that diverged, stopped, were damaged, replaced or cannot be written: a plain line, or the right numbers."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import tiny
import torch
from asking import page, unpacked

from drift.record.recorder import Recorder
from drift.runs import unstored_results
from drift.runs.run import Run
from drift.simulation.simulate import Diverged, simulate
from figures.explore.answers.landscape import LandscapeQuery, of_round
from landscape.results import netcdf_files

DIGITS = ("task.dataset=digits", "task.dataset_options={}", "task.train_samples=80", "task.test_samples=40")
DIVERGED = (*DIGITS, "task.model=mlp", "local.lr=1e4")


def entry(one, name):
    return next(entry for entry in one.ask("scene")["runs"] if name in [run["name"] for run in entry["names"]])


def test_a_run_that_diverged_with_finite_losses_says_where_the_loss_was_lowest(jobs, tmp_path):
    run = tiny.trained(tmp_path, *DIGITS, "task.model=linear", "local.lr=30", "rounds=3")
    losses = run.metrics().loss
    lowest = int(losses["round"].values[losses.values.argmin()])
    with page(tmp_path, jobs=jobs) as one:
        shown = entry(one, run.name)
    assert (shown["state"], shown["note"]) == ("diverged", f"It diverged; its loss was lowest in round {lowest}.")
    assert {"round": lowest, "words": "diverged: the loss was lowest here"} in shown["events"]


def test_a_diverged_run_says_so_and_shows_no_number_that_is_none(jobs, tmp_path):
    with pytest.raises(Diverged):
        tiny.trained(tmp_path, *DIVERGED)
    run = Run(tmp_path / tiny.experiment(*DIVERGED).slug)
    with page(tmp_path, jobs=jobs) as one:
        shown = entry(one, run.name)
        assert shown["state"] == "diverged" and shown["note"].endswith("none of its losses is finite.")
        assert any("diverged" in event["words"] for event in shown["events"])
        for index in shown["able"]:
            message = one.answer(one.send("landscape", run=run.name, round=index, points=3, samples="all"))
            assert "error" in message or all(
                mark["loss"] is None or mark["loss"] >= 0 for mark in message["value"]["marks"]
            )


def test_runs_of_the_same_settings_are_told_apart_by_their_folders(jobs, tmp_path):
    run = tiny.trained(tmp_path / "made")
    for name in ("lab-monday", "lab-friday", "one-begun", "two-begun"):
        shutil.copytree(run.folder, tmp_path / "runs" / name)
        if name.endswith("begun"):
            shutil.rmtree(tmp_path / "runs" / name / "rounds")
    with page(tmp_path / "runs", jobs=jobs) as one:
        labels = {entry["names"][0]["name"]: entry["label"] for entry in one.ask("scene")["runs"]}
    assert labels == {
        "lab-monday": "FedAvg, seed 5, monday",
        "lab-friday": "FedAvg, seed 5, friday",
        "one-begun": "FedAvg, one-begun",
        "two-begun": "FedAvg, two-begun",
    }


def test_seeds_of_different_length_are_said(jobs, tmp_path):
    for seed, until in ((5, 4), (6, 2)):
        simulate(tiny.experiment("rounds=4", f"seed={seed}"), runs=tmp_path, until=until)
    with page(tmp_path, jobs=jobs) as one:
        (shown,) = one.ask("scene")["runs"]
        assert "seed 6 has 2 of 4 rounds." in shown["note"]


def test_a_run_that_kept_no_clients_has_no_landscape_and_says_what_to_do(jobs, tmp_path):
    run = tiny.trained(tmp_path, "keep.clients=none", "keep.globals=none")
    with page(tmp_path, jobs=jobs) as one:
        shown = entry(one, run.name)
        assert shown["able"] == [] and "--set keep.clients=all" in shown["note"]
        for kind, more in {"landscape": {}, "point": {"spot": [0, 0]}, "weights": {"weights": {"0": 1}}}.items():
            assert "kept" in one.error(kind, run=run.name, round=1, **more)
        assert "kept no global model" in one.error("path", run=run.name)


WITH_ONE = ("clients.number=1", "clients.per_round=1", "clients.partition=iid")


def test_a_run_with_one_client_or_one_round_says_what_to_set(jobs, tmp_path):
    client, pair = tiny.trained(tmp_path, *WITH_ONE), tiny.trained(tmp_path, "clients.per_round=2")
    round_ = tiny.trained(tmp_path, "rounds=1")
    with page(tmp_path, jobs=jobs) as one:
        _, advice = entry(one, client.name)["note"].split("no landscape. Train with ")
        assert advice == "--set clients.number=3 --set clients.per_round=3."
        advised = tiny.trained(tmp_path, *WITH_ONE, *advice.removesuffix(".").replace("--set ", "").split())
        one.wait(lambda message: advised.name in json.dumps(message))
        assert entry(one, advised.name)["able"], "the advice helps"
        assert entry(one, pair.name)["note"].endswith("no landscape. Train with --set clients.per_round=3.")
        assert len(one.ask("path", run=client.name, points=5)["marks"]) == 3
        assert "kept one global model so far" in (line := one.error("path", run=round_.name))
        assert line.endswith("Train with --set rounds=2.")
        for run in (round_, tiny.trained(tmp_path, "rounds=2")):
            one.wait(lambda message, run=run: run.name in json.dumps(message))
            value = one.ask("landscape", run=run.name, round=0, points=3)
            said = " ".join(sentence["text"] for sentence in value["why"])
            assert not re.search(r"\bnan\b| - | 1 rounds", said), said


def test_a_client_without_samples_is_part_of_no_plane_and_costs_nothing(jobs, tmp_path):
    cohort = ("clients.number=8", "clients.per_round=6", "clients.partition.variant=plain")
    run = tiny.trained(tmp_path, *cohort, "clients.concentration=0.05", "seed=3")
    index, client = next(
        (record.index, client)
        for record in map(run.round, run.rounds())
        for client, size in zip(record.ids.tolist(), record.sizes.tolist(), strict=True)
        if size == 0 and (record.sizes > 0).sum() >= 3
    )
    with page(tmp_path, jobs=jobs) as one:
        value = one.ask("landscape", run=run.name, round=index, points=3, samples="all")
        assert client not in value["through"]
        (row,) = (row for row in value["cohort"] if row["id"] == client)
        assert row["samples"] == 0 and row["own_after"] is None and row["cost"] == pytest.approx(0, abs=1e-6)
        equal = one.ask("best", run=run.name, round=index, rule="equal")
        assert equal["weights"][str(client)] == 0
        assert "has no samples" in one.error("landscape", run=run.name, round=index, points=3, split=f"client {client}")


def test_a_stopped_and_a_damaged_run_say_what_they_are(jobs, tmp_path, monkeypatch):
    from figures.explore.answers import run_entry

    monkeypatch.setattr(run_entry, "PATIENCE", -1e9)  # as if nothing was written for long
    stopped, empty, damaged = (tiny.trained(tmp_path / name, f"seed={seed}") for seed, name in enumerate("abc"))
    runs = tmp_path / "runs"
    for run in (stopped, empty, damaged):
        shutil.copytree(run.folder, runs / run.name)
    shutil.rmtree(runs / empty.name / "rounds")
    (runs / empty.name / "state.safetensors").unlink()
    (runs / damaged.name / "run.json").write_text("{")
    with page(runs, jobs=jobs) as one:
        shown = entry(one, empty.name)
        assert shown["state"] == "stopped" and "before its first round" in shown["note"] and shown["rounds"] == []
        shown = entry(one, damaged.name)
        assert shown["state"] == "damaged" and shown["note"] and "\n" not in shown["note"]
        assert "once it has" not in json.dumps(one.messages)
        one.error("landscape", run=damaged.name, round=1)
        assert "no complete round" in one.error("landscape", run=empty.name, round=1)


def test_a_damaged_round_is_a_line_and_the_rounds_before_it_stay(jobs, tmp_path):
    run = tiny.trained(tmp_path)
    path = run.folder / "rounds" / "000002.safetensors"
    content = bytearray(path.read_bytes())
    content[-4] ^= 0xFF
    path.write_bytes(bytes(content))
    with page(tmp_path, jobs=jobs) as one:
        assert entry(one, run.name)["rounds"][:2] == [0, 1]
        assert f"Round 2 of run {run.name} " in one.error("landscape", run=run.name, round=2, points=3)
        assert one.ask("landscape", run=run.name, round=1, points=3)["plane"]["points"] == [3, 3]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_round_whose_file_is_missing_is_a_line_and_the_others_are_shown(jobs, tmp_path, index):
    run = tiny.trained(tmp_path)
    (run.folder / "rounds" / f"{index:06}.safetensors").unlink()
    line = f"Round {index} of run {run.name} is missing. To restore it: fedscape verify {run.folder} --repair"
    with page(tmp_path, jobs=jobs) as one:
        shown = entry(one, run.name)
        assert (shown["state"], shown["able"], shown["damaged"][index]) == ("damaged", [0, 1, 2], line)
        assert shown["note"] == f"Round {index} is damaged; the others are shown."
        for other in {0, 1, 2} - {index}:
            landscape = one.ask("landscape", run=run.name, round=other, points=3)
            assert len(landscape["why"]) == 4 and landscape["cohort"][0]["own_after"] is not None
            one.ask("point", run=run.name, round=other, spot=[0, 0])
            one.ask("weights", run=run.name, round=other, weights={str(landscape["cohort"][0]["id"]): 1})
            one.ask("samples", run=run.name, round=other)
        for kind, more in {"landscape": {"points": 3}, "point": {"spot": [0, 0]}, "samples": {}}.items():
            assert one.error(kind, run=run.name, round=index, **more) == line
        for kind, more in {"path": {"run": run.name}, "publish": {"runs": [run.name]}}.items():
            assert one.error(kind, **more) == line, "of all rounds: refused, not made of those that are there"


def test_a_truncated_round_takes_no_other_seed_with_it(jobs, tmp_path):
    damaged, sound = (tiny.trained(tmp_path, "rounds=12", f"seed={seed}") for seed in (5, 6))
    path = damaged.folder / "rounds" / "000009.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with page(tmp_path, jobs=jobs) as one:
        shown = entry(one, sound.name)
        assert (shown["key"], shown["state"], shown["note"]) == (sound.name, "complete", "")
        assert shown["rounds"] == list(range(12))
        shown = entry(one, damaged.name)
        assert (shown["key"], shown["state"]) == (damaged.name, "damaged")
        assert shown["note"] == "Round 9 is damaged; the others are shown."
        assert shown["rounds"] == [*range(9), 10, 11] and shown["able"] == list(range(12))
        line = one.error("landscape", run=damaged.name, round=9, points=3)
        assert line.startswith(f"Round 9 of run {damaged.name} cannot be read") and line == shown["damaged"][9]
        assert line.endswith(f"fedscape verify {damaged.folder} --repair")
        for index in (8, 10):
            landscape = one.ask("landscape", run=damaged.name, round=index, points=3)
            assert len(landscape["why"]) == 4 and landscape["cohort"][0]["own_after"] is not None
        one.ask("point", run=damaged.name, round=10, spot=[0, 0])
        one.ask("weights", run=damaged.name, round=10, weights={str(landscape["cohort"][0]["id"]): 1})
        one.ask("samples", run=damaged.name, round=10)
        sound.folder.rename(tmp_path.parent / "elsewhere")
    with page(tmp_path, jobs=jobs) as one:
        assert "Round 9" in entry(one, damaged.name)["note"], "also where it is the only run"


def test_a_run_that_was_replaced_has_its_own_numbers(jobs, tmp_path):
    run = tiny.trained(tmp_path / "runs")
    with page(tmp_path / "runs", jobs=jobs) as one:
        one.ask("scene")
        ids = sorted(run.round(1).ids.tolist())
        before = one.ask("weights", run=run.name, round=1, weights={str(ids[0]): 1})["loss"]
        run = tiny.replaced(run, "seed=6", "local.lr=0.5")
        one.wait(lambda message: message.get("push") == "scene" and message["value"]["runs"])
        record = run.round(1)
        client = sorted(record.ids.tolist())[0]
        after = one.ask("weights", run=run.name, round=1, weights={str(client): 1})["loss"]
        samples = run.task.split("test")
        theta = record.kept("clients")[record.ids.tolist().index(client)]
        expected = float(run.task.per_sample(run.task.outputs(theta, samples), samples.targets).mean())
        assert after == pytest.approx(expected, rel=1e-6) and abs(after - before) > 1e-3


def test_a_run_that_is_gone_keeps_what_was_read_and_says_so(jobs, tmp_path):
    run = tiny.trained(tmp_path / "runs")
    with page(tmp_path / "runs", jobs=jobs) as one:
        one.ask("scene")
        run.folder.rename(tmp_path / "aside")
        lines = one.wait(lambda message: message.get("push") == "problems" and message["value"])["value"]
        assert len(lines) == 1 and f"run {run.name} is gone" in lines[0]
        assert "is gone" in one.error("landscape", run=run.name, round=1)
        assert entry(one, run.name)["rounds"] == [0, 1, 2]


def test_a_state_that_is_away_for_a_while_is_said_and_the_runs_are_watched_on(jobs, tmp_path):
    run = tiny.trained(tmp_path / "runs")
    state, aside = run.folder / "state.safetensors", tmp_path / "aside"
    with page(tmp_path / "runs", jobs=jobs) as one:
        (before,) = one.ask("scene")["runs"]

        def said(key, state):
            fits = lambda entry: (entry["key"], entry["state"], entry["rounds"]) == (key, state, [0, 1, 2])  # noqa: E731
            message = one.wait(lambda one: one.get("push") == "scene" and any(map(fits, one["value"]["runs"])), 20)
            one.messages.clear()
            return next(filter(fits, message["value"]["runs"]))

        state.rename(aside)
        assert "state.safetensors is missing" in said(run.name, "damaged")["note"]
        aside.rename(state)
        assert said(run.name, "complete")["able"] == before["able"] == [0, 1, 2]
        said(tiny.trained(tmp_path / "runs", "method=fedprox").name, "complete")
        (run.folder / "rounds" / "000001.safetensors").unlink()  # as part-way through rm -r
        state.unlink()
        gone = one.wait(lambda message: message.get("push") == "problems" and message["value"], 20)["value"]
        assert len(gone) == 1 and run.name in gone[0]
        one.messages.clear()
        assert said(tiny.trained(tmp_path / "runs", "method=fedprox", "method.mu=0.1").name, "complete")


def test_the_runs_are_watched_on_after_an_error_of_the_program_and_what_changed_is_sent(jobs, tmp_path, monkeypatch):
    with page(tmp_path, jobs=jobs) as one:
        one.ask("scene")
        scene, calls = one.session._scene, []
        grown = scene.grown

        def broken(changes):
            calls.append(changes)
            if len(calls) == 1:
                raise ZeroDivisionError
            grown(changes)

        monkeypatch.setattr(scene, "grown", broken)
        run = tiny.trained(tmp_path)
        told = one.wait(lambda message: message.get("push") == "scene" and message["value"]["keys"], 20)
        assert told["value"]["keys"] == [run.name]


def test_a_full_disk_takes_no_number_away(tmp_path, monkeypatch):
    run = tiny.trained(tmp_path)
    expected = of_round(run, LandscapeQuery(1, 5, None, "test", "loss"))
    other = tiny.trained(tmp_path / "other")
    monkeypatch.setattr(unstored_results, "_WARNED", set())

    def full(*arguments, **options):
        raise OSError(28, "No space left on device", "results")

    monkeypatch.setattr(netcdf_files, "save", full)
    with pytest.warns(UserWarning, match="cannot be written .No space left on device.: results are computed"):
        value = of_round(other, LandscapeQuery(1, 5, None, "test", "loss"))
    assert value["plane"] == expected["plane"] and value["cohort"] == expected["cohort"]
    assert torch.equal(other.round(1).kept("clients"), run.round(1).kept("clients"))
    assert of_round(other, LandscapeQuery(1, 5, None, "test", "loss")) is value, "in memory"


def test_a_run_recorded_without_its_data_shows_its_record(jobs, tmp_path):
    task = tiny.trained(tmp_path / "source").task
    recorder, state = Recorder(tmp_path / "runs" / "plain", task.model), task.model.state_dict()
    for step in range(3):
        moved = {client: ({name: value + step + client for name, value in state.items()}, 10) for client in range(3)}
        recorder.round(start=state, clients=moved, end=moved[1][0])
    with page(tmp_path / "runs", jobs=jobs) as one:
        (shown,) = one.ask("scene")["runs"]
        assert shown["able"] == [] and "without its data" in shown["note"]
        assert "without its data" in one.error("landscape", run=shown["key"], round=1)
        assert "without its data" in one.error("point", run=shown["key"], round=1, spot=[0, 0])
        number = one.send("path", run=shown["key"])
        assert "no map" in one.answer(number)["error"] and len(one.rough(number)[0]["marks"]) == 3
        assert unpacked(one.ask("series", runs=[shown["key"]], name="end_norm")[shown["key"]]["values"]).shape == (3,)
