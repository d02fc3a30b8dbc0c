"""Sentences on differences of losses state their standard errors over the samples, and what is not clear."""

import base64
import dataclasses

import numpy as np
import packed_pages
import pytest
import torch
import xarray as xr

from figures.page.paired_losses import is_clear, loss_parts, mean_and_error, round_losses
from figures.page.stage_round import cohort_values
from figures.page.why import why


def per_sample(run, theta):
    samples = run.task.split("test")
    return run.task.per_sample(run.task.outputs(theta.float(), samples), samples.targets).double().numpy()


def error_of(differences):
    return differences.std(ddof=1) / np.sqrt(len(differences))


@pytest.fixture(scope="module")
def round_one(runs):
    run, record = runs[0], runs[0].round(1)
    losses = round_losses(run, record, None)
    return run, record, losses, cohort_values(run, record, losses, None)


def test_errors_are_those_of_paired_losses_of_single_samples(round_one):
    run, record, losses, cohort = round_one
    models, shares = record.kept("clients").double(), record.shares.double()
    aggregate = per_sample(run, shares @ models)
    clients = np.stack([per_sample(run, model) for model in models])
    assert len(run.task.split("test")) < 100, "each sample is a part"
    assert float(losses.gain_error) == pytest.approx(error_of(aggregate - clients.mean(0)), rel=1e-3)
    for row, client in enumerate(cohort):
        rest = shares.clone()
        rest[row] = 0
        without = per_sample(run, rest / rest.sum() @ models)
        assert client["cost_error"] == pytest.approx(error_of(aggregate - without), rel=1e-3)
        assert client["cost"] == pytest.approx((aggregate - without).mean(), abs=1e-6)


def test_many_samples_are_compared_by_parts_of_them():
    values = np.random.default_rng(2).normal(size=(2, 5000))
    task = type("Task", (), {"per_sample": staticmethod(lambda outputs, targets: outputs)})
    parts, shares = loss_parts(task, type("Samples", (), {"__len__": lambda _: 5000, "targets": torch.zeros(5000)})())
    of_parts = np.stack([np.bincount(parts, weights=line) / np.bincount(parts) for line in values])
    mean, error = mean_and_error(of_parts[0] - of_parts[1], shares)
    assert float(mean) == pytest.approx((values[0] - values[1]).mean())
    assert float(error) == pytest.approx(error_of(values[0] - values[1]), rel=0.07)


def test_the_error_of_a_few_hundred_samples_is_exact():
    values = np.random.default_rng(3).standard_t(3, size=(2, 310))
    task = type("Task", (), {"per_sample": staticmethod(lambda outputs, targets: outputs)})
    parts, shares = loss_parts(task, type("Samples", (), {"__len__": lambda _: 310, "targets": torch.zeros(310)})())
    of_parts = np.stack([np.bincount(parts, weights=line) / np.bincount(parts) for line in values])
    _, error = mean_and_error(of_parts[0] - of_parts[1], shares)
    assert float(error) == pytest.approx(error_of(values[0] - values[1]), rel=1e-9)


def test_one_sample_has_no_error_and_nothing_is_clear(runs):
    parts, shares = loss_parts(runs[0].task, runs[0].task.split("test")[:1])
    assert parts is None and np.isnan(mean_and_error(np.array([[3.0]]), shares)[1]).all()
    assert not is_clear(3.0, float("nan")) and not is_clear(3.0, None)


def test_the_largest_of_many_differences_must_be_larger_to_be_clear():
    assert is_clear(2.0, 1.0) and not is_clear(1.9, 1.0)
    assert not is_clear(2.0, 1.0, among=10) and is_clear(2.9, 1.0, among=10)


def test_a_harm_counted_from_other_weights_than_the_rounds_own_says_so(round_one, monkeypatch):
    run, record, losses, cohort = round_one
    sure = [{**one, "cost": 0.5 if place == 1 else -0.1, "cost_error": 0.01} for place, one in enumerate(cohort)]
    other = torch.linspace(0.5, 1, len(cohort))
    help_, none = ([{**one, "cost": cost, "cost_error": 0.01} for one in cohort] for cost in (-0.3, 0.001))
    for weights, words in ((record.weights, "the aggregate"), (other, "the mean with FedAvg's weights")):
        changed = dataclasses.replace(record, weights=weights)
        monkeypatch.setattr(type(run), "round", lambda run, index, changed=changed: changed)
        client, _, averaging, _ = why(run, 1, losses, sure)
        assert f"harms {words} most: without it the loss would be lower." in client["text"]
        assert f": {words} has a test loss of " in averaging["text"]
        assert f"helps {words} most. No client clearly harms it." in why(run, 1, losses, help_)[0]["text"]
        assert why(run, 1, losses, none)[0]["text"].startswith(f"No client clearly harms {words} (")


