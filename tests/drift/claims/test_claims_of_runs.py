"""Claims: how runs are picked for them, what they measure, and that every one can be asked of any runs."""

import copy
import inspect
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import xarray as xr
from torch.nn.utils import vector_to_parameters

from drift.analyses.counterfactual.whatif import what_if
from drift.analyses.landscapes.averages import error_averaged
from drift.analyses.landscapes.planes import global_line
from drift.claims import PAPERS, check, claims, ima, measures, select_runs
from drift.claims.measures import SUBSETS, accuracy, mean_gain, mean_of, more_models, quarters
from tests.tiny import trained


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


def test_pairs_train_their_clients_alike_and_two_bases_are_refused(runs, tmp_path):
    slow, stored = trained(tmp_path, "seed=1", "local.lr=0.03"), trained(tmp_path, "seed=1", "keep.clients=none")
    partners = []
    for chosen in ([*runs, slow], [slow, stored, *runs], [stored, slow, *runs]):
        select_runs.pair_effects(chosen, "fedeve", "fedavg", lambda run, other: partners.append(other) or 0.0)
    rate = runs[0].experiment.local.lr
    assert [partner.experiment.local.lr for partner in partners] == [rate] * 6
    tuned = trained(tmp_path, "seed=1", "method=fedeve", "local.lr=0.07")
    assert len(select_runs.pair_effects([tuned, slow], "fedeve", "fedavg", lambda run, other: 0.0)) == 1
    with pytest.raises(LookupError, match=rf"{slow.name} have the setting and seed of {tuned.name}; give"):
        select_runs.pair_effects([tuned, *runs, slow], "fedeve", "fedavg", lambda run, other: 0.0)


def test_extremes_differ_in_one_setting_alone(runs):
    found = select_runs.extreme_effects(
        runs, ["fedavg"], "clients.partition.concentration", lambda run: run.experiment.clients.partition.concentration
    )
    assert found == {1: 1.0 - 9.0}
    with pytest.raises(LookupError, match=r"differ in clients\.per_round alone"):
        select_runs.extreme_effects(runs, ["fedavg"], "clients.per_round", lambda run: 0.0)
    with pytest.raises(LookupError, match=r"differ in no\.such alone"):
        select_runs.extreme_effects(runs, ["fedavg"], "no.such", lambda run: 0.0)


def test_extremes_of_pairs_compare_each_run_with_the_base_of_its_own_setting(tmp_path):
    runs = [
        trained(tmp_path, f"method={name}", f"local.epochs={epochs}")
        for epochs in (1, 3)
        for name in ("fedavg", "fedeve")
    ]
    values = [accuracy(run) for run in runs]
    (number,) = select_runs.extreme_effects(runs, ["fedeve", "fedavg"], "local.epochs", measures.ahead).values()
    assert number == pytest.approx(values[1] - values[0] - (values[3] - values[2]))
    assert abs(number) > 1e-3
    with pytest.raises(LookupError, match=r"no runs of fedeve and fedavg that differ in local\.epochs alone"):
        select_runs.extreme_effects(runs[:3], ["fedeve", "fedavg"], "local.epochs", measures.ahead)


def test_figure_6_of_ima_is_the_gain_at_one_end_minus_the_gain_at_the_other(tmp_path):
    asked = {one.name: one for one in claims("ima")}
    ends = {"heterogeneity": "clients.partition.concentration", "participation": "clients.per_round"}
    for name, setting in ends.items():
        runs = [
            trained(tmp_path, *method, f"{setting}={value}", "rounds=3")
            for value in (2, 4)
            for method in (("method=fedavg",), ("method=ima", "method.window=2", "method.start=1"))
        ]
        values = [accuracy(run) for run in runs]
        (number,) = asked[f"ima-gain-{name}"].measure(runs).values()
        assert number == pytest.approx(values[1] - values[0] - (values[3] - values[2])), name
    assert (asked["ima-gain-epochs"].test, asked["ima-gain-epochs"].across) == ("same", True)


def test_figure_6_of_lss_varies_the_models_that_a_client_averages(tmp_path):
    (claim,) = [one for one in claims("lss") if one.name == "lss-more-models"]
    runs = [trained(tmp_path, "method=lss", f"method.candidates={count}", "rounds=1") for count in (1, 2, 3)]
    values = [accuracy(run) for run in runs]
    assert claim.measure(runs) == {5: pytest.approx(values[2] - values[0])}
    with pytest.raises(LookupError, match=r"differ in method\.candidates alone"):
        claim.measure(runs[:1])


def test_each_fixed_gamma_is_compared_with_none_on_its_own(tmp_path):
    asked = {one.name: one for one in claims("fedlaw")}
    gammas = [trained(tmp_path, "method=shrink", f"method.gamma={gamma}") for gamma in (0.95, 0.9)]
    base = trained(tmp_path)
    for run, name in zip(gammas, ("095", "09"), strict=True):
        claim = asked[f"fedlaw-fixed-gamma-{name}"]
        assert claim.measure([base, *gammas]) == {5: pytest.approx(accuracy(run) - accuracy(base))}
    assert "post hoc" in asked["fedlaw-shrinking-helps"].item


@pytest.mark.parametrize(("least", "place"), [(1.2, 0.7), (1.0, 0.5), (0.9, 0.4), (0.3, -0.2), (1.7, 1), (-0.9, -1)])
def test_the_place_of_the_minimum_grows_on_beyond_the_average_up_to_the_end_of_the_line(least, place):
    t = np.linspace(-0.5, 1.5, 41)
    line = xr.Dataset({"loss": ("t", (t - least) ** 2)}, {"t": t})
    assert ima.average_nearer(SimpleNamespace(cached=lambda analysis: line)) == pytest.approx(place)


@pytest.mark.parametrize("loss", [[np.nan] * 41, [np.inf] * 41, [0.0] * 41, [np.nan] * 20 + [1.0] * 21])
def test_a_line_without_a_lowest_place_has_no_nearer_minimum(loss):
    line = xr.Dataset({"loss": ("t", loss)}, {"t": np.linspace(-0.5, 1.5, 41)})
    assert np.isnan(ima.average_nearer(SimpleNamespace(cached=lambda analysis: line)))


def test_a_run_without_accuracy_is_said_in_a_plain_line(runs):
    (claim,) = [one for one in claims("fedeve") if one.name == "fedeve-accuracy"]
    without = [
        SimpleNamespace(
            **{name: getattr(run, name) for name in ("experiment", "label", "name")},
            metrics=lambda run=run: run.metrics().drop_vars("accuracy"),
        )
        for run in runs[:2]
    ]
    assert claim.judge(without).reason == f"run {without[1].name} has no accuracy"


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
    assert all(verdict.reason and np.isnan(verdict.interval.value) for verdict in missing)


def test_a_cohort_of_one_has_no_mean_for_theorem_1_to_bound(tmp_path):
    runs = [trained(tmp_path, f"seed={seed}", "clients.per_round=1", "keep.clients=all") for seed in (1, 2, 3)]
    asked = ("ima-heterogeneity-dominates", "ima-heterogeneity-tracks", "ima-loss-bound", "ima-rest-distance")
    found = {verdict.claim.name: verdict for verdict in check(runs)}
    assert {found[name].outcome for name in asked} == {"not tested"}
    assert all(found[name].reason == "none of the given runs is a suitable run of fedavg" for name in asked)


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
        assert own[f"ima-accuracy-{base}"].judge(runs).interval.value == pytest.approx(gain)
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
