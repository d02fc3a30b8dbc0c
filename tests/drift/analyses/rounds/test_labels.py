"""Labels of cohorts, and how far they are from one client and one round to the next."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from drift.analyses.rounds.labels import js_divergence, label_scatter
from drift.config.load import read, validated
from drift.runs.run import Run
from drift.simulation.simulate import simulate

TINY = {
    "rounds": 4,
    "seed": 3,
    "task": {"dataset": "digits", "model": "linear", "train_samples": 200, "test_samples": 60},
    "clients": {"number": 6, "per_round": 3, "partition": "drift", "setting": "client", "concentration": 0.05},
    "local": {"lr": 0.05, "epochs": 1, "batch": 16},
}


def trained(tmp_path, *changes):
    return simulate(read(validated(TINY), *changes), runs=tmp_path)


def test_divergence_equals_an_independent_one_and_its_limits():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 9, (2, 7)), rng.integers(1, 9, 7)
    expected = [jensenshannon(row, other) ** 2 for row in one]
    np.testing.assert_allclose(js_divergence(one, other), expected, atol=1e-15)
    assert js_divergence(np.array([3, 0]), np.array([0, 5])) == pytest.approx(np.log(2))
    assert js_divergence(np.array([3, 6]), np.array([1, 2])) == pytest.approx(0)
    assert np.isnan(js_divergence(np.zeros(3), np.ones(3)))


def test_samples_alone_give_the_divergence_that_is_stated():
    rng = np.random.default_rng(0)
    n, classes = 400, 10
    draws = rng.multinomial(n, np.full(classes, 1 / classes), 3000)
    assert js_divergence(draws, np.ones(classes)).mean() == pytest.approx((classes - 1) / (8 * n), rel=0.05)


@pytest.mark.parametrize("setting", ["client", "both"])
def test_counts_are_those_of_what_the_cohort_trained_on(setting, tmp_path):
    run = trained(tmp_path, f"clients.setting={setting}")
    found = label_scatter(run, rounds=3)
    assert found["round"].values.tolist() == [0, 1, 2]
    for index in range(3):
        record, held = run.round(index), found.sel(round=index)["count"]
        cohort = held.sel(client=record.ids.numpy())
        assert cohort.sum("class").values.tolist() == record.sizes.tolist()
        assert np.isnan(held.drop_sel(client=record.ids.numpy())).all()
        shares = cohort.values[cohort.values.sum(1) > 0]
        union = shares.sum(0)
        within = np.mean([jensenshannon(row, union) ** 2 for row in shares])
        between = jensenshannon(union, np.bincount(run.labels, minlength=10)) ** 2
        assert float(found.within_divergence.sel(round=index)) == pytest.approx(within)
        assert float(found.between_divergence.sel(round=index)) == pytest.approx(between)
    np.testing.assert_allclose(found.share, np.bincount(run.labels, minlength=10) / 200)


def test_the_settings_differ_as_they_are_named(tmp_path):
    found = {
        name: label_scatter(trained(tmp_path, f"clients.setting={name}")).mean("round")
        for name in ("iid", "period", "client", "both")
    }
    within = {name: float(ds.within_divergence) for name, ds in found.items()}
    between = {name: float(ds.between_divergence) for name, ds in found.items()}
    assert min(within["client"], within["both"]) > 3 * max(within["iid"], within["period"])
    assert min(between["period"], between["both"]) > 3 * max(between["iid"], between["client"])


def test_a_round_in_which_all_diverged_is_missing(tmp_path):
    run = trained(tmp_path)
    empty = SimpleNamespace(ids=run.round(0).ids[:0])

    class Diverged(Run):
        def round(self, index):
            return empty if index == 1 else super().round(index)

    found = label_scatter(Diverged(run.folder))
    assert np.isnan(found.within_divergence).values.tolist() == [False, True, False, False]
    assert np.isnan(found["count"].sel(round=1)).all()


def test_what_cannot_be_is_refused(tmp_path):
    run = trained(tmp_path)
    with pytest.raises(ValueError, match="rounds is 0"):
        label_scatter(run, rounds=0)
    imported = Run(run.folder)
    vars(imported)["about"] = {**run.about, "unknown": ["partition (recorded as iid)"]}
    with pytest.raises(LookupError, match="give its partition when importing"):
        label_scatter(imported)
