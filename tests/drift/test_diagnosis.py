"""Runs made to have one known fault each: its cause comes first. And what a diagnosis says of any run."""

import json

import numpy as np
import pytest
import tiny
import xarray as xr

from benchmarks.diagnosis import FAULTS, first_cause, trained
from drift.causes import CLEAR, breakdown
from drift.diagnosis import causes_of, diagnose
from drift.participation import balanced_cohort
from figures.commands.diagnose import WIDTH, screen

QUICK = [
    "healthy",
    "1 client in a round",
    "client 3 has two labels swapped",
    "two labels a client",
    "local rate 1.5",
    "gamma = 0.9",
]
QUESTIONS = ["centre", "error", "drift", "coherence", "shrink", "clients", "training"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(runs):
    return tiny.trained(runs)


@pytest.mark.parametrize("fault", QUICK)
def test_the_known_fault_comes_first_and_a_healthy_run_has_none(fault, runs):
    assert first_cause(trained("digits", fault, 1, runs))[0] == FAULTS[fault][0]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_the_known_fault_comes_first_on_other_data(fault, runs):
    assert first_cause(trained("blobs", fault, 1, runs))[0] == FAULTS[fault][0]


def test_clear_causes_come_first_and_only_clear_gains_are_clear(runs):
    found, why = causes_of(trained("digits", "two labels a client", 1, runs), [], 1)
    clear = [cause.clear for cause in found]
    assert why == "" and clear == sorted(clear, reverse=True)
    assert all(cause.gain.low > 0 for cause in found if cause.clear)
    shares = [cause.share for cause in found if cause.clear]
    assert shares == sorted(shares, reverse=True)
    assert 0 < CLEAR < 0.1


def test_a_run_that_learned_nothing_is_broken_from_its_first_rounds_on(runs):
    assert breakdown(trained("digits", "local rate 1.5", 1, runs))[0] < 5
    assert breakdown(trained("digits", "healthy", 1, runs)) == []


def test_every_question_is_answered_on_one_screen(run):
    found = diagnose(run)
    assert [answer.name for answer in found.findings] == QUESTIONS
    lines = screen(found)
    assert len(lines) <= 40 and max(map(len, lines)) <= WIDTH
    content = json.loads(json.dumps(found.to_dict(), default=float))
    assert content["per_round"] == 3 and len(content["findings"]) == 7


def test_quick_trains_nothing_and_says_what_it_cannot_tell(runs, monkeypatch):
    fresh = tiny.trained(runs, "seed=9")
    monkeypatch.setattr("drift.client.Client.train", None)
    found = diagnose(fresh, quick=True)
    assert found.causes == () and found.first is None
    text = "\n".join(screen(found))
    assert "not tested" in text and "variance and covariance not known" in text


def test_a_record_without_models_is_answered_as_far_as_it_goes(runs):
    bare = tiny.trained(runs, "keep.clients=none", "keep.globals=none")
    found = diagnose(bare)
    said = {answer.name: answer.statement for answer in found.findings}
    assert "keep.globals=all" in found.untested and "keep.globals=all" in said["centre"]
    assert "keep.clients=all" in said["error"] and "critical point" in said["coherence"]


def test_balance_of_period_drift_and_local_steps_follows_its_formula():
    share, distance = np.array([[0.5, 0.25, 0.25]]), np.array([[1.0, 2.0, 2.0]])
    norm = xr.DataArray([[np.sqrt(0.5)]], coords={"part": ["local"]}, dims=("round", "part"))
    exact = xr.Dataset({"share": (("round", "client"), share), "distance": (("round", "client"), distance)})
    total = 3**2 / 2 * 0.75
    assert balanced_cohort(exact.assign(norm=norm), 3) == pytest.approx(1 / (0.5 / total + 1 / 3))


def test_a_run_without_rounds_is_refused(runs, run, monkeypatch):
    monkeypatch.setattr("drift.run.Run.rounds", lambda self: [])
    with pytest.raises(LookupError, match="no complete round"):
        diagnose(run)
