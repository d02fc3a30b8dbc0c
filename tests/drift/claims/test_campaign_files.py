"""The small files of a campaign: what they hold, how large they are, and that earlier ones are read."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tiny

from drift.analyses.counterfactual.update_causes import update_causes
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.variance import drift_variances
from drift.claims.campaign import records, series
from drift.claims.campaign.judge import by_identity


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "rounds=7", "evaluate_every=3")


def test_a_file_has_metrics_where_they_were_measured_and_every_round_of_a_short_run(run, tmp_path):
    recorded = records.read(records.write(tmp_path, run, {}))
    metrics = recorded.metrics()
    assert metrics["round"].values.tolist() == [0, 3, 6]
    for name in ("accuracy", "error", "loss"):
        np.testing.assert_allclose(metrics[name], run.metrics()[name].sel(round=[0, 3, 6]), rtol=1e-5)
    for analysis in (coherence, drift_variances):
        ours, theirs = recorded.cached(analysis), run.cached(analysis)
        assert ours["round"].values.tolist() == run.rounds()
        for name in ours:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, err_msg=str(name))


def test_rounds_of_a_long_run_become_means_of_blocks(run, tmp_path, monkeypatch):
    monkeypatch.setattr(series, "BLOCKS", 3)
    recorded = records.read(records.write(tmp_path, run, {}))
    values = run.cached(drift_variances)["gain"].values
    gains = recorded.series()["gain"]
    assert gains["round"].values.tolist() == [0, 3, 6]
    assert recorded.series().attrs["block"] == 3
    np.testing.assert_allclose(gains, [np.nanmean(values[:3]), np.nanmean(values[3:6]), values[6]], rtol=1e-5)
    assert recorded.metrics()["round"].values.tolist() == [0, 3, 6]


def test_the_file_of_1500_rounds_has_less_than_40_kilobytes():
    values = np.random.default_rng(0).normal(size=1500)
    evaluated = np.where(np.arange(1500) % 5 == 0, values, np.nan)
    block = series.block_size(1500)
    assert block == 5
    content = {
        "measured": series.measured({"accuracy": evaluated.round(4), "loss": evaluated}, range(1500)),
        "blocks": {name: series.means(values, block) for names in series.ANALYSES.values() for name in names},
    }
    assert len(records._text(content)) < 40_000


@pytest.mark.parametrize("indices", [(), (4,), (0, 1), (0, 5, 10, 14), (0, 1, 2, 9, 11, 13, 40)])
def test_rounds_as_ranges(indices):
    assert series.indices(series.ranges(indices)) == list(indices)


def test_equal_steps_are_one_range():
    assert series.ranges((0, 2, 4, 6, 10, 11)) == [[0, 6, 2], [10, 11, 1]]


DAMAGES = {
    "text among numbers": lambda content: content["measured"][0]["accuracy"].__setitem__(0, "x"),
    "a shorter series": lambda content: content["measured"][0]["accuracy"].pop(),
    "a number for the metrics": lambda content: content.update(measured=1),
    "a series without numbers": lambda content: content["blocks"].update(gain=None),
    "text in a result": lambda content: next(_of_results(content))["values"].__setitem__(0, "x"),
    "a shorter result": lambda content: next(_of_results(content))["values"].pop(),
    "a result without dimensions": lambda content: next(_of_results(content)).pop("dims"),
    "a list for a result": lambda content: content["results"].update({key: [] for key in content["results"]}),
}


def _of_results(content):
    stored = (result["variables"][name] for result in content["results"].values() for name in result["variables"])
    return (values for values in stored if len(values["dims"]) == 1 and "round" in values["dims"])


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_in_one_line_that_names_it(run, tmp_path, damage):
    result = run.cached(update_causes, rounds=[1, 2])
    observed = records.Observed(run)
    observed.cached(update_causes, rounds=[1, 2])
    path = records.write(tmp_path, run, observed.results)
    stored = records.read(path).cached(update_causes, rounds=[1, 2])
    np.testing.assert_allclose(stored["mean"], result["mean"], rtol=1e-4)
    content = json.loads(path.read_text())
    DAMAGES[damage](content)
    path.write_text(json.dumps(content))
    recorded = records.read(path)
    with pytest.raises(OSError, match=r"\.json is damaged \(.*\); restore or delete it"):
        _ = recorded.metrics(), recorded.series(), recorded.cached(update_causes, rounds=[1, 2])


@pytest.mark.parametrize("part", sorted(records.PARTS))
def test_a_file_that_lacks_a_part_is_refused_in_one_line_that_names_it(run, tmp_path, part):
    path = records.write(tmp_path, run, {})
    content = json.loads(path.read_text())
    del content[part]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"\.json is damaged \(it lacks {part}\); restore or delete it"):
        records.read(path)


def test_a_file_whose_settings_were_edited_is_refused(run, tmp_path):
    path = records.write(tmp_path, run, {})
    assert len(by_identity(tmp_path)) == 1
    content = json.loads(path.read_text())
    content["experiment"]["local"]["lr"] *= 2
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"the settings of .* are not those of its hash; restore or delete it"):
        by_identity(tmp_path)


def _edited(path, other, change):
    content = json.loads(path.read_text())
    change(content)
    other.write_text(json.dumps(content))


def test_two_files_of_one_run_are_one_if_they_are_copies_and_refused_if_their_numbers_differ(run, tmp_path):
    path, other = records.write(tmp_path, run, {}), tmp_path / "zzz.json"
    _edited(path, other, lambda content: content.update(seconds=[1.0]))
    assert len(by_identity(tmp_path)) == 1
    _edited(path, other, lambda content: content["measured"][0]["accuracy"].__setitem__(0, 0.01))
    with pytest.raises(ValueError, match=rf"{path.name} and .*zzz\.json are files of one run with different measured"):
        by_identity(tmp_path)


@pytest.mark.parametrize(
    ("part", "value"), [("label", "fedeve"), ("name", "fedeve-s0"), ("rounds", 6), ("rounds", "x")]
)
def test_a_file_whose_name_label_or_rounds_are_not_those_of_its_settings_is_refused(run, tmp_path, part, value):
    path = records.write(tmp_path, run, {})
    _edited(path, path, lambda content: content.update({part: value}))
    with pytest.raises(
        ValueError, match=rf"\.json has the {part} {value!r}, its settings say .*; restore or delete it"
    ):
        records.read(path)


def test_a_diverged_file_has_fewer_rounds_than_its_settings(run, tmp_path):
    path = records.write(tmp_path, run, {}, diverged=True)
    _edited(path, path, lambda content: content.update(rounds=5))
    assert records.read(path).committed == 5
    _edited(path, path, lambda content: content.update(rounds=8))
    with pytest.raises(ValueError, match="has the rounds 8, its settings say 7"):
        records.read(path)


@pytest.mark.parametrize("value", [-0.1, 1.2, 93.0])
def test_an_accuracy_that_is_no_fraction_is_refused_in_one_line(run, tmp_path, value):
    path = records.write(tmp_path, run, {})
    _edited(path, path, lambda content: content["measured"][0]["accuracy"].__setitem__(0, value))
    with pytest.raises(OSError, match=rf"is damaged \(ValueError: an accuracy of {value:g} is not within 0 to 1\)"):
        records.read(path).metrics()
