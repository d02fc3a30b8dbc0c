"""Questions across the papers: what they measure, and that both members of a pair are what they should be."""

from __future__ import annotations

import copy
from functools import partial
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
import xarray as xr

import landscape
from drift.analyses.counterfactual.all_clients import find_clients_to_train, train_all_clients
from drift.analyses.counterfactual.counterfactual import counterfactual
from drift.analyses.counterfactual.update_change import update_change
from drift.analyses.curvature.drift_curvature import drift_curvature
from drift.analyses.rounds.variance import drift_variances
from drift.claims import cross, questions
from drift.claims.cross import (
    averaging_rounds,
    carried,
    change_against_drift,
    estimate_over_exact,
    estimate_ratio,
    estimate_while_averaging,
    exact_while_averaging,
    margin_changed,
    paying_from,
    quadratic_error,
    while_averaging,
)
from drift.claims.select_runs import of_variant, pair_effects

IMA = ("method=ima", "method.start=6", "rounds=14")

RECORDED = ("client", "change", "random")


def test_the_cost_of_a_drift_is_that_of_the_clients_and_of_the_previous_update(tmp_path):
    run = tiny.trained(tmp_path, "rounds=3", "clients.partition=iid")
    result = drift_curvature(run, rounds=[2], kinds=RECORDED, k=3, samples=20).isel(round=0)
    record, before = run.round(2), run.round(1)
    weights = (record.sizes / record.sizes.sum()).to(record.clients)
    mean = weights @ record.clients
    models = torch.stack([mean, *record.clients, record.start + before.end - before.start])
    part = run.task.split("test")[:20]
    losses = landscape.evaluate(run.task, models, torch.eye(len(models)), split=part, metrics=("loss",))["loss"]
    costs = (losses[1:] - losses[0]).double().numpy()
    np.testing.assert_allclose(result["cost"].sel(kind="client"), weights.double().numpy() @ costs[:-1], rtol=1e-4)
    np.testing.assert_allclose(result["cost"].sel(kind="change"), costs[-1], rtol=1e-3)
    assert abs(float(result["linear"].sel(kind="client"))) < 1e-6  # weighted drifts sum to zero
    assert ((result["share"] >= 0) & (result["share"] <= 1 + 1e-6)).all()
    assert float(result["norm"].sel(kind="random")) == pytest.approx(float(result["norm"].sel(kind="client")), rel=1e-5)


