"""Claims: how they are judged, how runs are picked for them, and that every one can be asked of any runs."""

import numpy as np
import pytest

from drift.claims import PAPERS, check, claims, select_runs
from drift.claims.claim import Claim
from drift.claims.measures import accuracy, quarters
from tests.tiny import trained


def claim(effects):
    def measure(runs):
        if effects is None:
            raise LookupError("no run of it")
        return effects

    return Claim("name", "Table 1", "it is so", "how much", "1", measure)


@pytest.mark.parametrize(
    ("effects", "outcome"),
    [
        ({0: 1.0, 1: 2.0, 2: 1.5}, "supported"),
        ({0: 1.0, 1: -2.0, 2: 1.5}, "not supported"),
        ({0: -1.0, 1: -2.0, 2: -1.5}, "not supported"),
        ({0: 1.0, 1: 2.0}, "not testable here"),
        ({0: 1.0, 1: np.nan, 2: 2.0}, "not testable here"),
        ({0: np.nan}, "not testable here"),
        (None, "not testable here"),
    ],
)
def test_a_verdict_needs_three_seeds_and_an_interval_above_zero(effects, outcome):
    found = claim(effects).judge([])
    assert found.outcome == outcome
    assert (found.reason != "") == (outcome == "not testable here")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    fair = [trained(folder, f"seed={seed}", f"method={method}") for seed in (1, 2) for method in ("fedavg", "fedeve")]
    more = [trained(folder, "seed=1", "clients.partition.concentration=9.0"), trained(folder, "seed=1", "rounds=2")]
    return [*fair, *more]


def test_pairs_share_setting_and_seed(runs):
    seen = []
    found = select_runs.pair_effects(
        runs, "fedeve", "fedavg", lambda run, other: seen.append((run.name, other.name)) or 1.0
    )
    assert found == {1: 1.0, 2: 1.0}
    assert len(seen) == 2
    with pytest.raises(LookupError, match="no runs of lss and fedavg"):
        select_runs.pair_effects(runs, "lss", "fedavg", lambda run, other: 0.0)


def test_extremes_differ_in_one_setting_alone(runs):
    found = select_runs.extreme_effects(
        runs, "fedavg", "clients.partition.concentration", lambda run: run.experiment.clients.partition.concentration
    )
    assert found == {1: 1.0 - 9.0}
    with pytest.raises(LookupError, match=r"differ in clients\.per_round alone"):
        select_runs.extreme_effects(runs, "fedavg", "clients.per_round", lambda run: 0.0)
    with pytest.raises(LookupError, match=r"differ in no\.such alone"):
        select_runs.extreme_effects(runs, "fedavg", "no.such", lambda run: 0.0)


def test_each_is_the_mean_over_the_settings_of_a_seed(runs):
    found = select_runs.method_effects(runs, "fedavg", lambda run: float(run.experiment.rounds))
    assert found == {1: pytest.approx((3 + 3 + 2) / 3), 2: 3.0}


def test_numbers_of_a_run(runs):
    assert accuracy(runs[0]) == pytest.approx(100 * float(runs[0].metrics()["accuracy"].mean()))
    assert quarters([1, 2, 3, np.nan, 5, 6, 7, 8]) == (1.5, 7.5)


def test_names_of_claims_are_different_and_tell_their_paper():
    names = [one.name for one in claims()]
    assert len(set(names)) == len(names)
    assert {name.partition("-")[0] for name in names} == set(PAPERS)
    assert [one.name for one in claims("lss")] == [name for name in names if name.startswith("lss-")]
    with pytest.raises(ValueError, match="Known: fedeve, fedlaw, ima, lss"):
        claims("fedprox")


def test_every_claim_can_be_asked_of_any_runs(runs):
    verdicts = check(runs)
    assert len(verdicts) == len(claims())
    testable = {verdict.claim.name for verdict in verdicts if verdict.seeds}
    assert {"ima-locality-bounded", "fedlaw-coherence-falls", "fedeve-accuracy"} <= testable
    missing = [verdict for verdict in verdicts if not verdict.seeds]
    assert all(verdict.reason and np.isnan(verdict.effect) for verdict in missing)
