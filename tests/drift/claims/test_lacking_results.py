"""What the file of a run lacks: results that its claims read, or values in them; it is measured again, or said."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from campaigns import places, small_plan

from drift.analyses.rounds.coherence import coherence
from drift.claims.campaign import records
from drift.claims.campaign.execute import execute, recorded
from drift.claims.campaign.judge import judge


def _without(stored, name):
    """The results of a file, the values of a variable missing."""
    changed = json.loads(json.dumps(stored))
    for result in changed.values():
        if name in result["variables"]:
            values = result["variables"][name]["values"]
            result["variables"][name]["values"] = np.full(np.shape(values), None).tolist()
    assert changed != stored
    return changed


@pytest.mark.parametrize("folder_lost", [False, True])
def test_a_file_without_the_results_of_its_claims_is_not_recorded_and_gets_them(tmp_path, folder_lost):
    claimed = {"claims": ["ima-between-globals"], "rows": [{"set": ["method=fedavg"], "seeds": 1, "minutes": 1}]}
    plan, where = small_plan(tmp_path, **claimed), places(tmp_path)
    list(execute(plan.sets(), where))
    (path,) = where.files.glob("*.json")
    whole = json.loads(path.read_text())
    assert whole["results"]
    path.write_text(json.dumps({**whole, "results": {}}))
    if folder_lost:
        shutil.rmtree(where.runs)
    assert [*recorded(plan.sets(), where.files).values()] == [{"ima-between-globals"}]
    assert [one.state for one in execute(plan.sets(), where)] == ["recorded"]
    assert json.loads(path.read_text())["results"] == whole["results"]
    assert [*recorded(plan.sets(), where.files).values()] == [set()]


def test_a_file_whose_values_are_missing_is_not_recorded_and_is_measured_again(tmp_path):
    claimed = {"claims": ["ima-between-globals"], "rows": [{"set": ["method=fedavg"], "seeds": 1, "minutes": 6}]}
    plan, where = small_plan(tmp_path, **claimed), places(tmp_path)
    list(execute(plan.sets(), where))
    (path,) = where.files.glob("*.json")
    whole = json.loads(path.read_text())
    (variable,) = {name for one in whole["results"].values() for name in one["variables"]} & {"loss"}
    path.write_text(json.dumps({**whole, "results": _without(whole["results"], variable)}))
    identity = plan.sets()[0][0].identity
    assert recorded(plan.sets(), where.files) == {identity: {"ima-between-globals"}}
    assert [one.state for one in execute(plan.sets(), where)] == ["recorded"]
    assert json.loads(path.read_text())["results"] == whole["results"]
    assert recorded(plan.sets(), where.files) == {identity: set()}


def test_a_value_that_stays_missing_makes_its_set_incomplete(tmp_path, monkeypatch):
    claimed = {"claims": ["ima-between-globals"], "rows": [{"set": ["method=fedavg"], "seeds": 1, "minutes": 1}]}
    plan, where = small_plan(tmp_path, **claimed), places(tmp_path)
    kept = records._stored
    monkeypatch.setattr(records, "_stored", lambda result: kept(result.where(False)))
    for _ in range(2):
        done, incomplete = execute(plan.sets(), where)
        assert (done.state, incomplete.state) == ("recorded", "incomplete")
        assert incomplete.reason.startswith("ima-between-globals has no number: values that it reads of fedavg-")


def test_a_claim_about_methods_that_the_plan_does_not_train_with_a_seed_is_not_missing(tmp_path):
    rows = [{"set": [f"method={name}"], "seeds": count, "minutes": 6} for name, count in (("fedavg", 2), ("ima", 1))]
    claimed = {"claims": ["cross-ima-accuracy"], "set": ["rounds=6"], "rows": rows}
    plan, where = small_plan(tmp_path, **claimed), places(tmp_path)
    assert [one.state for one in execute(plan.sets(), where)] == ["recorded"] * 3


def test_a_run_without_a_critical_point_lacks_nothing(tmp_path):
    claimed = {"claims": ["cross-start-critical"], "set": ["rounds=6", "keep.clients=all"]}
    plan, where = small_plan(tmp_path, **claimed), places(tmp_path)
    list(execute(plan.sets(), where))
    assert all(np.isnan(run.cached(coherence).critical_point) for run in records.read_all(where.files))
    assert set().union(*recorded(plan.sets(), where.files).values()) == set()


@pytest.mark.parametrize("order", [("fedavg", "swa", "lss"), ("lss", "swa", "fedavg")])
def test_a_pair_whose_files_both_lack_a_result_waits_and_is_measured_again_where_folders_are_lost(tmp_path, order):
    rows = [{"set": [f"method={name}"], "seeds": 1, "minutes": 6} for name in order]
    claimed = {"paper": "lss", "claims": ["lss-robust"], "set": ["rounds=2"], "rows": rows}
    plan, where = small_plan(tmp_path, **claimed), places(tmp_path)
    list(execute(plan.sets(), where))
    files = {path: path.read_text() for path in where.files.iterdir() if not path.name.startswith("swa")}
    assert len(files) == 2
    for path, text in files.items():
        path.write_text(json.dumps({**json.loads(text), "results": {}}))
    shutil.rmtree(where.runs)
    (waiting,) = [verdict for verdict in judge(plan, where.files, "lss") if verdict.claim.name == "lss-robust"]
    assert waiting.outcome == "not tested"
    assert waiting.reason == "runs without this number, which fedscape reproduce measures again: tiny-ima"
    list(execute(plan.sets(), where))
    assert sorted(path.name.partition("-")[0] for path in where.runs.iterdir()) == ["fedavg", "lss"]
    for path, text in files.items():
        assert json.loads(path.read_text())["results"] == json.loads(text)["results"]


def test_a_set_whose_models_give_a_claim_no_number_is_incomplete(tmp_path):
    claimed = {"claims": ["ima-mean-below"], "rows": [{"set": ["method=fedavg"], "seeds": 1, "minutes": 1}]}
    plan, where = small_plan(tmp_path, set=["rounds=6", "keep.clients=none"], **claimed), places(tmp_path)
    ended = list(execute(plan.sets(), where))
    assert [one.state for one in ended] == ["recorded", "incomplete"]
    assert "ima-mean-below has no number" in ended[1].reason and "--set keep.clients=all" in ended[1].reason
