"""Claims: how they are judged, and how p is adjusted."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from drift.analyses.over_seeds import estimate
from drift.claims.campaign import judge
from drift.claims.claim import Claim, adjusted


def run_of(seed):
    return SimpleNamespace(experiment=SimpleNamespace(seed=seed))


def claim(effects, test="more", margin=None):
    """A claim whose effect is that of each seed; the seed lacks a run where it has none."""

    def measure(runs):
        seeds = {run.experiment.seed for run in runs}
        if missing := seeds - set(effects):
            raise LookupError(f"no run of {sorted(missing)}")
        return {seed: effects[seed] for seed in seeds}

    return Claim("name", "Table 1", "it is so", "how much", "1", measure, test, margin)


@pytest.mark.parametrize(
    ("effects", "outcome"),
    [
        ({0: 1.0, 1: 2.0, 2: 1.5}, "agrees"),
        ({0: 1.0, 1: -2.0, 2: 1.5}, "too few"),
        ({0: -1.0, 1: -2.0, 2: -1.5}, "differs"),
        ({0: 1.0, 1: 1.0}, "too few"),
        ({0: 1.0, 1: np.nan, 2: 2.0}, "too few"),
        ({0: 1.0}, "too few"),
        ({0: np.nan}, "not tested"),
        ({}, "not tested"),
    ],
)
def test_a_verdict_needs_three_seeds_and_an_interval_on_one_side_of_zero(effects, outcome):
    verdict = claim(effects).judge([run_of(seed) for seed in effects])
    assert verdict.outcome == outcome
    assert (verdict.reason != "") == (not all(map(np.isfinite, effects.values())) or not effects)


THREE = {0: 1.0, 1: 2.0, 2: 1.5}  # mean 1.5, interval 0.258 to 2.742
MINUS = {0: -1.0, 1: -2.0, 2: -1.5}
SMALL = {0: 0.1, 1: -0.1, 2: 0.06}  # mean 0.02, interval -0.241 to 0.281


@pytest.mark.parametrize(
    ("effects", "test", "margin", "printed", "outcome"),
    [
        (THREE, "more", None, 2.7, "agrees"),
        (THREE, "more", None, 2.8, "differs"),  # as claimed, and less than the paper's
        (THREE, "more", None, 0.2, "differs"),  # as claimed, and more than the paper's
        (THREE, "more", 2.7, 2.8, "agrees"),  # excluded, but within a margin of the paper's effect
        (THREE, "more", 0.05, 2.79, "agrees"),  # 2.74 lies in the interval
        (THREE, "more", 0.04, 2.79, "differs"),  # 2.75 does not
        (THREE, "more", 0.05, 0.21, "agrees"),  # the same below: 0.26 lies in it
        (THREE, "more", 0.04, 0.21, "differs"),
        (THREE, "more", 3.0, 2.7, "agrees"),  # lies above zero, and contains the paper's effect
        (THREE, "more", 3.0, 2.8, "equivalent"),  # lies above zero, and within the margin of none and of the paper
        (THREE, "more", 3.0, 5.8, "differs"),  # within the margin of none, and outside that of the paper
        (MINUS, "more", 3.0, None, "equivalent"),  # the same on the other side
        (MINUS, "more", 2.7, None, "differs"),
        (SMALL, "more", None, 0.2, "too few"),  # both the paper's effect and none
        (SMALL, "more", 0.3, 0.2, "equivalent"),
        (SMALL, "more", 0.28, 0.2, "too few"),  # not wholly within
        (SMALL, "more", 0.3, 0.58, "equivalent"),
        (SMALL, "more", 0.3, 0.59, "differs"),
        (SMALL, "more", 0.3, -0.55, "differs"),
        (THREE, "no less", 3.0, 2.8, "agrees"),  # "at least as" includes none
        (SMALL, "more", 0.3, None, "equivalent"),
        (SMALL, "no less", 0.25, 0.1, "agrees"),
        (SMALL, "no less", 0.24, 0.1, "too few"),
        ({0: -1.0, 1: -2.0, 2: -1.5}, "no less", 0.25, None, "differs"),
        (SMALL, "same", 0.3, None, "equivalent"),
        (SMALL, "same", 0.28, None, "too few"),
        (THREE, "same", 0.25, None, "differs"),
        (THREE, "same", 0.5, None, "too few"),
        (THREE, "same", 3.0, 99.0, "equivalent"),
        ({0: 0.1, 1: 0.1}, "same", 1.0, None, "too few"),
        (dict.fromkeys(range(3), 1.0), "same", 1.0, None, "too few"),  # at the margin, p = 1
        (dict.fromkeys(range(3), -1.0), "same", 1.0, None, "too few"),
        (dict.fromkeys(range(3), 1.001), "same", 1.0, None, "differs"),
    ],
)
def test_a_verdict_compares_the_interval_with_the_paper_with_none_and_with_the_margin(
    effects, test, margin, printed, outcome
):
    verdict = claim(effects, test, margin).judge([run_of(seed) for seed in effects], printed=printed)
    assert verdict.outcome == outcome
    assert verdict.printed == printed


@pytest.mark.parametrize("effects", [THREE, SMALL, {0: -0.4, 1: 0.1, 2: -0.2, 3: 0.0}])
def test_p_is_that_of_the_test_that_the_claim_asks_for(effects):
    values, runs = list(effects.values()), [run_of(seed) for seed in effects]

    def p(test, margin=None):
        return claim(effects, test, margin).judge(runs).p

    assert p("more") == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert p("no less", 0.3) == pytest.approx(stats.ttest_1samp(values, -0.3).pvalue)
    if abs(np.mean(values)) < 0.3:
        below = stats.ttest_1samp(values, 0.3, alternative="less").pvalue
        above = stats.ttest_1samp(values, -0.3, alternative="greater").pvalue
        assert p("same", 0.3) == pytest.approx(2 * max(below, above))
    else:
        assert p("same", 0.3) == pytest.approx(stats.ttest_1samp(values, 0.3).pvalue)


@pytest.mark.parametrize(
    ("effects", "test", "margin", "printed", "compared"),
    [
        ({0: 0.3, 1: 0.31, 2: 0.32}, "same", 0.1, None, 0.1),
        ({0: -0.3, 1: -0.31, 2: -0.32}, "same", 0.1, None, -0.1),
        ({0: 0.01, 1: 0.0, 2: -0.01}, "more", None, 0.5, 0.5),
        ({0: 0.3, 1: 0.31, 2: 0.32}, "no less", 0.1, 0.5, 0.4),
        ({0: 0.3, 1: 0.31, 2: 0.32}, "more", 0.1, 0.1, 0.2),
        ({0: -0.3, 1: -0.31, 2: -0.32}, "no less", 0.1, -0.25, -0.1),
        ({0: -0.3, 1: -0.31, 2: -0.32}, "more", None, None, 0.0),
        ({0: 0.1, 1: 0.1, 2: 0.1}, "more", None, 0.2, 0.2),
    ],
)
def test_a_claim_that_differs_has_the_p_of_the_test_that_says_so(effects, test, margin, printed, compared):
    verdict = claim(effects, test, margin).judge([run_of(seed) for seed in effects], printed=printed)
    spread = np.std(list(effects.values()), ddof=1) > 1e-9
    expected = stats.ttest_1samp(list(effects.values()), compared).pvalue if spread else 0.0
    assert (verdict.outcome, verdict.p) == ("differs", pytest.approx(expected))
    assert verdict.p < 0.05 and verdict.p in verdict.tests


@pytest.mark.parametrize(
    ("effects", "test", "margin", "printed", "wording"),
    [
        (THREE, "more", None, 9.0, "differs, below the paper"),
        (THREE, "more", None, -9.0, "differs, above the paper"),
        (MINUS, "more", None, None, "differs, against the claim"),
        (MINUS, "more", 0.1, -1.5, "differs, against the claim"),
        (THREE, "same", 0.1, None, "differs, outside the margin"),
        (THREE, "more", None, None, "sign agrees; no printed effect"),
        (THREE, "more", None, 1.5, "agrees"),
        (SMALL, "no less", 0.25, None, "no less; no printed effect"),
        (SMALL, "more", 0.3, None, "equivalent to none"),
        (SMALL, "more", 0.3, 0.2, "equivalent to none"),
        (SMALL, "more", 0.3, 0.4, "equivalent to none, below the paper"),
        (THREE, "more", 0.05, 0.21, "agrees, above the paper"),
        (THREE, "more", 3.0, 2.7, "agrees, within the margin"),
        (THREE, "more", 2.7, 2.7, "agrees"),
        (SMALL, "no less", 0.3, 0.2, "agrees, within the margin"),
        (SMALL, "no less", 0.3, 0.29, "agrees, within the margin, below the paper"),
        (SMALL, "same", 0.3, 99.0, "equivalent"),
        ({0: 1.0, 1: 1.5}, "more", None, None, "too few, fewer than 3 seeds"),
        ({0: 0.1, 1: 0.1}, "same", 1.0, None, "too few, fewer than 3 seeds"),
        ({0: 1.0, 1: -2.0, 2: 1.5, 3: -1.0, 4: 0.5}, "more", None, None, "too few, interval too wide"),
        (SMALL, "same", 0.28, None, "too few, interval too wide"),
    ],
)
def test_the_words_of_a_verdict_name_the_side_and_whether_the_paper_prints_an_effect(
    effects, test, margin, printed, wording
):
    verdict = claim(effects, test, margin).judge([run_of(seed) for seed in effects], printed=printed)
    assert verdict.wording == wording


def test_an_effect_within_the_margin_of_the_papers_is_no_evidence_against_it():
    verdict = claim(THREE, "more", 0.5).judge([run_of(seed) for seed in THREE], printed=1.9)
    assert verdict.tests[1] == 1.0
    outside = claim(THREE, "more", 0.5).judge([run_of(seed) for seed in THREE], printed=2.5)
    assert outside.tests[1] == pytest.approx(stats.ttest_1samp(list(THREE.values()), 2.0).pvalue)


def test_the_interval_of_correlations_is_that_of_fishers_z():
    values = {0: 0.95, 1: 0.99, 2: 0.85, 3: 0.44}
    asked = dataclasses.replace(claim(values), correlation=True)
    verdict = asked.judge([run_of(seed) for seed in values])
    z = np.arctanh(list(values.values()))
    ends = stats.ttest_1samp(z, 0).confidence_interval()
    assert verdict.interval.shown == pytest.approx(tuple(np.tanh([z.mean(), *ends])))
    assert verdict.interval.shown[2] < 1 < estimate(list(values.values())).high
    assert verdict.p == pytest.approx(stats.ttest_1samp(z, 0).pvalue)
    perfect = dataclasses.replace(claim({0: 1.0, 1: 0.5}), correlation=True).judge([run_of(0), run_of(1)])
    assert perfect.seeds == (1,) and "seed 0: the effect is inf" in perfect.reason


def test_equal_effects_contain_the_value_that_they_have():
    verdict = claim(dict.fromkeys(range(3), 0.1)).judge([run_of(seed) for seed in range(3)], printed=0.1)
    assert (verdict.outcome, verdict.p) == ("agrees", 0.0)


def test_adjusted_p_of_any_decision_bounds_the_chance_of_a_wrong_one():
    """Claims whose effect is the paper's, zero, or at the margin: none of them differs but by chance."""
    source, wrong, draws = np.random.default_rng(0), 0, 200
    runs = [run_of(seed) for seed in range(5)]
    for _ in range(draws):
        effects = [dict(enumerate(source.normal(mean, 1.0, 5))) for mean in (6.0, 0.0, 0.0, 2.0, 6.0)]
        verdicts = [
            claim(effects[0]).judge(runs, printed=6.0),
            claim(effects[1]).judge(runs, printed=6.0),
            claim(effects[2], "more", 5.0).judge(runs),
            claim(effects[3], "same", 2.0).judge(runs),
            claim(effects[4], "no less", 1.0).judge(runs, printed=6.0),
        ]
        mistaken = (("differs",), ("agrees",), ("agrees", "differs"), ("differs", "equivalent"), ("differs",))
        wrong += any(
            one.outcome in names and one.holm < 0.2 for one, names in zip(adjusted(verdicts), mistaken, strict=True)
        )
    assert wrong / draws < 0.2 + 2 * np.sqrt(0.16 / draws)


