"""Rounds played again with one thing changed."""

from functools import partial

import numpy as np
import pytest
import torch
from tiny import trained

from drift.analyses.counterfactual.changes import changed, changes
from drift.analyses.counterfactual.followed_changes import followed
from drift.analyses.counterfactual.interventions import interventions, interventions_effort, play_again, remembers


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(runs):
    return trained(runs, "rounds=5", "local.epochs=9")


def test_unchanged_rounds_repeat_the_record_to_the_bit(run):
    found = play_again(run, "unchanged", 1, 3)
    assert sorted(found) == [1, 2, 3]
    assert all(torch.equal(found[index], run.round(index).end) for index in found)


def test_gain_is_the_recorded_loss_minus_that_of_the_changed_rounds(run):
    ds = interventions(run, length=2, windows=2)
    assert ds["round"].values.tolist() == [1, 4] and ds["first"].values.tolist() == [0, 3]
    other = play_again(run, "everyone", 3, 2)[4]
    samples = run.task.samples["test"]
    loss = torch.nn.functional.cross_entropy(run.task.outputs(other, "test"), samples.targets)
    expected = float(run.round(4).metrics["loss"]) - float(loss)
    assert float(ds.gain.sel(change="everyone", round=4)) == pytest.approx(expected, abs=1e-6)


def test_every_change_changes_one_thing(run):
    spec, data = run.experiment, run.dataset
    assert changed(run, "everyone")[0].clients.per_round == 4
    assert changed(run, "local.epochs-smaller")[0].local == spec.local.model_copy(update={"epochs": 2})
    assert changed(run, "local.lr-larger")[0].local.lr == spec.local.lr * 4
    dealt = changed(run, "even")[1].parts
    assert [len(part) for part in dealt] == [len(part) for part in data.parts]
    assert sorted(np.concatenate(dealt)) == sorted(np.concatenate(data.parts))
    left = changed(run, "without-1")[1].parts
    assert len(left[1]) == 0 and all(left[k] is data.parts[k] for k in (0, 2, 3))


BOTH = ("local.lr", "local.epochs", "local.momentum", "method.server_lr")


def test_changes_go_in_both_directions_where_the_record_leaves_room(run, runs):
    names = {change.name for change in changes(run, without=[1])}
    assert names >= {f"{key}-{way}" for key in BOTH for way in ("smaller", "larger")}
    assert names >= {"everyone", "without-1", "local.lr_decay-smaller", "local.weight_decay-larger"}
    assert not names & {"plain", "local.lr_decay-larger", "local.weight_decay-smaller"}
    full = {change.name for change in changes(trained(runs, "clients.per_round=4", "clients.partition=iid"))}
    assert not full & {"everyone", "local.epochs-smaller", "even"}


def test_a_broken_run_is_not_stirred_further(run):
    names = {change.name for change in changes(run, broken=True)}
    assert {"local.lr-smaller", "local.lr-smallest"} <= names
    assert "local.lr-smallest" not in {change.name for change in changes(run)}
    assert not names & {"local.lr-larger", "local.epochs-larger", "local.momentum-larger"}


def test_a_change_without_an_effect_is_left_out(runs):
    late = ["method.start=1", "method.window=2", "method.late=const"]
    averaged = trained(runs, "method=ima", "rounds=4", *late)
    tried = {change.name for change in changes(averaged)}
    left = set(interventions(averaged, length=2, windows=1).change.values.tolist())
    assert "method.cycle-larger" in tried and "method.cycle-larger" not in left
    assert {"method.const_lr-larger", "method.window-smaller"} <= left


def test_a_placebo_changes_the_seed_alone(run):
    ds = interventions(run, length=2, windows=1)
    again = play_again(run, "unchanged", 0, 2, 1)[1]
    samples = run.task.samples["test"]
    loss = torch.nn.functional.cross_entropy(run.task.outputs(again, "test"), samples.targets)
    expected = float(run.round(1).metrics["loss"]) - float(loss)
    assert float(ds.placebo.sel(draw=1, round=1)) == pytest.approx(expected, abs=1e-6)


def test_shrinking_is_undone_where_weights_do_not_sum_to_one(runs):
    shrunk = trained(runs, "method=shrink", "method.gamma=0.9")
    ds = interventions(shrunk, length=1)
    record = shrunk.round(2)
    whole = play_again(shrunk, "plain", 2, 1)[2]
    assert torch.allclose(0.9 * whole, record.end)
    assert "plain" in ds.change.values and not remembers(shrunk)


def test_a_server_with_memory_has_it_in_a_window(runs):
    with_memory = trained(runs, "method=fedavgm")
    ds = interventions(with_memory, length=2, windows=1)
    assert ds.attrs["memory"] == "restored" and remembers(with_memory)
    assert np.isfinite(ds.gain.values).all()


def test_a_client_outside_the_cohorts_of_a_window_has_no_gain(run):
    absent = {index: next(k for k in range(4) if k not in run.cohort(index)) for index in run.rounds()}
    ds = interventions(run, length=1, starts=[2], without=[absent[2]])
    assert np.isnan(float(ds.gain.sel(change=f"without-{absent[2]}")[0]))


def test_processes_give_the_same_gains_and_the_effort_counts_trainings(run):
    alone, shared = (interventions(run, length=1, windows=1, workers=workers) for workers in (1, 2))
    assert alone.identical(shared)
    cost = 2 + sum(change.cost for change in changes(run))  # unchanged and one placebo
    assert interventions_effort(run, length=1, windows=2).trainings == round(2 * 3 * cost)


def test_bad_windows_and_changes_are_refused(run, runs):
    with pytest.raises(ValueError, match="length is 0"):
        interventions(run, length=0)
    with pytest.raises(ValueError, match="no change is called 'more'"):
        changed(run, "more")
    with pytest.raises(LookupError, match=r"keep\.globals=all"):
        interventions(trained(runs, "keep.globals=none", "keep.clients=none"), length=1)


@pytest.mark.parametrize("trains", [interventions, partial(followed, names=["everyone"])])
def test_an_unknown_split_is_refused_before_anything_is_trained(run, monkeypatch, trains):
    for module in ("interventions", "followed_changes"):
        monkeypatch.delattr(f"drift.analyses.counterfactual.{module}.replay_jobs")
    with pytest.raises(ValueError, match="no split named 'tset'; the task has train, test"):
        trains(run, split="tset")
