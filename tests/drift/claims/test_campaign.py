"""A campaign: its plan, runs that share their first rounds, and files that outlive the runs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
from campaigns import places, small_plan

from drift.analyses.rounds.norms_and_weights import locality, regularisation_ratio
from drift.claims import claims, questions
from drift.claims.campaign import records
from drift.claims.campaign.execute import execute, recorded
from drift.claims.campaign.judge import by_identity, diverged_of, judge, runs_of
from drift.claims.campaign.plan import Plan, PlanItem, identity, load
from drift.claims.campaign.recorded_run import RecordedRun
from drift.config.load import plans, read
from drift.simulation.shared_rounds import begin_from
from drift.simulation.simulate import simulate
from drift.simulation.verify import verify
from drift.store import files as store


def test_the_shipped_plan_is_valid_and_begins_with_the_two_shard_table():
    plan = load(plans()["reproduction"])
    first = next(units for units in plan.sets() if units[0].item.paper != "cross")
    assert {unit.item.name for unit in first} == {"ima-table1-fmnist-shards2"}
    known = {claim.name for claim in (*claims(), *questions())}
    for item in plan.items:
        assert set(item.claims) <= known, item.name
    for units in plan.sets():
        for unit in units:
            if not unit.item.prepare:
                assert unit.experiment.seed == unit.seed


def test_sets_are_ordered_by_value_per_hour_and_later_seeds_count_less(tmp_path):
    cheap = small_plan(tmp_path).items[0]
    dear = cheap.model_copy(
        update={"name": "dear", "rows": tuple(row.model_copy(update={"minutes": 5}) for row in cheap.rows)}
    )
    many = cheap.model_copy(
        update={"name": "many", "rows": (cheap.rows[0].model_copy(update={"seeds": 5, "minutes": 2.0}),)}
    )
    order = [(units[0].item.name, units[0].seed) for units in Plan(processor="any", items=(dear, cheap, many)).sets()]
    assert order.index(("tiny-ima", 0)) < order.index(("dear", 0))
    assert order.index(("many", 2)) < order.index(("many", 3)) < order.index(("many", 4))
    assert order.index(("many", 3)) > order.index(("tiny-ima", 1))


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["method.window=1"],
        ["method.first=window"],
        ["method.feedback=false"],
        ["method.base=fedadam"],
        ["method.base=fedavgm", "method.placement=post"],
        ["method.base=scaffold", "local.momentum=0.0"],
    ],
)
def test_a_run_begun_from_its_base_has_the_bits_of_one_trained_whole(tmp_path, options):
    ima = tiny.experiment("rounds=7", "method=ima", "method.window=2", "method.start=4", *options)
    base = ima.model_copy(update={"method": ima.method.base})
    shared = ima.method.rounds_shared(base.method, 7)
    assert 2 <= shared <= 4
    run = simulate(base, runs=tmp_path / "begun", until=shared)
    assert run.committed == shared
    assert begin_from(run, ima, runs=tmp_path / "begun") == shared
    begun, whole = simulate(ima, runs=tmp_path / "begun"), simulate(ima, runs=tmp_path / "whole")
    assert not verify(begun.folder)
    tiny.assert_same_bits(begun, whole)
    first = begun.round(0)
    client = int(first.ids[0])
    assert torch.equal(begun.method.local(begun.client(0, client)).theta, first.clients[0])


def test_runs_from_a_checkpoint_are_known_where_it_is_not_and_never_mixed_with_those_from_another(tmp_path):
    start = simulate(tiny.experiment("rounds=1", "seed=9"), runs=tmp_path / "starts").folder
    plan = small_plan(tmp_path, set=["rounds=6", f"init={start}"], prepare="fedscape pretrain", claims=[])
    files = places(tmp_path).files
    (units, *_) = plan.sets()
    assert {result.state for result in execute([units], places(tmp_path))} == {"recorded"}
    texts = {path: path.read_text() for path in files.glob("*.json")}
    assert len(texts) == 2 and not any(str(tmp_path) in text for text in texts.values())
    shutil.rmtree(start)
    assert recorded(plan.sets(), files) == {unit.identity: set() for unit in plan.sets()[0]}
    assert len(runs_of(plan.items, plan, by_identity(files))) == 2
    with pytest.raises(LookupError, match="make it by: fedscape pretrain"):
        _ = plan.sets()[1][0].experiment
    path, text = next(iter(texts.items()))
    digest = json.loads(text)["experiment"]["init"]["digest"]
    path.write_text(text.replace(digest, "0" * 16))
    edited = RecordedRun(json.loads(path.read_text()), path)
    path.write_text(path.read_text().replace(edited.content["hash"], edited.experiment.hash))
    with pytest.raises(ValueError, match="start from different checkpoints"):
        runs_of(plan.items, plan, by_identity(files))


def test_rounds_are_shared_by_equal_settings_only(tmp_path):
    ima = tiny.experiment("rounds=7", "method=ima", "method.window=2", "method.start=4")
    other = simulate(tiny.experiment("rounds=7", "seed=6"), runs=tmp_path, until=2)
    with pytest.raises(ValueError, match="differ in more than their method"):
        begin_from(other, ima, runs=tmp_path)
    past = simulate(tiny.experiment("rounds=7"), runs=tmp_path)
    with pytest.raises(ValueError, match=r"has 7 rounds and .* shares 3"):
        begin_from(past, ima, runs=tmp_path)
    assert ima.method.rounds_shared(tiny.experiment("method=fedprox").method, 7) == 0


def test_a_campaign_trains_records_and_never_trains_again(campaign):
    plan, where = campaign
    assert len(recorded(plan.sets(), where.files)) == 4
    shutil.rmtree(where.runs)
    assert [one.state for one in execute(plan.sets(), where)] == ["recorded"] * 4
    assert not where.runs.exists()


def test_a_used_up_budget_stops_between_rounds_and_the_next_call_goes_on(tmp_path):
    plan, where = small_plan(tmp_path), places(tmp_path)
    states = [one.state for one in execute(plan.sets(), where, hours=1e-9)]
    assert "recorded" not in states
    assert all(one.state == "recorded" for one in execute(plan.sets(), where))


def test_a_line_says_that_the_rounds_of_a_finished_run_are_measured(tmp_path):
    plan, where = small_plan(tmp_path), places(tmp_path)
    told = []
    list(execute(plan.sets(), where, report=told.append))
    measured = [line for line in told if line.endswith("measuring its rounds for claims, beyond any budget")]
    assert len(measured) == 4 and told[1] == measured[0]
    list(execute(plan.sets(), where, report=told.append))
    assert sum("measuring" in line for line in told) == 4, "nothing is left to measure"


def test_a_file_stands_for_its_run_in_claims(campaign):
    plan, where = campaign
    files = {run.name: run for run in records.read_all(where.files)}
    runs = [simulate(unit.experiment, runs=where.runs) for units in plan.sets() for unit in units]
    for claim in claims("ima"):
        if claim.name in plan.items[0].claims:
            ours, theirs = claim.judge(list(files.values())), claim.judge(runs)
            assert ours.seeds == theirs.seeds == (0, 1), claim.name
            np.testing.assert_allclose(ours.interval.value, theirs.interval.value, rtol=1e-4)
    run = runs[0]
    np.testing.assert_allclose(files[run.name].metrics()["loss"], run.metrics()["loss"], rtol=1e-5)
    np.testing.assert_allclose(
        files[run.name].cached(locality)["locality"], run.cached(locality)["locality"], rtol=1e-5
    )
    with pytest.raises(LookupError, match="holds no regularisation_ratio"):
        files[runs[1].name].cached(regularisation_ratio)


def test_files_are_judged_by_the_items_that_bear_on_a_claim(campaign, tmp_path):
    plan, where = campaign
    other = small_plan(tmp_path, name="other", set=["rounds=5"]).items[0]
    list(execute(Plan(processor="any", items=(other,)).sets(), where))
    verdicts = {verdict.claim.name: verdict for verdict in judge(plan, where.files, "ima")}
    assert verdicts["ima-accuracy-fedavg"].setting == "tiny-ima"
    assert verdicts["ima-accuracy-fedavg"].seeds == (0, 1)
    assert verdicts["ima-accuracy-fedavg"].outcome == "too few"
    assert verdicts["ima-more-models"].reason == "the plan has no runs for it"
    both = plan.model_copy(update={"items": (*plan.items, other)})
    settings = [
        verdict.setting for verdict in judge(both, where.files, "ima") if verdict.claim.name == "ima-accuracy-fedavg"
    ]
    assert settings == ["tiny-ima", "other"]
    for path in where.files.iterdir():
        path.unlink()
    waiting = next(
        verdict for verdict in judge(plan, where.files, "ima") if verdict.claim.name == "ima-accuracy-fedavg"
    )
    assert waiting.outcome == "not tested"
    assert waiting.reason == "runs that are not trained yet (0.1 core-hours): tiny-ima"


def test_results_that_claims_across_settings_compare_are_stored_with_each_run(tmp_path):
    concentrations = [[f"clients.partition.concentration={value}"] for value in (0.5, 5.0)]
    shared = small_plan(tmp_path, claims=["ima-window-heterogeneity"], rows=[{"set": [], "seeds": 1, "minutes": 1}])
    items = [
        shared.items[0].model_copy(update={"name": f"at-{place}", "set": ("rounds=12", "keep.globals=all", *own)})
        for place, own in enumerate(concentrations)
    ]
    plan, where = Plan(processor="any", items=tuple(items)), places(tmp_path)
    list(execute(plan.sets(), where))
    shutil.rmtree(where.runs)
    verdict = next(
        verdict for verdict in judge(plan, where.files, "ima") if verdict.claim.name == "ima-window-heterogeneity"
    )
    assert verdict.seeds == (0,)
    assert verdict.setting == "at-0, at-1"


def test_a_run_stopped_before_its_results_has_no_file_and_gets_both_later(tmp_path, monkeypatch):
    sets = small_plan(tmp_path).sets()[:1]

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(records, "write", stopped)
        with pytest.raises(KeyboardInterrupt):
            list(execute(sets, places(tmp_path)))
    assert not list(tmp_path.glob("files/*.json"))
    list(execute(sets, places(tmp_path)))
    assert len(list(tmp_path.glob("files/*.json"))) == 2


def test_a_failed_run_leaves_the_others(tmp_path, monkeypatch):
    def failing(experiment, **options):
        if experiment.seed == 0:
            raise RuntimeError("another process trains this run")
        return simulate(experiment, **options)

    monkeypatch.setattr("drift.claims.campaign.execute.simulate", failing)
    ended = list(execute(small_plan(tmp_path).sets(), places(tmp_path)))
    assert [one.state for one in ended] == ["failed", "failed", "recorded", "recorded"]
    assert "another process" in ended[0].reason


def test_a_diverged_run_is_recorded_as_such_and_not_trained_again(tmp_path):
    rows = [
        {"set": ["method=fedavg"], "seeds": 1, "minutes": 1},
        {"set": ["method=fedavg", "method.server_lr=1e30"], "seeds": 1, "minutes": 1},
    ]
    plan, where = small_plan(tmp_path, rows=rows), places(tmp_path)
    ended = list(execute(plan.sets(), where))
    assert [one.state for one in ended] == ["recorded", "diverged"]
    assert "no finite model" in ended[1].reason
    runs = by_identity(where.files)
    assert {identity(one.unit.experiment) for one in ended} == set(runs) == set(recorded(plan.sets(), where.files))
    assert set().union(*recorded(plan.sets(), where.files).values()) == set()
    finite, diverged = (runs[identity(one.unit.experiment)] for one in ended)
    assert diverged.diverged and not finite.diverged
    assert len(diverged.rounds()) < len(finite.rounds()) == 6
    assert np.isfinite(diverged.metrics()["loss"].values[0])
    assert str(tmp_path) not in diverged.path.read_text().replace(str(tiny.written(tmp_path)), "")
    assert runs_of(plan.items, plan, runs) == [finite]
    assert diverged_of(plan.items, plan, runs) == [diverged]
    shutil.rmtree(where.runs)
    assert [one.state for one in execute(plan.sets(), where)] == ["recorded", "recorded"]
    assert not list(where.runs.glob("*")), "a recorded run was trained again"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("processor = 3", "processor"),
        ("processor = 'x'\nitems = []\nmore = 1", "more"),
        ("processor = ", "no TOML"),
    ],
)
def test_a_wrong_plan_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_file_states_the_plan_that_its_run_was_trained_for_and_keeps_it(campaign, monkeypatch):
    plan, where = campaign
    (item,) = plan.items
    assert {run.plan for run in records.read_all(where.files)} == {item.digest}
    for changes in (
        {"claims": ("ima-accuracy-fedavg",)},
        {"printed": {"ima-accuracy-fedavg": 1.0}},
        {"set": ("rounds=7",)},
        {"rows": item.rows[:1]},
        {"original": ("ima-fmnist-dir01",)},
    ):
        other = PlanItem.model_validate({**item.model_dump(), **changes})
        assert other.digest != item.digest, changes
    same = PlanItem.model_validate({**item.model_dump(), "value": 9.0, "reason": "another word"})
    assert same.digest == item.digest
    measured = [replace(claim, how=claim.how.replace("ahead", "accuracy")) for claim in claims()]
    monkeypatch.setattr("drift.claims.claims", lambda: measured)
    assert PlanItem.model_validate(item.model_dump()).digest != item.digest
    run = simulate(plan.sets()[0][0].experiment, runs=where.runs)
    records.write(where.files, run, {}, plan="another")
    assert records.read(where.files / f"{run.name}.json").plan == item.digest


def test_an_effect_is_printed_for_a_claim_of_the_item(tmp_path):
    with pytest.raises(ValueError, match=r"tiny-ima has printed effects of ima-mean-below, which are not claims of it"):
        small_plan(tmp_path, printed={"ima-mean-below": 1.0})
    small_plan(tmp_path, printed={"ima-accuracy-fedavg": 1.0})


def test_a_changed_preset_needs_a_reason(tmp_path):
    with pytest.raises(ValueError, match="give a reason"):
        small_plan(tmp_path, reason="")


@pytest.mark.parametrize("text", ["[]", "{}", "x", json.dumps({"format": 99})])
def test_a_foreign_file_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=r"a\.json"):
        list(records.read_all(tmp_path))


def test_stopping_early_by_until_and_going_on_gives_the_same_bits(tmp_path):
    spec = tiny.experiment("rounds=5")
    for until in (2, 4, None):
        run = simulate(spec, runs=tmp_path / "parts", until=until)
    whole = simulate(spec, runs=tmp_path / "whole")
    assert store.digest(run.state()[0]) == store.digest(whole.state()[0])


def test_a_setting_of_a_later_version_leaves_what_a_plan_fixed():
    plain = read("digits-shards2")
    assert '"late"' not in identity(plain) and '"keep"' not in identity(plain)
    assert len({identity(read("digits-shards2", *text)) for text in ((), ("clients.late=2",), ("local.lr=0.2",))}) == 3
    assert identity(read("digits-shards2", "keep.clients=all")) == identity(plain)