def test_a_claim_of_no_difference_needs_a_margin():
    with pytest.raises(ValueError, match="says 'same' without a margin"):
        claim({}, "same")


def test_a_seed_without_its_runs_leaves_the_others():
    verdict = claim({0: 1.0, 1: 2.0, 2: 1.5}).judge([run_of(seed) for seed in range(4)])
    assert verdict.seeds == (0, 1, 2)
    assert verdict.outcome == "agrees"
    assert verdict.reason == "seed 3: no run of [3]"


@pytest.mark.parametrize(("methods", "seeds"), [(("fedavg",), (0, 2, 3)), ((), (0, 1, 2, 3))])
def test_a_seed_of_which_a_run_is_lost_has_no_effect_of_its_other_runs(methods, seeds):
    asked = dataclasses.replace(claim({0: 1.0, 1: 9.0, 2: 2.0, 3: 1.5}), methods=methods)
    verdict = asked.judge([run_of(seed) for seed in range(5)], lost={1: "ima diverged", 4: "ima diverged"})
    assert verdict.seeds == seeds, "a claim that takes all runs may have an effect without one of them"
    assert verdict.reason == f"{'seeds 1, 4' if methods else 'seed 4'}: ima diverged"


def test_the_interval_is_that_of_the_paired_t_test():
    first, second = np.array([3.0, 4.5, 5.0, 3.5]), np.array([2.5, 3.0, 4.6, 3.6])
    interval, reference = estimate(list(first - second)), stats.ttest_rel(first, second)
    assert interval.p_at(0.0) == pytest.approx(reference.pvalue)
    assert (interval.low, interval.high) == pytest.approx(tuple(reference.confidence_interval()))