def test_sentences_say_what_is_not_clear(round_one):
    run, _, losses, cohort = round_one
    client, _, averaging, _ = why(run, 1, losses, cohort)
    assert averaging["number"].count(" ± ") == client["number"].count(" ± ") == 1
    doubtful = losses.assign(gain_error=100.0)
    vague = [{**one, "cost_error": 100.0} for one in cohort]
    client, _, averaging, _ = why(run, 1, doubtful, vague)
    assert averaging["text"].startswith("No clear difference: the aggregate") and averaging["number"].endswith(
        "± 100 nats"
    )
    assert client["text"].startswith("No client clearly harms the aggregate")
    assert client["text"].endswith(", and none clearly helps it.") and client["number"].endswith("± 100 nats")
    sure = [{**one, "cost": 0.5 if place == 1 else -0.1, "cost_error": 0.01} for place, one in enumerate(cohort)]
    client, *_ = why(run, 1, losses, sure)
    assert client["text"].startswith(f"Client {cohort[1]['id']} ") and "harms the aggregate most" in client["text"]
    assert client["number"] == "+0.5 ± 0.01 nats"
    client, *_ = why(run, 1, losses, [{**one, "own_before": 1.72534, "own_after": 0.00204} for one in sure])
    assert client["text"].endswith("from 1.73 to 0.00204."), "no digits beyond those of the others"
    helps = [
        {**one, "cost": -0.3 if place == 1 else 0.1 - place / 100, "cost_error": 0.05}
        for place, one in enumerate(cohort)
    ]
    client, *_ = why(run, 1, losses, helps)
    worst, best = cohort[0]["id"], cohort[1]["id"]
    assert client["text"].startswith(f"Client {best} ") and " helps the aggregate most. " in client["text"]
    assert client["text"].endswith(f"No client clearly harms it (client {worst} most: +0.1 ± 0.05 nats).")
    assert client["number"] == "-0.3 ± 0.05 nats"
    client, *_ = why(run, 1, losses, [{**one, "cost": -0.3, "cost_error": 0.05} for one in cohort])
    assert client["text"].startswith("Client ") and client["text"].endswith("No client clearly harms it.")
    client, *_ = why(run, 1, losses, [{**one, "cost": -0.3, "cost_error": 9.0} for one in cohort])
    assert client["number"] == "", "no number of a client that the sentence does not name"
    costs, errors = [0.18, 0.11, *[0.001] * 20], [0.09, *[0.016] * 21]
    noisy = [{**one, "cost": costs[place], "cost_error": errors[place]} for place, one in enumerate(cohort)]
    for sign, verb in ((1, "harms"), (-1, "helps")):
        client, *_ = why(run, 1, losses, [{**one, "cost": sign * one["cost"]} for one in noisy])
        assert client["text"].startswith(f"Client {cohort[1]['id']} "), "a clear effect beside a larger noisy one"
        assert f" clearly {verb} the aggregate" in client["text"] and "aggregate most" not in client["text"]
        assert client["number"] == f"{'+' if sign > 0 else '-'}0.11 ± 0.016 nats"
        assert ("No client clearly harms it." in client["text"]) == (sign < 0)
        said = f"Whether others harm it is not clear (client {cohort[0]['id']} most: +0.18 ± 0.09 nats)."
        assert (said in client["text"]) == (sign > 0)
    unknown = [{**one, "cost_error": None} for one in cohort]  # of a single sample
    client, _, averaging, _ = why(run, 1, losses.assign(gain_error=np.nan), unknown)
    assert averaging["text"].startswith("No clear difference") and "± ? nats" in averaging["number"] + client["number"]


def test_sentences_say_whether_updates_agree_and_whether_the_drift_changed_its_kind(round_one, monkeypatch):
    run, _, losses, cohort = round_one
    noise = 0.02 * np.random.default_rng(0).standard_normal(40)

    def said(gram, values):
        record = dataclasses.replace(run.round(1), gram=torch.as_tensor(gram))
        monkeypatch.setattr(type(run), "round", lambda run, index: record)
        columns = {"coherence": ("round", values), "mean_cosine": ("round", 3 * values)}
        series = xr.Dataset(columns, {"round": np.arange(len(values))})
        monkeypatch.setattr(type(run), "cached", lambda run, analysis: series)
        return why(run, 1, losses, cohort)

    size = len(cohort) + 3
    alike, mixed = np.ones((size, size)), np.eye(size)
    mixed[3, 4] = mixed[4, 3] = mixed[3, 5] = mixed[5, 3] = 0.5
    _, change, _, agree = said(alike, np.repeat([0.3, -0.3], 20) + noise)
    assert "mostly agree" in agree["text"] and agree["number"] == "cosine +1 ± 0"
    assert "changed its kind in round 20, between" in change["text"] and change["number"].startswith("coherence +0.3, ")
    _, change, _, agree = said(mixed, np.abs(noise))
    assert "neither clearly agree nor clearly disagree" in agree["text"]
    assert change["text"].startswith("In rounds 0 to 39 client updates agree on average (mean cosine +")
    assert change["number"] == f"mean cosine {3 * np.abs(noise).mean():+.2g}"
    assert "95 %). No change of the drift's kind was found: " in change["text"]
    _, change, *_ = said(mixed, np.array([0.2, -0.2, np.nan]))
    assert "In rounds 0 to 1 " in change["text"] and "2 rounds are too few" in change["text"]


def test_a_frame_carries_the_losses_by_which_two_runs_are_compared(whole_report, runs):
    scene = packed_pages.content(whole_report.read_text(), "scene")
    first, second = (run["shown"]["2"]["parts"] for run in scene["runs"])
    assert first["of"] == second["of"], "the same samples"
    assert first["samples"] == len(runs[0].task.split("test"))
    losses = [np.frombuffer(base64.b64decode(one["end"]), "<f4") for one in (first, second)]
    ends = [per_sample(run, run.round(2).kept("end")) for run in (runs[0], runs[2])]
    assert error_of(losses[0] - losses[1]) == pytest.approx(error_of(ends[0] - ends[1]), rel=1e-3)
