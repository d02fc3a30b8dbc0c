"""Landscapes, points and weights of a page have the numbers of models that are put together by hand."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch
from asking import page, unpacked

from drift.analyses.selected_samples import selected_samples
from drift.runs.run import Run
from drift.store.column_blocks import weighted_models
from figures.explore.answers.landscape import LandscapeQuery, of_round
from figures.explore.answers.point import at_spot
from figures.explore.answers.weights import Mixture, of_mixture
from figures.explore.work.points import Query
from figures.page.sampled import ROUGH_SAMPLES
from landscape.model.model import plain
from landscape.model.task import Task
from landscape.sweep.evaluate import evaluate

ROUND = 1


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "clients.per_round=4")


@pytest.fixture(scope="module")
def opened(run, jobs):
    with page(run.folder.parent, jobs=jobs) as one:
        yield one


def clients(run, index=ROUND):
    """Models of a round by client, in float64."""
    record = run.round(index)
    return dict(zip(record.ids.tolist(), record.kept("clients").double(), strict=True))


def axes_of(run, through):
    """Mean of three clients, and orthonormal directions of their plane, by Gram and Schmidt in float64."""
    first, second, third = (clients(run)[client] for client in through)
    u = (second - first) / (second - first).norm()
    v = (third - first) - ((third - first) @ u) * u
    return (first + second + third) / 3, u, v / v.norm()


def by_hand(run, theta, samples):
    """loss, error, and error of each class, one sample after the other."""
    losses, counts = [], np.zeros((len(run.dataset.classes),) * 2, int)
    for place in range(len(samples)):
        one = samples[torch.tensor([place])]
        scores = run.task.outputs(theta.float(), one)[0].double()
        label = int(one.targets[0])
        losses.append(float(torch.logsumexp(scores, 0) - scores[label]))
        counts[label, int(scores.argmax())] += 1
    wrong = counts.sum(1) - counts.diagonal()
    with np.errstate(invalid="ignore"):
        return np.mean(losses), wrong.sum() / counts.sum(), wrong / counts.sum(1)


def test_a_landscape_has_the_losses_of_models_on_its_grid(opened, run):
    number = opened.send("landscape", run=run.name, round=ROUND, points=9, samples="all")
    value = opened.answer(number)["value"]
    middle, u, v = axes_of(run, value["through"])
    (low_u, high_u), (low_v, high_v) = value["plane"]["extent"]
    rows, columns = value["plane"]["points"]
    losses, errors = (unpacked(value["plane"]["metrics"][name], rows, columns) for name in ("loss", "error"))
    for i, j in ((0, 0), (2, 7), (8, 3)):
        at_u, at_v = np.linspace(low_u, high_u, rows)[i], np.linspace(low_v, high_v, columns)[j]
        loss, error, *_ = by_hand(run, middle + at_u * u + at_v * v, run.task.split("test"))
        assert losses[i, j] == pytest.approx(loss, rel=1e-5)
        assert errors[i, j] == pytest.approx(error, abs=1e-6)
    steps = [
        message["progress"] for message in opened.messages if message.get("id") == number and "progress" in message
    ]
    assert steps and steps[0]["total"] >= 81 and steps[0]["words"] == f"landscape of {run.name}, round {ROUND}"
    (rough,) = opened.rough(number)
    assert rough["plane"]["points"] == [rows, columns]
    assert rough["samples"].startswith("A rough first picture: 41 of 81 points, the others interpolated, on ")
    some = selected_samples(run, ROUND, "test", ROUGH_SAMPLES)
    guess = unpacked(rough["plane"]["metrics"]["loss"], rows, columns)
    model = middle + low_u * u + high_v * v
    assert guess[0, -1] == pytest.approx(by_hand(run, model, some)[0], rel=1e-5), "evaluated"
    assert rough["why"] == [] and value["samples"] == "" and len(value["why"]) == 4
    assert {mark["name"] for mark in rough["marks"]} == {mark["name"] for mark in value["marks"]}


def test_a_plane_with_infinite_values_has_no_rough_picture(jobs, tmp_path):
    lost = tiny.trained(tmp_path, "clients.per_round=4", "local.lr=1e37")
    with page(lost.folder.parent, jobs=jobs) as one:
        number = one.send("landscape", run=lost.name, round=0, points=9)
        value = one.answer(number)["value"]
        assert one.rough(number) == [] and value["plane"]["points"] == [9, 9]


def test_samples_of_a_client_and_the_error_of_a_class_are_shown_as_asked(opened, run):
    value = opened.ask(
        "landscape", run=run.name, round=ROUND, points=3, samples="all", split="client 2", quantity="class 1"
    )
    middle, u, v = axes_of(run, value["through"])
    samples = run.client_samples(2, ROUND)
    at_u, at_v = (extent[1] for extent in value["plane"]["extent"])
    loss, _, of_class = by_hand(run, middle + at_u * u + at_v * v, samples)
    assert unpacked(value["plane"]["metrics"]["loss"], 3, 3)[2, 2] == pytest.approx(loss, rel=1e-5)
    assert unpacked(value["plane"]["metrics"]["class 1"], 3, 3)[2, 2] == pytest.approx(of_class[1], nan_ok=True)
    assert (value["split"], value["quantity"]) == ("client 2", "class 1")
    assert value["samples"] == f"On the {len(samples)} samples of client 2."
    for mark in value["marks"]:
        if mark["kind"] == "client":
            model = clients(run)[int(mark["name"].split()[1])]
            assert mark["loss"] == pytest.approx(by_hand(run, model, samples)[0], rel=1e-5)


def test_a_point_is_exact_and_has_the_weights_of_its_three_clients(opened, run):
    through = opened.ask("landscape", run=run.name, round=ROUND, points=3)["through"]
    middle, u, v = axes_of(run, through)
    value = opened.ask("point", run=run.name, round=ROUND, spot=[0.07, -0.04])
    model = middle + 0.07 * u - 0.04 * v
    loss, error, of_class = by_hand(run, model, run.task.split("test"))
    assert value["loss"] == pytest.approx(loss, rel=1e-6) and value["error"] == pytest.approx(error)
    assert value["class_error"] == pytest.approx(of_class.tolist(), nan_ok=True)
    assert value["samples"] == len(run.task.split("test"))
    assert sum(value["weights"].values()) == pytest.approx(1)
    mixed = sum(weight * clients(run)[int(client)] for client, weight in value["weights"].items())
    np.testing.assert_allclose(mixed, model, atol=1e-12)
    basis = torch.stack([clients(run)[client].float() for client in through])
    row = torch.tensor([[value["weights"][str(client)] for client in through]], dtype=torch.float64)
    assert value["loss"] == float(evaluate(run.task, basis, row)["loss"][0]), "the bits of landscape.evaluate"


def test_weights_are_scaled_to_sum_one_times_gamma(opened, run):
    models = clients(run)
    chosen = dict(zip(models, (2.0, 1.0, 0.5), strict=False))
    value = opened.ask("weights", run=run.name, round=ROUND, weights={str(k): w for k, w in chosen.items()}, gamma=0.9)
    model = 0.9 * sum(weight * models[client] for client, weight in chosen.items()) / 3.5
    loss, error, of_class = by_hand(run, model, run.task.split("test"))
    assert value["loss"] == pytest.approx(loss, rel=1e-6) and value["error"] == pytest.approx(error)
    assert value["class_error"] == pytest.approx(of_class.tolist(), nan_ok=True)
    samples = run.task.split("test")
    alone = [by_hand(run, model, samples[torch.tensor([place])])[0] for place in range(len(samples))]
    parts = unpacked(value["parts"], len(samples), 1)[:, 0]
    assert sorted(parts) == pytest.approx(sorted(alone), rel=1e-4), "each of few samples is a part"
    assert value["proxy_loss"] == pytest.approx(by_hand(run, model, run.task.split("proxy"))[0], rel=1e-6)
    middle, u, v = axes_of(run, opened.ask("landscape", run=run.name, round=ROUND, points=3)["through"])
    away = model - middle
    at = float(away @ u), float(away @ v)
    assert (value["mark"]["u"], value["mark"]["v"]) == pytest.approx(at, abs=1e-6)
    assert value["mark"]["away"] == pytest.approx(float((away - at[0] * u - at[1] * v).norm()), rel=1e-4)
    assert value["weights"][str(list(models)[3])] == 0 and value["gamma"] == 0.9


def test_weights_that_mean_nothing_are_refused_in_a_line(opened, run):
    ids = sorted(clients(run))
    none = {str(client): 0 for client in ids}
    assert "sum to 0" in opened.error("weights", run=run.name, round=ROUND, weights=none)
    assert "sum to 0" in opened.error("weights", run=run.name, round=ROUND, weights={"0": 1, "1": -1})
    assert "given for 77" in opened.error("weights", run=run.name, round=ROUND, weights={"77": 1})
    for large in (float("inf"), float("nan"), 1e308):
        assert "at most 1e30" in opened.error("weights", run=run.name, round=ROUND, weights={"0": large, "1": large})
    assert "at most 1e30" in opened.error("point", run=run.name, round=ROUND, spot=[1e308, 0])
    far = opened.ask("weights", run=run.name, round=ROUND, weights={"0": 1}, gamma=1e30)
    assert far["loss"] is None or far["loss"] > 1e6
    assert "gamma is" in opened.error("weights", run=run.name, round=ROUND, weights={"0": 1}, gamma="big")


def test_rules_give_the_weights_that_they_name(opened, run):
    record, models = run.round(ROUND), clients(run)
    sizes = dict(zip(record.ids.tolist(), record.sizes.tolist(), strict=True))
    rest = sum(sizes.values()) - sizes[2]
    by_rule = {
        "equal": dict.fromkeys(sizes, 1 / len(sizes)),
        "own": dict(zip(record.ids.tolist(), record.weights.tolist(), strict=True)),
        "without 2": {client: size * (client != 2) / rest for client, size in sizes.items()},
    }
    for rule, expected in by_rule.items():
        value = opened.ask("best", run=run.name, round=ROUND, rule=rule)
        assert {int(client): weight for client, weight in value["weights"].items()} == pytest.approx(expected), rule
        model = sum(weight * models[client] for client, weight in expected.items())
        assert value["loss"] == pytest.approx(by_hand(run, model, run.task.split("test"))[0], rel=1e-5), rule
        assert value["words"].endswith(".")
    learned, own, best = (opened.ask("best", run=run.name, round=ROUND, rule=one) for one in ("fedlaw", "own", "best"))
    assert best["loss"] < own["loss"] and sum(best["weights"].values()) == pytest.approx(1)
    assert f"loss of {best['loss']:.4f}"[:12] in best["words"] and f"own {own['loss']:.4f}"[:8] in best["words"]
    assert learned["proxy_loss"] <= own["proxy_loss"]
    assert "no client 77" in opened.error("best", run=run.name, round=ROUND, rule="without 77")
    assert "rule is 'worst'" in opened.error("best", run=run.name, round=ROUND, rule="worst")


def test_a_path_has_the_places_and_losses_of_the_global_models(opened, run):
    number = opened.send("path", run=run.name, points=5, samples="all")
    value = opened.answer(number)["value"]
    models = {index: run.round(index).kept("end").double() for index in run.rounds()}
    assert [mark["round"] for mark in value["marks"]] == run.rounds()
    for mark in value["marks"]:
        loss = by_hand(run, models[mark["round"]], run.task.split("test"))[0]
        assert mark["loss"] == pytest.approx(loss, rel=1e-5) and mark["name"] == f"round {mark['round']}"
    for one in value["marks"]:
        for other in value["marks"]:
            apart = float((models[one["round"]] - models[other["round"]]).norm())
            assert np.hypot(one["u"] - other["u"], one["v"] - other["v"]) <= apart + 1e-6
    stacked = torch.stack(list(models.values()))
    spread = torch.linalg.svdvals(stacked - stacked.mean(0)) ** 2
    assert value["explained"] == pytest.approx(float(spread[:2].sum() / spread.sum()), rel=1e-6)
    (rough,) = opened.rough(number)
    assert rough["plane"] is None and "without a map" in rough["samples"]
    assert [mark["u"] for mark in rough["marks"]] == pytest.approx([mark["u"] for mark in value["marks"]])


def test_models_with_batch_normalisation_say_which_statistics_they_have(tmp_path):
    run = tiny.trained(tmp_path, "task.model=tiny:normalised")  # code from outside, which other processes do not trust
    value = of_round(run, LandscapeQuery(ROUND, 5, None, "test", "loss"))
    record = run.round(ROUND)
    basis = record.kept("clients")[[record.ids.tolist().index(client) for client in value["through"]]]
    spot = tuple(0.5 * extent[1] for extent in value["plane"]["extent"])
    point = at_spot(run, (Query(ROUND, "plane"), spot))
    assert point["statistics"] == "recomputed"
    weights = torch.tensor([[point["weights"][str(client)] for client in value["through"]]], dtype=torch.float64)
    expected = evaluate(run.task, plain(basis), weights, statistics="recomputed")
    assert point["loss"] == float(expected["loss"][0])
    grid = unpacked(value["plane"]["metrics"]["loss"], 5, 5)
    assert grid[3, 3] == pytest.approx(point["loss"], rel=1e-6), "the map and the point agree"
    row = [1.0 if client == value["through"][1] else 0.0 for client in sorted(record.ids.tolist())]
    alone = of_mixture(run, Mixture(Query(ROUND, "cohort"), tuple(row), proxy=False))
    assert alone["statistics"] == "own" and alone["proxy_loss"] is None
    own = evaluate(run.task, basis, torch.eye(3, dtype=torch.float64)[1:2])
    assert alone["loss"] == float(own["loss"][0])


def test_the_aggregate_is_marked_where_the_weights_put_it(opened, run):
    value = opened.ask("landscape", run=run.name, round=ROUND, points=3)
    mark = next(mark for mark in value["marks"] if mark["kind"] == "aggregate")
    own = opened.ask("best", run=run.name, round=ROUND, rule="own")["mark"]
    assert (own["u"], own["v"], own["away"]) == pytest.approx((mark["u"], mark["v"], mark["away"]), abs=1e-5)
    record = run.round(ROUND)
    model = weighted_models(run.experiment.cohort_weights(record.sizes).double(), record.kept("clients"))
    assert mark["loss"] == pytest.approx(by_hand(run, model.double(), run.task.split("test"))[0], rel=1e-5)


def test_model_and_loss_are_tried_once_for_the_landscapes_of_a_run(run, monkeypatch):
    tried, trial = [], Task._trial_of
    monkeypatch.setattr(Task, "_trial_of", lambda task, *args, **how: tried.append(1) or trial(task, *args, **how))
    opened = Run(run.folder)
    numbers = []
    for index in opened.rounds():
        for rough in (True, False):
            of_round(opened, LandscapeQuery(index, 3, ROUGH_SAMPLES if rough else 1000, "test", "loss", rough=rough))
            numbers.append(len(tried))
    assert numbers[0] > 0 and len({*numbers[1:]}) == 1
