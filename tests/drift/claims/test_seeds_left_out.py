"""Runs, seeds and items without a number are named in the verdicts."""

import json

import pytest

from drift.claims.campaign.judge import by_identity, judge
from drift.claims.campaign.plan import PlanItem


def _changed(where, name, **changes):
    (path,) = where.files.glob(name)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_seed_whose_run_diverged_is_left_out_of_the_row_with_the_reason(campaign):
    plan, where = campaign
    _changed(where, "ima-*-s1-*.json", diverged=True)
    verdicts = {verdict.claim.name: verdict for verdict in judge(plan, where.files) if verdict.setting}
    row = verdicts["ima-accuracy-fedavg"]
    assert (row.seeds, row.reason) == ((0,), "seed 1: ima diverged after round 5")
    assert verdicts["fedlaw-coherence-falls"].seeds == (0, 1), "it takes runs of FedAvg alone"
    _changed(where, "ima-*-s0-*.json", diverged=True)
    (row,) = [verdict for verdict in judge(plan, where.files) if verdict.claim.name == "ima-accuracy-fedavg"]
    assert (row.outcome, row.reason) == ("not tested", "tiny-ima: ima diverged after round 5")


@pytest.mark.parametrize("lost", ["null", "absent"])
def test_a_seed_whose_last_accuracy_is_missing_is_left_out_of_the_row_with_the_reason(campaign, lost):
    plan, where = campaign
    (path,) = where.files.glob("fedavg-*-s1-*.json")
    (group,) = json.loads(path.read_text())["measured"]
    assert group["round"] == [[0, 5, 1]]
    cut = {name: [*values[:-1], None] for name, values in group.items() if name != "round"}
    short = {name: values[:-1] for name, values in group.items() if name != "round"}
    changed = {"round": [[0, 5, 1]], **cut} if lost == "null" else {"round": [[0, 4, 1]], **short}
    _changed(where, path.name, measured=[changed])
    verdicts = {verdict.claim.name: verdict for verdict in judge(plan, where.files) if verdict.setting}
    row = verdicts["ima-accuracy-fedavg"]
    assert (row.seeds, row.reason) == ((0,), "seed 1: fedavg has no accuracy in round 5")
    assert verdicts["fedlaw-coherence-falls"].seeds == (0, 1), "it reads no accuracy"
    assert by_identity(where.files).keys() == {unit.identity for units in plan.sets() for unit in units}


def test_items_without_a_number_are_named_where_another_item_has_one(campaign):
    plan, where = campaign
    (item,) = plan.items
    later, unasked, silent = (
        PlanItem.model_validate({**item.model_dump(), **changes})
        for changes in (
            {"name": "later", "set": ("rounds=7",)},
            {"name": "unasked", "claims": ()},
            {"name": "silent", "claims": (), "set": ("rounds=7",)},
        )
    )
    for other, reason in (
        (later, "runs that are not trained yet (0.1 core-hours): later"),
        (unasked, "not planned: unasked"),
        (silent, ""),
    ):
        every = judge(plan.model_copy(update={"items": (item, other)}), where.files, "ima")
        asked = [one for one in every if one.claim.name == "ima-accuracy-fedavg"]
        assert [one.setting for one in asked] == ["tiny-ima"] + [""] * bool(reason)
        assert [one.reason for one in asked[1:]] == [reason] * bool(reason)
