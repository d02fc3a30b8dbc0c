"""Claims: how they are judged, how runs are picked for them, and that every one can be asked of any runs."""

import copy
import dataclasses
import inspect
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import xarray as xr
from scipy import stats
from torch.nn.utils import vector_to_parameters

from drift.analyses.counterfactual.whatif import what_if
from drift.analyses.landscapes.averages import error_averaged
from drift.analyses.landscapes.planes import global_line
from drift.claims import PAPERS, check, claims, ima, measures, select_runs
from drift.claims.claim import Claim, adjusted
from drift.claims.interval import over_seeds
from drift.claims.measures import SUBSETS, accuracy, mean_gain, mean_of, more_models, quarters
from tests.tiny import trained


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
    assert (verdict.reason != "") == (verdict.interval.number < 3)


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
        (SMALL, "more", 0.3, None, "equivalent"),
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
    assert verdict.interval.shown[2] < 1 < over_seeds(list(values.values())).high
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


def test_the_interval_is_that_of_the_paired_t_test():
    first, second = np.array([3.0, 4.5, 5.0, 3.5]), np.array([2.5, 3.0, 4.6, 3.6])
    interval, reference = over_seeds(list(first - second)), stats.ttest_rel(first, second)
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
    assert accuracy(runs[0]) == pytest.approx(100 * float(runs[0].metrics()["accuracy"][-1])), "no ten rounds"
    long = xr.Dataset({"accuracy": ("round", np.linspace(0, 1, 15))}, {"round": range(15)})
    assert accuracy(SimpleNamespace(metrics=lambda: long)) == pytest.approx(100 * np.linspace(0, 1, 15)[5:].mean())
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
    assert {"fedlaw-coherence-falls", "fedeve-accuracy"} <= testable
    missing = [verdict for verdict in verdicts if not verdict.seeds]
    assert all(verdict.reason and np.isnan(verdict.interval.mean) for verdict in missing)


def test_accuracy_of_ima_is_compared_with_the_method_that_it_averages(tmp_path):
    ima = ("method=ima", "method.window=2", "method.start=1")
    bases = ("fedavg", "fedprox")
    runs = [
        trained(tmp_path, "rounds=3", *settings)
        for base in bases
        for settings in ((f"method={base}",), (*ima, f"method.base={base}"))
    ]
    own = {claim.name: claim for claim in claims("ima")}
    gains = {
        base: accuracy(runs[2 * place + 1]) - accuracy(runs[2 * place])
        for place, base in enumerate(("fedavg", "fedprox"))
    }
    for base, gain in gains.items():
        assert own[f"ima-accuracy-{base}"].judge(runs).interval.mean == pytest.approx(gain)
    assert own["ima-accuracy-fedadam"].judge(runs).outcome == "not tested"


def test_a_mean_over_three_late_rounds_is_refused_where_two_kept_no_window(tmp_path):
    run = trained(tmp_path / "few", "rounds=20", "keep.globals=every 4, last 5", "keep.clients=none")
    whole = trained(tmp_path / "all", "rounds=20", "keep.globals=all")
    gains = whole.cached(what_if, rounds=[10, 14, 19], windows=[5])["gain"].sel(variant="ima-5")
    assert mean_gain(whole, variant="ima-5") == pytest.approx(float(gains.mean()))
    with pytest.raises(LookupError, match=r"in 1 of three rounds of its second half.*keep\.globals=all"):
        mean_gain(run, variant="ima-5")


def test_lss_is_compared_after_one_round_and_after_three_and_a_short_run_has_no_mean_of_its_first_rounds(tmp_path):
    runs = [trained(tmp_path, f"method={name}", "local.epochs=2") for name in ("fedavg", "lss")]
    values = [100 * run.metrics()["accuracy"].values for run in runs]
    asked = {one.name: one for one in claims("lss")}
    assert asked["lss-accuracy-1"].measure(runs) == {5: pytest.approx(values[1][0] - values[0][0])}
    assert asked["lss-accuracy-3"].measure(runs) == {5: pytest.approx(values[1][2] - values[0][2])}
    assert [accuracy(run) for run in runs] == pytest.approx([column[-1] for column in values])
    short = [trained(tmp_path, f"method={name}", "rounds=2") for name in ("fedavg", "lss")]
    assert asked["lss-accuracy-3"].judge(short).outcome == "not tested"


def test_measures_of_ima_are_means_over_late_rounds_disjoint_triples_and_pairs_of_globals(tmp_path):
    """Against losses of models that are put into the module one by one, in float64."""
    sizes = (
        "clients.partition=iid",
        "clients.number=8",
        "clients.per_round=7",
        "rounds=6",
        "keep.clients=all",
        "keep.globals=all",
    )
    run = trained(tmp_path, *sizes)
    samples, late = run.task.split("test"), [3, 4, 5]

    def loss(theta):
        model = copy.deepcopy(run.task.model).double()
        vector_to_parameters(theta.double(), model.parameters())
        return F.cross_entropy(model(samples.inputs.double()), samples.targets).item()

    def error(theta):
        vector_to_parameters(theta, (model := copy.deepcopy(run.task.model)).parameters())
        return (model(samples.inputs).argmax(1) != samples.targets).double().mean().item()

    below, more = [], []
    for index in late:
        clients = run.round(index).clients
        below += [min(map(loss, three)) - loss(three.mean(0)) for three in (clients[:3], clients[3:6])]
        drawn = run.cached(error_averaged, rounds=[index], subsets=SUBSETS)["error"].isel(round=0, models=0).count()
        assert int(drawn) == SUBSETS
        more.append(error(clients.mean(0)))
    assert ima.mean_below(run) == pytest.approx(np.mean(below), rel=1e-4)
    single = [
        float(run.cached(error_averaged, rounds=[index], subsets=SUBSETS)["error"].isel(round=0, models=0).mean())
        for index in late
    ]
    assert more_models(run) == pytest.approx(100 * (np.mean(single) - np.mean(more)), abs=1e-3)
    ends = [run.round(index).end for index in range(6)]
    grid = run.cached(global_line)["t"].values
    between = []
    for one, two in zip(ends[::2], ends[1::2], strict=True):
        inside = min(loss(torch.lerp(one, two, float(step))) for step in grid[(grid > 0) & (grid < 1)])
        between.append(min(loss(one), loss(two)) - inside)
    assert ima.between_globals(run) == pytest.approx(np.mean(between), rel=1e-3, abs=1e-6)


def test_a_mean_takes_the_numbers_that_are_there_and_else_the_one_in_their_place():
    def absent():
        raise LookupError("no result")

    assert mean_of([lambda: 1.0, absent, lambda: 4.0], absent) == 2.5
    assert mean_of([absent], lambda: 7.0) == 7.0, "a claim says so: the test below"
    with pytest.raises(LookupError, match="no result"):
        mean_of([absent], absent)


def test_a_claim_whose_measure_takes_one_number_for_several_says_which():
    files = [measures, ima]
    takes = {
        f"{file.__name__.rpartition('.')[2]}.{name}"
        for file in files
        for name, function in vars(file).items()
        if callable(function) and getattr(function, "__module__", "") == file.__name__
        if name != "mean_of" and "mean_of(" in inspect.getsource(function)
    }
    assert takes == {"ima.mean_below", "ima.between_globals", "measures.more_models"}
    for one in claims():
        assert bool(one.instead) == (json.loads(one.how)["measure"] in takes), one.name
