"""Samples, series, figures and pages that a page asks for are those of the library."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import tiny
import torch
from asking import page, unpacked
from PIL import Image

import drift
from drift.analyses.rounds.numbers import OF_RECORD
from drift.analyses.samples.contents import images
from figures import gallery
from figures.pictures.draw_files import draw as draw_files

ROUND = 1
SMALL = ("task.dataset=digits", "task.dataset_options={}", "task.train_samples=80", "task.test_samples=40")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), *SMALL)


@pytest.fixture(scope="module")
def opened(run, jobs):
    with page(run.folder.parent, jobs=jobs) as one:
        yield one


def predicted(run, theta, samples):
    """Predicted classes and losses, one sample after the other."""
    scores = [run.task.outputs(theta.float(), samples[torch.tensor([place])])[0] for place in range(len(samples))]
    labels = samples.targets.tolist()
    losses = [float(torch.logsumexp(one, 0) - one[label]) for one, label in zip(scores, labels, strict=True)]
    return [int(one.argmax()) for one in scores], losses


def model(run, client):
    record = run.round(ROUND)
    return record.kept("clients")[record.ids.tolist().index(client)]


def test_cards_are_the_wrong_samples_by_falling_loss_with_their_pictures(opened, run):
    value = opened.ask("samples", run=run.name, round=ROUND, limit=5)
    samples = run.task.split("test")
    labels, losses = predicted(run, run.round(ROUND).kept("end"), samples)
    truth = samples.targets.tolist()
    wrong = sorted((p for p in range(len(truth)) if labels[p] != truth[p]), key=lambda p: -losses[p])
    assert [card["number"] for card in value["cards"]] == wrong[:5] and value["total"] == len(wrong)
    for card in value["cards"]:
        place = card["number"]
        assert (card["truth"], card["predicted"], card["against"]) == (truth[place], labels[place], None)
        assert card["loss"] == pytest.approx(losses[place], rel=1e-5)
        kind, _, code = card["picture"].partition(",")
        assert kind == "data:image/png;base64"
        pixels = np.array(Image.open(io.BytesIO(base64.b64decode(code))))
        np.testing.assert_array_equal(pixels, images(run, samples[torch.tensor([place])])[0])
    counts = np.zeros_like(np.array(value["confusion"]))
    np.add.at(counts, (truth, labels), 1)
    assert value["confusion"] == counts.tolist()
    assert value["words"] == "wrong ones, largest loss first; model: end"


def test_cards_of_a_point_weights_and_a_client_are_those_of_the_models_that_they_name(opened, run):
    first, second, *_ = sorted(run.round(ROUND).ids.tolist())
    samples = run.client_samples(second, ROUND)
    weights = {"weights": {str(first): 1, str(second): 3}, "gamma": 0.5}
    mixed = 0.5 * (0.25 * model(run, first).double() + 0.75 * model(run, second).double())
    point = opened.ask("point", run=run.name, round=ROUND, spot=[0.2, 0.1])
    at_spot = sum(weight * model(run, int(client)).double() for client, weight in point["weights"].items())
    asked = {f"client {first}": model(run, first), "weights": mixed, "spot": at_spot}
    for name, theta in asked.items():
        given = {"weights": weights, "spot": {"spot": [0.2, 0.1]}}.get(name, name)
        about = {"run": run.name, "round": ROUND, "model": given, "split": f"client {second}", "against": second}
        value = opened.ask("samples", **about, mode="all", limit=500)
        labels, losses = predicted(run, theta, samples)
        others, _ = predicted(run, model(run, second), samples)
        numbers = run.parts_in(ROUND)[second].tolist()
        found = {card["number"]: card for card in value["cards"]}
        assert found.keys() == set(numbers) and value["total"] == len(numbers), name
        for place, number in enumerate(numbers):
            assert (found[number]["predicted"], found[number]["against"]) == (labels[place], others[place]), name
            assert found[number]["loss"] == pytest.approx(losses[place], rel=1e-4, abs=1e-5), name
        differing = opened.ask("samples", **about, mode="differs")
        assert differing["total"] == sum(a != b for a, b in zip(labels, others, strict=True))


def test_cells_of_the_confusion_choose_samples(opened, run):
    every = opened.ask("samples", run=run.name, round=ROUND, mode="all", limit=0)
    assert every["cards"] == [] and every["total"] == len(run.task.split("test"))
    truth, label = np.unravel_index(np.argmax(every["confusion"]), np.shape(every["confusion"]))
    cell = opened.ask("samples", run=run.name, round=ROUND, truth=int(truth), predicted=int(label))
    assert cell["total"] == every["confusion"][truth][label]
    assert {(card["truth"], card["predicted"]) for card in cell["cards"]} == {(truth, label)}
    assert cell["words"].startswith(f"class {truth}, predicted as {label}, largest loss first")


def test_what_no_model_is_is_refused(opened, run):
    about = {"run": run.name, "round": ROUND}
    assert "no model named 'best'" in opened.error("samples", **about, model="best")
    assert "sum to 0" in opened.error("samples", **about, model={"weights": {"0": 0}})
    assert opened.error("samples", **about, model={"point": 1}).startswith("model is")
    assert "differs needs a client" in opened.error("samples", **about, mode="differs")
    assert "has clients" in opened.error("samples", **about, against=77)
    assert opened.error("samples", **about, limit=10**6).startswith("limit is")


def test_series_are_recorded_numbers_and_those_of_analyses(opened, run):
    names = {number["name"]: number for number in opened.ask("numbers", run=run.name)}
    assert list(names)[:2] == ["accuracy", "loss"] and OF_RECORD.keys() < names.keys()
    assert (names["loss"]["words"], names["loss"]["unit"], names["loss"]["log"]) == ("test loss", "nats", True)
    for name, expected in {"loss": run.metrics().loss, "coherence": drift.coherence(run).coherence}.items():
        value = opened.ask("series", runs=[run.name], name=name)[run.name]
        assert value["rounds"] == run.rounds()
        assert unpacked(value["values"]) == pytest.approx(expected.values, rel=1e-6, nan_ok=True)
    assert "no number named 'speed'" in opened.ask("series", runs=[run.name], name="speed")[run.name]["error"]
    assert "no run" in opened.error("series", runs=["other"], name="loss")


def test_figures_are_those_of_the_gallery_by_question(opened):
    listed = opened.ask("figures")
    assert sorted(one["name"] for one in listed) == gallery.names()
    assert all(one["question"].endswith("?") and one["shows"] and one["needs"] for one in listed)


def test_a_figure_is_drawn_as_its_command_line_draws_it(opened, run, tmp_path):
    value = opened.ask("draw", figure="accuracy-rounds", runs=[run.name], options={}, format="csv")
    expected = next(path for path in draw_files("accuracy-rounds", [run], tmp_path) if path.suffix == ".csv")
    assert base64.b64decode(value["base64"]) == expected.read_bytes()
    assert value["name"] == "accuracy-rounds.csv" and value["alt"] and value["caption"]
    assert value["command"] == f"fedscape figures draw accuracy-rounds {run.folder}"
    compile(value["python"], "lines", "exec")
    assert f"drift.open({str(run.folder)!r})" in value["python"]
    drawn = opened.ask("draw", figure="plane-round", runs=[run.name], options={"points": 3, "round": ROUND})
    assert "<svg" in drawn["svg"] and drawn["command"].endswith("--set points=3 round=1")
    assert "no option of figure accuracy-rounds" in opened.error(
        "draw", figure="accuracy-rounds", runs=[run.name], options={"shade": 1}
    )
    stem = opened.error("draw", figure="accuracy-rounds", runs=[run.name], options={"stem": "../other"})
    assert stem == "stem is not an option of a figure."
    assert "no figure named" in opened.error("draw", figure="accuracy", runs=[run.name])
    assert opened.error("draw", figure="accuracy-rounds", runs=[]) == "no run is given; tick one."


def test_a_diagnosis_says_what_the_record_says(opened, run):
    value = opened.ask("diagnosis", run=run.name)
    expected = drift.diagnose(run, quick=True)
    assert [one["name"] for one in value["findings"]] == [one.name for one in expected.findings]
    assert [one["text"] for one in value["findings"]] == [one.statement for one in expected.findings]
    assert "Causes were not tested" not in value["verdict"]


def test_the_page_to_send_is_a_whole_file(opened, run):
    number = opened.send("publish", runs=[run.name])
    value = opened.answer(number)["value"]
    text = base64.b64decode(value["base64"]).decode()
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>") and value["name"].endswith(".html")
    steps = [
        message["progress"] for message in opened.messages if message.get("id") == number and "progress" in message
    ]
    assert steps and all(0 <= step["done"] <= step["total"] for step in steps)
