"""Rounds played again with one thing changed."""

import numpy as np
import pytest
import torch
from tiny import trained

from drift.changes import changed, changes
from drift.interventions import interventions, interventions_effort, play_again, remembers


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
    assert ds["round"].values.tolist() == [2, 4] and ds["first"].values.tolist() == [1, 3]
    other = play_again(run, "everyone", 3, 2)[4]
    samples = run.task.samples["test"]
    loss = torch.nn.functional.cross_entropy(run.task.outputs(other, "test"), samples.targets)
    expected = float(run.round(4).metrics["loss"]) - float(loss)
    assert float(ds.gain.sel(change="everyone", round=4)) == pytest.approx(expected, abs=1e-6)


def test_every_change_changes_one_thing(run):
    names = [change.name for change in changes(run, without=[1])]
    assert names == ["everyone", "epochs", "rate", "even", "without-1"]
    spec, data = run.experiment, run.dataset
    assert changed(run, "everyone")[0].clients.per_round == 4
    assert changed(run, "epochs")[0].local == spec.local.model_copy(update={"epochs": 1})
    assert changed(run, "rate")[0].local.lr == spec.local.lr / 4
    dealt = changed(run, "even")[1].parts
    assert [len(part) for part in dealt] == [len(part) for part in data.parts]
    assert sorted(np.concatenate(dealt)) == sorted(np.concatenate(data.parts))
    left = changed(run, "without-1")[1].parts
    assert len(left[1]) == 0 and all(left[k] is data.parts[k] for k in (0, 2, 3))


def test_full_participation_and_one_epoch_leave_nothing_to_change(runs):
    names = [change.name for change in changes(trained(runs, "clients.per_round=4"))]
    assert names == ["rate", "even"]


def test_shrinking_is_undone_where_weights_do_not_sum_to_one(runs):
    shrunk = trained(runs, "method=shrink", "method.gamma=0.9")
    ds = interventions(shrunk, length=1)
    record = shrunk.round(2)
    whole = play_again(shrunk, "plain", 2, 1)[2]
    assert torch.allclose(0.9 * whole, record.end)
    assert "plain" in ds.change.values and not remembers(shrunk)


def test_a_server_with_memory_is_compared_with_its_own_replay(runs):
    with_memory = trained(runs, "method=fedavgm")
    ds = interventions(with_memory, length=2, windows=1)
    assert ds.attrs["replayed"] == 1 and remembers(with_memory)
    assert np.isfinite(ds.gain.values).all()


def test_a_client_outside_the_cohorts_of_a_window_has_no_gain(run):
    absent = {index: next(k for k in range(4) if k not in run.cohort(index)) for index in run.rounds()}
    ds = interventions(run, length=1, starts=[2], without=[absent[2]])
    assert np.isnan(float(ds.gain.sel(change=f"without-{absent[2]}")[0]))


def test_processes_give_the_same_gains_and_the_effort_counts_trainings(run):
    alone, shared = (interventions(run, length=1, windows=2, workers=workers) for workers in (1, 2))
    assert alone.identical(shared)
    cost = 4 / 3 + 1 / 9 + 1 + 1
    assert interventions_effort(run, length=1, windows=2).trainings == round(2 * 3 * cost)


def test_bad_windows_and_changes_are_refused(run, runs):
    with pytest.raises(ValueError, match="length is 0"):
        interventions(run, length=0)
    with pytest.raises(ValueError, match="no change is called 'more'"):
        changed(run, "more")
    with pytest.raises(LookupError, match=r"keep\.globals=all"):
        interventions(trained(runs, "keep.globals=none", "keep.clients=none"), length=1)