def test_short_drifts_cost_what_the_second_order_says(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2", "local.lr=0.001")
    result = drift_curvature(run, rounds=[1], kinds=RECORDED, k=2, samples=20).isel(round=0)
    for kind in ("client", "change"):
        cost, quadratic = (float(result[name].sel(kind=kind)) for name in ("cost", "quadratic"))
        assert quadratic == pytest.approx(cost, abs=2e-6), kind


def test_the_cost_of_sampling_drift_is_that_of_the_exact_split(tmp_path):
    run = tiny.trained(tmp_path, "rounds=3")
    count = len(run.task.split("test"))
    ours = drift_curvature(run, rounds=[1, 2], kinds=["sampling"], k=2, samples=count).sel(kind="sampling")
    exact = counterfactual(run, rounds=[1, 2]).sel(part="sampling")  # FedAvg's end is the mean of its cohort
    np.testing.assert_allclose(ours["norm"], exact["norm"], rtol=1e-5)
    np.testing.assert_allclose(ours["cost"], exact["loss_cost"], rtol=1e-3, atol=1e-6)
    assert float(abs(ours["cost"]).min()) > 1e-5
    short = tiny.trained(tmp_path, "rounds=2", "local.lr=0.001")
    near = drift_curvature(short, rounds=[1], kinds=["sampling"], k=2, samples=count).isel(round=0, kind=0)
    assert float(near["quadratic"]) == pytest.approx(float(near["cost"]), abs=2e-6)


def test_the_update_change_of_other_methods_is_that_of_the_mean_updates(tmp_path):
    run = tiny.trained(tmp_path, "rounds=3", "method=fedeve")
    ours = drift_curvature(run, rounds=[2], kinds=["change"], k=2, samples=20)
    np.testing.assert_allclose(ours["norm"].item() ** 2, update_change(run, rounds=[2]).change.item(), rtol=1e-4)
    few = tiny.trained(tmp_path, "rounds=3", "method=fedeve", "keep.clients=last 1", "keep.globals=all")
    with pytest.raises(LookupError, match="kept no clients of round 1"):
        drift_curvature(few, rounds=[2], kinds=["change"], k=2, samples=20)


def _dense_hessian(module, theta, samples):
    """Hessian (d, d) of the mean cross-entropy at theta (d,), in float64, by torch alone."""
    model = copy.deepcopy(module).double()
    shapes = [(name, values.shape) for name, values in model.named_parameters()]

    def loss(vector):
        parts = vector.split([shape.numel() for _, shape in shapes])
        named = {name: part.view(shape) for (name, shape), part in zip(shapes, parts, strict=True)}
        outputs = torch.func.functional_call(model, named, (samples.inputs.double(),))
        return torch.nn.functional.cross_entropy(outputs, samples.targets)

    return torch.autograd.functional.hessian(loss, theta)


def test_shares_are_those_of_the_dense_eigenvectors(tmp_path):
    run = tiny.trained(tmp_path, "rounds=3")
    result = drift_curvature(run, rounds=[2], kinds=["sampling", "client"], k=3, samples=20).isel(round=0)
    weights = (run.round(2).sizes / run.round(2).sizes.sum()).double()
    trained = train_all_clients(run, find_clients_to_train(run, 2))
    models = torch.stack([trained.models[k].double() for k in range(len(trained.shares))])
    full, clients = trained.shares @ models, run.round(2).clients.double()
    mean = weights @ clients
    for kind, model, moves, shares in (
        ("sampling", full, (trained.weights @ models - full)[None], torch.ones(1).double()),
        ("client", mean, clients - mean, weights),
    ):
        samples = run.task.split("test")[:20]
        values, vectors = torch.linalg.eigh(_dense_hessian(run.task.model, model, samples))
        span = vectors[:, values.abs().argsort(descending=True)[:3]]
        expected = shares @ ((moves @ span).square().sum(1) / moves.square().sum(1))
        assert float(result["share"].sel(kind=kind)) == pytest.approx(float(expected), abs=2e-3), kind
        assert float(result["residual"].sel(kind=kind)) <= 1e-2


def test_the_estimate_is_compared_with_the_exact_variance_at_the_same_rounds(tmp_path):
    base = tiny.trained(tmp_path, "rounds=14", "method=fedeve", "keep.globals=all")
    run = tiny.trained(tmp_path, *IMA, "method.base=fedeve", "keep.globals=all")
    for place, member in enumerate((run, base)):
        exact = counterfactual(member, rounds=[12, 13])
        expected = np.log2(float(exact["sampling_estimate"].mean()) / float(exact["sampling_variance"].mean()))
        assert estimate_while_averaging(run, base, member=place) == pytest.approx(expected)


def test_the_change_is_compared_with_the_exact_drift_that_it_stands_for(tmp_path):
    """The paired ratio of IMA over its base: of the estimate, over that of the variance."""
    base = tiny.trained(tmp_path, "rounds=14", "keep.globals=all")
    run = tiny.trained(tmp_path, *IMA, "keep.globals=all")
    falls = [exact_while_averaging(run, base, name=f"sampling_{kind}") for kind in ("estimate", "variance")]
    assert change_against_drift(run, base) == pytest.approx(falls[0] - falls[1])
    asked = {one.name: one for one in questions()}["cross-ima-change-over-sampling"].judge([run, base])
    assert asked.interval.value == pytest.approx(falls[0] - falls[1])


def test_nothing_is_over_the_sampling_drift_of_full_participation_and_the_reason_is_named(tmp_path):
    everyone = ("clients.per_round=4", "keep.globals=all")
    runs = tiny.trained(tmp_path, *IMA, *everyone), tiny.trained(tmp_path, "rounds=14", *everyone)
    for measure in (
        partial(estimate_while_averaging, *runs, member=1),
        partial(exact_while_averaging, *runs, name="sampling_variance"),
        partial(carried, *runs, member=0),
        partial(change_against_drift, *runs),
        partial(estimate_ratio, runs[1], name="sampling"),
    ):
        with pytest.raises(LookupError, match="is zero in every round, as where all clients take part"):
            measure()
    assert np.isfinite(exact_while_averaging(*runs, name="client_variance"))


def test_the_ratio_of_client_drift_is_one_over_all_cohorts():
    draw = np.random.default_rng(0)
    number, m, d = 7, 3, 4
    updates = draw.normal(size=(number, d))
    exact = ((updates - updates.mean(0)) ** 2).sum() / (number * m * d)
    cohorts = [updates[list(one)] for one in combinations(range(number), m)]
    estimates = [((one - one.mean(0)) ** 2).sum() / (m**2 * d) for one in cohorts]
    variances = np.full(len(estimates), exact)
    terms = xr.Dataset({"client_estimate": ("round", estimates), "client_variance": ("round", variances)})
    terms = terms.assign(cohort=m, clients=number)
    assert np.mean(estimates) / exact < 0.8
    assert estimate_over_exact(terms, "client") == pytest.approx(1)


def test_an_estimate_over_the_exact_variance_is_a_ratio_of_means_of_the_rounds_that_have_both():
    numbers = {"sampling_estimate": [np.nan, 4.0, 8.0], "sampling_variance": [5.0, 1.0, 4.0]}
    terms = xr.Dataset({name: ("round", values) for name, values in numbers.items()}).assign(cohort=2, clients=3)
    assert estimate_over_exact(terms, "sampling") == pytest.approx(12 / 5)  # the mean of the ratios is 3


@pytest.mark.parametrize(("quadratic", "error"), [([1.0, 2.0], 0.5), ([-1.5, 0.5], -1.5), ([0.0, 2.0], 0.0)])
def test_a_negative_prediction_has_an_error_too(quadratic, error):
    values = {
        "quadratic": (("round", "kind"), np.array(quadratic)[:, None]),
        "cost": (("round", "kind"), [[0.5], [1.5]]),
    }
    asked = SimpleNamespace(
        cached=lambda *_, **__: xr.Dataset(values, {"kind": ["change"], "round": [1, 2]}),
        kept=lambda _: [1, 2],
        experiment=SimpleNamespace(rounds=3),
    )
    assert quadratic_error(asked, kind="change") == pytest.approx(error)


def test_a_start_without_the_last_sampling_drift_has_undone_all_of_it(monkeypatch):
    monkeypatch.setattr(cross, "_late_rounds", lambda *_: [1])
    sampling, gone = np.array([1.0, 2.0]), 1.0
    moved = -gone * sampling + np.array([2.0, -1.0])  # the rest is orthogonal to the sampling drift
    parts = xr.Dataset(
        {"carried": ("round", [-2 * sampling @ moved]), "sampling_before": ("round", [sampling @ sampling])}
    )
    run = SimpleNamespace(cached=lambda *_, **__: parts)
    assert carried(run, run, member=0) == pytest.approx(gone)


@pytest.mark.parametrize(
    ("gains", "first"),
    [([1, 2, 3], 10.0), ([-1, 2, 3], 20.0), ([1, -2, 3], 30.0), ([1, 2, -3], np.nan)],
)
def test_averaging_pays_from_the_round_after_the_last_loss(gains, first):
    np.testing.assert_equal(paying_from(np.array([10, 20, 30]), np.array(gains)), first)


def test_pairs_with_ima_have_the_options_asked_for(tmp_path):
    runs = [
        tiny.trained(tmp_path, "rounds=14"),
        *(tiny.trained(tmp_path, *IMA, *more) for more in ((), ("method.late=na",), ("method.window=1",))),
    ]

    def late(run, other):
        assert other.label == "fedavg"
        return float(run.method.window if run.method.late == "exp" else 100)

    for options, expected in (((5, "exp"), 5.0), ((5, "na"), 100.0), ((1, "exp"), 1.0)):
        suited = of_variant(runs, dict(zip(("window", "late"), options, strict=True)))
        assert len(suited) == 2
        assert pair_effects(suited, "ima", "fedavg", late) == {5: expected}


def test_series_are_compared_over_the_rounds_in_which_ima_averages(tmp_path):
    base, run = tiny.trained(tmp_path, "rounds=14"), tiny.trained(tmp_path, *IMA)
    assert averaging_rounds(run) == 11
    series = [one.cached(drift_variances)["change_variance"].values[11:].mean() for one in (run, base)]
    measured = while_averaging(run, base, name="change_variance", log=True)
    assert measured == pytest.approx(np.log2(series[0] / series[1]))
    with pytest.raises(LookupError, match="was not trained by ima"):
        averaging_rounds(base)


def test_the_margin_of_fedeve_is_compared_with_and_without_ima(tmp_path):
    from drift.claims.measures import accuracy

    runs = {
        name: tiny.trained(tmp_path, "rounds=14", *settings)
        for name, settings in {
            "fedavg": (),
            "ima": IMA,
            "fedeve": ("method=fedeve",),
            "both": (*IMA, "method.base=fedeve"),
        }.items()
    }
    points = {name: accuracy(run) for name, run in runs.items()}
    expected = (points["both"] - points["ima"]) - (points["fedeve"] - points["fedavg"])
    assert margin_changed(list(runs.values())) == {5: pytest.approx(expected)}


def test_every_question_can_be_asked_of_any_runs(tmp_path):
    runs = [tiny.trained(tmp_path, "rounds=14", *more) for more in ((), IMA)]
    verdicts = {question.name: question.judge(runs) for question in questions()}
    assert len(verdicts) == len(questions())
    assert verdicts["cross-ima-change"].seeds == (5,)
    assert verdicts["cross-fedeve-gain"].outcome == "not tested"
    assert verdicts["cross-cost-sampling"].seeds == (5,)
