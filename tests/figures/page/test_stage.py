"""What the stage shows are the library's numbers."""

import base64
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
import xarray as xr

import drift
from drift.analyses.landscapes.planes import round_plane
from drift.analyses.landscapes.round_weights import lowest_weights
from drift.config.load import read, validated
from drift.record.recorder import Recorder
from drift.simulation.simulate import simulate
from figures.explore.answers import best as live
from figures.page import best_weights, sent_scene
from figures.page.diagnosis_text import alike
from figures.page.remembered_runs import Failed
from figures.page.scene import TERMS, events, scene
from figures.page.sent_scene import sent
from figures.page.start import Start
from figures.selection.groups import groups

POINTS = 4


def unpacked(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


@pytest.fixture(scope="module")
def shown(runs):
    failed = Failed()
    content = scene(groups(runs), sent(Start.read("", POINTS, 1000), failed), lambda first: "last")
    assert failed.reasons == {}
    return content


def test_every_round_of_a_small_model_has_the_best_weights_and_stores_them(shown, runs, monkeypatch):
    for index, frame in shown["runs"][0]["shown"].items():
        best, found = frame["weights"]["best"], lowest_weights(runs[0], index, "test", 1000)
        assert best["loss"] == found.loss and "lacks" not in frame["weights"]
        assert [*best["weights"].values()] == pytest.approx(found.weights.shares)
    monkeypatch.setattr(best_weights, "lowest_weights", None)  # stored, it is not called again
    for samples in (None, 1000, 5000):  # on a live page too
        assert live._lowest(runs[0], (index, "test", samples)).loss == best["loss"]
        assert live._lowest(runs[0], (index, "test", samples)).weights.shares == tuple(best["weights"].values())
    monkeypatch.setattr(sent_scene, "LIGHT", 0)
    start = Start.read("", POINTS, 1000)
    first = start.first(runs[0].rounds())
    again = {index: sent_scene._weights(runs[0], index, start) for index in shown["runs"][0]["shown"]}
    assert [index for index, weights in again.items() if "best" in weights] == [first]
    assert again[first]["best"] == shown["runs"][0]["shown"][first]["weights"]["best"]
    assert f"of a larger model in one round ({first})" in again[0]["lacks"]


def test_a_run_that_does_not_state_whose_samples_are_whose_has_its_landscapes(runs, tmp_path):
    run, record = runs[0], runs[0].round(2)
    recorder = Recorder(tmp_path / "told", run.task.model)
    state = run.task.layout.named
    clients = {
        client: (state(theta), 1) for client, theta in zip(record.ids.tolist(), record.kept("clients"), strict=True)
    }
    recorder.round(start=state(record.kept("start")), clients=clients, end=state(record.kept("end")))
    value = sent_scene.stage_round(drift.open(tmp_path / "told", task=run.task), 0, POINTS, 1000)
    losses = {mark["name"]: mark["loss"] for mark in value["marks"]}
    assert losses["end"] == pytest.approx(loss(run, record.kept("end")), abs=1e-6)
    assert {one["own_before"] for one in value["cohort"]} == {None}


def loss(run, theta):
    samples = run.task.split("test")
    return float(run.task.per_sample(run.task.outputs(theta, samples), samples.targets).mean())


def test_planes_are_those_of_the_library_about_the_mean_of_three_clients(shown, runs):
    plane = shown["runs"][0]["shown"][2]["plane"]
    ds = runs[0].cached(round_plane, round=2, points=POINTS, box="symmetric")
    assert plane["points"] == [POINTS, POINTS]
    values = ds.loss.transpose("alpha", "beta").values
    assert np.array_equal(unpacked(plane["metrics"]["loss"]), values.astype("<f4").ravel())
    for name, extent in zip(("alpha", "beta"), plane["extent"], strict=True):
        assert extent == pytest.approx(ds[name].values[[0, -1]] - float(ds[f"mark_{name}"].sel(mark="mean")))
        assert extent[0] == pytest.approx(-extent[1])


def test_marks_lie_where_the_models_do_and_have_their_losses(shown, runs):
    run, frame = runs[0], shown["runs"][0]["shown"][1]
    record = run.round(1)
    marks = {mark["name"]: mark for mark in frame["marks"]}
    ids = record.ids.tolist()
    models = {f"client {client}": record.kept("clients")[row] for row, client in enumerate(ids)}
    models |= {"start": record.kept("start"), "end": record.kept("end")}
    assert marks.keys() == models.keys() | {"aggregate"}
    middle = torch.stack([models[f"client {client}"] for client in frame["through"]]).double().mean(0)
    for name, model in models.items():
        mark = marks[name]
        far = float((model.double() - middle).norm())
        assert np.hypot(np.hypot(mark["u"], mark["v"]), mark["away"]) == pytest.approx(far, rel=1e-4), name
        assert mark["loss"] == pytest.approx(loss(run, model), rel=1e-4), name
    first, second = (marks[f"client {client}"] for client in frame["through"][:2])
    assert first["v"] == pytest.approx(second["v"], abs=1e-5) and first["u"] < second["u"]


def test_a_client_costs_what_the_aggregate_gains_without_it(shown, runs):
    run, frame = runs[2], shown["runs"][1]["shown"][2]
    record = run.round(2)
    shares = record.shares.double()
    whole = loss(run, (shares @ record.kept("clients").double()).float())
    assert {mark["name"]: mark["loss"] for mark in frame["marks"]}["aggregate"] == pytest.approx(whole, rel=1e-4)
    for row, client in enumerate(frame["cohort"]):
        rest = shares.clone()
        rest[row] = 0
        without = loss(run, (rest / rest.sum() @ record.kept("clients").double()).float())
        assert client["cost"] == pytest.approx(whole - without, abs=1e-4)
        part = run.parts_in(2)[client["id"]]
        assert client["counts"] == np.bincount(run.labels[part], minlength=len(run.dataset.classes)).tolist()
    assert any(f"lient {client['id']} " in frame["why"][0]["text"] for client in frame["cohort"])


def test_curves_are_means_over_seeds_with_lowest_and_highest(shown, runs):
    for place, entry in enumerate(shown["runs"]):
        seeds = runs[2 * place : 2 * place + 2]
        assert entry["rounds"] == seeds[0].rounds()
        for name in ("accuracy", "loss"):
            values = np.stack([run.metrics()[name].values for run in seeds])
            assert unpacked(entry["series"][name]) == pytest.approx(values.mean(0), rel=1e-6)
            low, high = map(unpacked, entry["spread"][name])
            assert low == pytest.approx(values.min(0), rel=1e-6) and high == pytest.approx(values.max(0), rel=1e-6)
        assert entry["accuracies"] == pytest.approx([float(run.metrics().accuracy.mean()) for run in seeds])
    assert [run["seeds"] for run in shown["runs"]] == [["5", "6"], ["5", "6"]]


def test_one_seed_has_no_spread(runs):
    content = scene(groups(runs[:1]), sent(Start.read("", POINTS, 1000), Failed()), lambda first: "last")
    assert content["runs"][0]["spread"] == {} and len(content["runs"][0]["accuracies"]) == 1


def test_runs_that_differ_in_their_seed_alone_say_it_and_have_dashes_of_their_own(runs, tmp_path):
    again = drift.open(shutil.copytree(runs[0].folder, tmp_path / "again"))  # no group has one seed twice
    content = scene(groups([*runs[:2], again]), lambda name, group: {}, lambda first: "last")["runs"]
    assert [run["label"] for run in content] == [
        f"FedAvg, seed 5, {runs[0].name}",
        "FedAvg, seed 6",
        "FedAvg, seed 5, again",
    ]
    assert len({tuple(run["dash"]) for run in content}) == 3 and len({run["colour"] for run in content}) == 1


def test_a_critical_point_says_its_interval_its_rule_and_its_seed(runs, monkeypatch):
    monkeypatch.setattr(type(runs[1]), "rounds", lambda run: list(range(40)))
    noise = np.random.default_rng(0).normal(0, 0.02, 40)
    series = xr.DataArray(np.repeat([0.3, -0.3], 20) + noise, coords={"round": range(40)}, dims="round")
    (event,) = events(runs[1], series, None)
    low, high = event["span"]
    assert event["round"] == 20 and low <= 20 <= high and high - low < 20
    name, rule = event["words"].split(": ")
    assert name == f"drift changes [{low:.0f}, {high:.0f}]"
    assert "of seed 6 is clearly above 0 before, and below 0 after; 95 % interval" in rule
    assert events(runs[1], abs(series), None) == [], "no clear change, no flag"


def test_compared_numbers_have_equally_many_decimals():
    assert alike([0.616, 0.63], 3) == ["0.616", "0.630"]
    assert alike([2.0, 0.0125], 3) == ["2.0000", "0.0125"]
    assert alike([float("nan"), 1.5], 3) == ["-", "1.5"]


def test_terms_mean_what_the_glossary_says():
    pages = Path(__file__).parents[3] / "docs/glossary.md"
    glossary = re.sub(r"\s+", " ", pages.read_text(encoding="utf-8"))
    for name, meaning in TERMS.items():
        assert f"**{name}**: {meaning}" in glossary, name


def test_a_page_knows_which_run_diverged(tmp_path):
    digits = validated({**tiny.DIGITS, "rounds": 6})
    some = [simulate(read(digits, f"local.lr={rate}"), runs=tmp_path) for rate in (1e3, 0.05)]
    content = scene(groups(some), sent(Start.read("", POINTS, 20), Failed()), lambda first: "last")
    assert [entry["state"] for entry in content["runs"]] == ["diverged", "complete"]