def test_p_is_adjusted_over_the_claims_with_three_seeds():
    tested = [{0: 1.0, 1: 1.1, 2: 1.2}, {0: 1.0, 1: 3.0, 2: 5.0}, {0: -1.0, 1: 2.0, 2: 0.5}, {0: 1.0, 1: 1.01}]
    verdicts = [claim(effects).judge([run_of(seed) for seed in effects]) for effects in tested]
    p = [verdict.p for verdict in verdicts]
    assert p[0] < p[1] < p[2]
    holm = [verdict.holm for verdict in adjusted(verdicts)]
    assert holm[:3] == pytest.approx([3 * p[0], max(3 * p[0], 2 * p[1]), max(2 * p[1], p[2])])
    assert np.isnan(holm[3])
    with_printed = [claim(tested[0]).judge([run_of(seed) for seed in tested[0]], printed=1.2), *verdicts[1:]]
    assert adjusted(with_printed)[0].holm == pytest.approx(4 * p[0])  # a fourth test might have decided


@pytest.mark.parametrize(("short", "seeds", "mean"), [((), (0, 1, 2, 3), 4.0), ((0, 1, 2, 3), (0, 1, 2, 3), 4.0)])
def test_runs_that_are_measured_alike_count_together(short, seeds, mean, monkeypatch):
    verdict = _of_mixed(short, monkeypatch)
    assert (verdict.seeds, verdict.interval.value, verdict.short) == (seeds, mean, len(short))
    assert verdict.reason == ""


def test_a_mean_never_mixes_runs_that_are_measured_in_two_ways(monkeypatch):
    verdict = _of_mixed((3,), monkeypatch)
    assert (verdict.seeds, verdict.interval.value, verdict.short) == ((0, 1, 2), 2.0, 0)
    assert "left out, with the last round alone: seed 3" in verdict.reason


def _of_mixed(short, monkeypatch):
    monkeypatch.setattr(judge, "_short", lambda claim, runs: [*short])
    seeds = [(seed, "fedavg") for seed in range(4)] + [(3, "ima")]
    runs = [SimpleNamespace(experiment=run_of(seed).experiment, label=name, diverged=False) for seed, name in seeds]
    asked = claim({0: 1.0, 1: 2.0, 2: 3.0, 3: 10.0})
    asked = dataclasses.replace(asked, instead="the last round alone", methods=("fedavg",))
    return judge._of_runs(asked, runs, [SimpleNamespace(name="a", printed={})])
