"""First advice makes runs with a known fault better. And what a diagnosis says of any run."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import xarray as xr

from benchmarks.diagnosis import FAULTS, HELD_OUT, NAMED, constants, judged, summary, table, trained
from drift.analyses.counterfactual.step_terms import cohort_of_equal_drifts
from drift.analyses.counterfactual.whatif import what_if
from drift.diagnosis import findings
from drift.diagnosis.diagnose import diagnose
from figures.commands.diagnose import WIDTH, screen

QUESTIONS = ["training", "labels", "centre", "error", "drift", "coherence", "shrink", "clients"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(runs):
    return tiny.trained(runs)


@pytest.mark.slow  # test_causes.py: what counts as advice, and that following it is the training of the command
def test_first_advice_lowers_the_loss_of_a_training_it_has_not_seen(runs):
    row = judged(trained("blobs", "FedAdam, server rate 0.3", 1, runs), every=False)
    assert row["change"] is not None
    assert row["final"][row["change"]] < row["final"]["unchanged"]


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["digits", "blobs"])
@pytest.mark.parametrize("fault", FAULTS)
def test_first_advice_lowers_the_loss_for_every_fault(fault, setting, runs):
    row = judged(trained(setting, fault, 1, runs))
    assert row["change"] is None or row["final"][row["change"]] < row["final"]["unchanged"]


def test_published_results_are_those_of_the_benchmark_on_seeds_held_out():
    path = Path(__file__).parents[3] / "docs" / "results" / "diagnosis.json"
    rows = json.loads(path.read_text())["rows"]
    assert {row["seed"] for row in rows} <= set(HELD_OUT) and not set(HELD_OUT) & set(range(1, 10))
    page = (path.parents[1] / "diagnosis.md").read_text()
    for line in table(rows):
        assert line in page, line


def test_a_constant_advice_leaves_runs_without_it_as_they_are():
    rows = [
        {"change": "a", "final": {"unchanged": 1.0, "a": 0.8, "b": 0.5}},
        {"change": "a", "final": {"unchanged": 2.0, "a": 1.0, "b": 3.0}},
        {"change": None, "final": {"unchanged": 1.0, "b": 0.9, "c": 0.7, "longer": 0.1}},
    ]
    assert constants(rows) == {
        "a": pytest.approx((2 / 3, (0.3 + 0.0 + 0.3) / 3)),
        "b": pytest.approx((2 / 3, (0.0 + 1.0 + 0.2) / 3)),
    }
    assert set(NAMED) < set(FAULTS)


def test_regret_and_the_share_that_gained_by_hand():
    rows = [
        {"setting": "digits", "change": "a", "final": {"unchanged": 1.0, "a": 0.8, "b": 0.5, "longer": 0.1}},
        {"setting": "digits", "change": "b", "final": {"unchanged": 1.0, "a": 0.8, "b": 1.1, "longer": 0.1}},
        {"setting": "digits", "change": None, "final": {"unchanged": 1.0, "a": 1.2}},
        {"setting": "digits", "change": "longer", "final": {"unchanged": 1.0, "a": 0.9, "longer": 0.4}},
    ]
    of = summary(rows)
    assert of["runs"] == 4 and of["advised"] == 3 and of["lowered"] == pytest.approx(2 / 3)
    assert of["regret"] == pytest.approx((0.3 + 0.3 + 0 + 0) / 4)
    assert of["idle"] == pytest.approx((0.5 + 0.2 + 0 + 0.6) / 4)


@pytest.fixture(scope="module")
def diagnosis(run):
    return diagnose(run)


def test_constants_are_no_findings(run, diagnosis):
    said = " ".join(finding.statement for one in (diagnose(run, quick=True), diagnosis) for finding in one.findings)
    assert "heterogeneous bias" not in said and "drift is larger" not in said
    assert not any(cause.name == "labels" for cause in diagnosis.causes)


def test_every_question_is_answered_on_one_screen(run, diagnosis):
    found = diagnosis
    assert [answer.name for answer in found.findings] == QUESTIONS
    lines = screen(found)
    texts = [line for line in lines if not line.startswith("    fedscape ")]  # a command is one line, to be copied
    assert len(lines) <= 42 and max(map(len, texts)) <= WIDTH
    shrinking = next(answer for answer in found.findings if answer.name == "shrink")
    rules = run.cached(what_if, rounds=run.kept("globals")[-5:], windows=[3, 5], steps=0)
    least = 0.02 * float(rules.loss.sel(variant="end").mean())
    assert f"clear above {least:.2g}" in shrinking.measure
    assert (shrinking.statement == "shrinking would help") == (shrinking.low >= least)
    content = json.loads(json.dumps(found.to_dict(), default=float))
    assert content["per_round"] == 3 and len(content["findings"]) == 8


def test_quick_trains_nothing_and_says_what_it_cannot_tell(runs, monkeypatch):
    fresh = tiny.trained(runs, "seed=9")
    monkeypatch.setattr("drift.training.client.Client.train", None)
    found = diagnose(fresh, quick=True)
    assert found.causes == () and found.first is None
    text = "\n".join(screen(found))
    assert "not tested" in text and "not known without training" in text


def test_a_record_without_models_is_answered_as_far_as_it_goes(runs):
    bare = tiny.trained(runs, "keep.clients=none", "keep.globals=none")
    found = diagnose(bare)
    said = {answer.name: answer.statement for answer in found.findings}
    assert "keep.globals=all" in found.untested and "keep.globals=all" in said["centre"]
    assert "keep.clients=all" in said["error"] and "critical point" in said["coherence"]


def test_balance_of_sampling_drift_and_local_steps_follows_its_formula():
    share, distance = np.array([[0.5, 0.25, 0.25]]), np.array([[1.0, 2.0, 2.0]])
    norm = xr.DataArray([[np.sqrt(0.5)]], coords={"part": ["local"]}, dims=("round", "part"))
    exact = xr.Dataset({"share": (("round", "client"), share), "distance": (("round", "client"), distance)})
    total = 3**2 / 2 * 0.75
    assert cohort_of_equal_drifts(exact.assign(norm=norm), 3) == pytest.approx(1 / (0.5 / total + 1 / 3))


def test_a_run_without_rounds_is_refused(runs, run, monkeypatch):
    monkeypatch.setattr("drift.runs.run.Run.rounds", lambda self: [])
    with pytest.raises(LookupError, match="no complete round"):
        diagnose(run)


def test_a_gain_of_averaging_is_said_as_a_gain():
    residual = xr.DataArray([-1.2, -1.0, -0.8], dims="round")
    for sign, said in ((1, "part by which the squared error of the ensemble is higher"), (-1, "averaging adds")):
        terms = xr.Dataset({"residual": sign * residual, "fma_loss": xr.ones_like(residual)})
        found = findings._error(
            SimpleNamespace(kept=lambda what: [0, 1, 2], cached=lambda *_, terms=terms, **how: terms)
        )
        assert said in found.measure and found.value == pytest.approx(1) and 0 < found.low < 1 < found.high


def test_the_mean_cosine_says_its_rounds(run):
    found = next(answer for answer in diagnose(run, quick=True).findings if answer.name == "coherence")
    rounds = run.rounds()[-findings.ROUNDS :]
    assert found.measure == f"mean cosine of updates, rounds {rounds[0]} to {rounds[-1]}"
