"""Variants of recorded rounds against the models computed by hand, and what is honest about choosing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kinds import FEW, one_of_each
from torch import nn

import drift
from drift.analyses.counterfactual.whatif import _best_weights, _samples, what_if, what_if_effort
from drift.record.recorder import Recorder
from drift.simulation.simulate import simulate
from landscape import make_task
from landscape.sweep.evaluate import evaluate
from tests.drift import hand
from tests.drift.methods.test_methods import NAMES, experiment
from tests.tiny import trained


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(runs):
    """Six rounds of FedAvg, 3 of 4 clients of unequal size."""
    return trained(runs, "rounds=6")


def measured(run, theta, samples, **options):
    found = evaluate(run.task, theta[None], torch.ones(1, 1), split=samples, **options)
    return float(found["loss"]), float(found["error"])


def test_window_1_is_the_recorded_fedavg_and_gamma_1_the_mean(run):
    found = what_if(run, windows=(1, 2), lowest=0.8, points=3)
    end, one = found.sel(variant="end"), found.sel(variant="ima-1")
    np.testing.assert_array_equal(one.loss, end.loss)
    np.testing.assert_array_equal(one.gain, 0)
    np.testing.assert_array_equal(found.shrink_loss.sel(t=1.0), found.loss.sel(variant="fma"))
    np.testing.assert_allclose(found.gain.sel(variant="fma"), 0, atol=1e-6)


def test_variants_are_the_models_they_say(run):
    found = what_if(run, rounds=[1, 4], windows=(3,), lowest=0.7, points=4).sel(round=4)
    _, reporting = _samples(run, "half")
    record = run.round(4)
    ends = [run.round(index).end for index in (2, 3, 4)]
    models = {
        "end": record.end,
        "fma": record.fma,
        "uniform": record.clients.mean(0),
        "ima-3": torch.stack(ends).mean(0),
        "gamma": float(found.gamma) * record.fma,
        "weights": torch.from_numpy(found.weight.values[record.ids]).float() @ record.clients,
    }
    for name, theta in models.items():
        loss, error = measured(run, theta, reporting)
        assert float(found.loss.sel(variant=name)) == pytest.approx(loss, rel=1e-5), name
        assert float(found.error.sel(variant=name)) == pytest.approx(error), name
    np.testing.assert_allclose(found.gain, found.loss.sel(variant="end") - found.loss)
    np.testing.assert_allclose(found.error_gain, found.error.sel(variant="end") - found.error)
    np.testing.assert_allclose(found.share.values[record.ids], record.shares)
    assert float(found.weight.sum()) == pytest.approx(1)
    for gamma in found.t.values:
        assert float(found.shrink_loss.sel(t=gamma)) == pytest.approx(
            measured(run, float(gamma) * record.fma, reporting)[0], rel=1e-5
        )


def test_choices_are_the_best_on_the_choosing_half(run):
    found = what_if(run, lowest=0.5, points=6, steps=40).sel(round=5)
    choosing, reporting = _samples(run, "half")
    record, test = run.round(5), run.task.split("test")
    assert len(choosing) + len(reporting) == len(test)
    rows = [{tuple(sample.flatten().tolist()) for sample in samples.inputs} for samples in (choosing, reporting)]
    assert not rows[0] & rows[1]
    losses = [measured(run, float(gamma) * record.fma, choosing)[0] for gamma in found.t]
    assert float(found.gamma) == float(found.t[int(np.argmin(losses))])
    learned = torch.from_numpy(found.weight.values[record.ids]).float() @ record.clients
    assert measured(run, learned, choosing)[0] < measured(run, record.fma, choosing)[0]


def test_no_step_leaves_the_weights_and_many_reach_the_best(run):
    """Three clients, so that a fine grid of the simplex is a check of its own."""
    found = what_if(run, rounds=[0], steps=0).isel(round=0)
    np.testing.assert_allclose(found.weight, found.share)
    choosing, _ = _samples(run, "half")
    record = run.round(0)
    learned = _best_weights(run, record, choosing, 400, 0.3)
    grid = [(a / 20, b / 20, 1 - a / 20 - b / 20) for a in range(21) for b in range(21 - a)]
    losses = evaluate(run.task, record.clients, np.array(grid), split=choosing, metrics=("loss",))["loss"]
    reached = evaluate(run.task, record.clients, learned[None], split=choosing, metrics=("loss",))["loss"]
    assert float(reached) < float(losses.min()) + 1e-3


def test_windows_reach_back_over_kept_rounds_only(runs, run):
    whole = what_if(run, windows=(3, 5)).loss
    assert whole.sel(variant="ima-3").isnull().values.tolist() == [True, True, False, False, False, False]
    assert whole.sel(variant="ima-5").isnull().values.tolist() == [True] * 4 + [False] * 2
    thin = trained(runs, "rounds=6", "keep.clients=none", "keep.globals=at 0 2 3 4")
    found = what_if(thin, windows=(2, 3))
    assert found["round"].values.tolist() == [0, 2, 3, 4]
    assert found.loss.sel(variant="ima-3").notnull().values.tolist() == [False, False, False, True]
    assert float(found.loss.sel(variant="ima-3", round=4)) == pytest.approx(float(whole.sel(variant="ima-3", round=4)))
    assert found.loss.sel(variant=["fma", "uniform", "gamma", "weights"]).isnull().all()
    assert found.gamma.isnull().all()


def test_windows_of_an_ima_run_average_its_aggregates(runs):
    """In rounds that IMA averages, the window of its own size is the recorded end."""
    run = trained(runs, "rounds=6", "method=ima", "method.window=2", "method.start=0.5")
    found = what_if(run, windows=(1, 2)).sel(round=[4, 5])
    np.testing.assert_allclose(found.gain.sel(variant="ima-2"), 0, atol=1e-6)
    np.testing.assert_allclose(found.gain.sel(variant="ima-1"), found.gain.sel(variant="fma"), atol=1e-6)
    assert (abs(found.gain.sel(variant="fma")) > 1e-4).all()


def test_proxy_chooses_and_the_whole_test_set_reports(run):
    found = what_if(run, rounds=[-1], choose="proxy")
    assert found.attrs["chosen_on"] == len(run.task.split("proxy"))
    assert found.attrs["reported_on"] == len(run.task.split("test"))
    assert float(found.loss.sel(variant="end", round=5)) == pytest.approx(measured(run, run.round(5).end, "test")[0])


def test_clients_without_samples_get_no_weight(runs):
    thin = trained(runs, "clients.number=12", "clients.partition={name='dirichlet',concentration=0.05,variant='plain'}")
    index = next(i for i in thin.rounds() if not bool(thin.round(i).sizes.all()) and bool(thin.round(i).sizes.any()))
    record, found = thin.round(index), what_if(thin, rounds=[index]).isel(round=0)
    empty = record.ids[record.sizes == 0].tolist()
    assert not found.weight.sel(client=empty).any()
    kept = record.clients[record.sizes > 0].mean(0)
    _, reporting = _samples(thin, "half")
    assert float(found.loss.sel(variant="uniform")) == pytest.approx(measured(thin, kept, reporting)[0], rel=1e-5)


def with_statistics(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 5), nn.BatchNorm1d(5), nn.Linear(5, classes))


def test_batch_statistics_are_recomputed_for_every_variant(runs):
    run = trained(runs, f"task.model={__name__}:with_statistics")
    found = what_if(run, windows=(1,), lowest=0.5, points=2)
    np.testing.assert_array_equal(found.gain.sel(variant="ima-1"), 0)
    np.testing.assert_allclose(found.gain.sel(variant="fma"), 0, atol=1e-5)
    assert np.isfinite(found.loss).all()


def test_a_round_in_which_every_client_diverged_has_its_end_and_windows_only(run, monkeypatch):
    whole = type(run).round

    def emptied(self, index):
        record = whole(self, index)
        none = {"ids": record.ids[:0], "sizes": record.sizes[:0], "clients": record.clients[:0]}
        return type(record)(**{**vars(record), **none, "weights": record.weights[:0]}) if index == 3 else record

    monkeypatch.setattr(type(run), "round", emptied)
    found = what_if(run, rounds=[3])
    assert np.flatnonzero(found.loss.notnull().values[0]).tolist() == [0, 3]


def test_effort_and_progress(run):
    heard = []
    what_if(run.with_progress(lambda done, total: heard.append((done, total))), rounds=[0, 3])
    assert heard == [(0, 2), (1, 2), (2, 2)]
    told = what_if_effort(run, rounds=[0, 3])
    assert told.trainings == 0
    assert told.forwards > 2 * len(run.task.split("test"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": (0, 3)}, "windows are"),
        ({"windows": (3, 3)}, "windows are"),
        ({"lowest": 0.0}, "lowest is 0"),
        ({"points": 1}, "points is 1"),
        ({"steps": -1}, "steps is -1"),
        ({"choose": "train"}, "choose is 'train'"),
    ],
)
def test_options_out_of_range_are_refused(run, options, message):
    with pytest.raises(ValueError, match=message):
        what_if(run, **options)


def test_a_run_without_globals_or_proxy_says_so(runs):
    with pytest.raises(LookupError, match=r"keep\.globals=all"):
        what_if(trained(runs, "keep.globals=none", "keep.clients=none"))


@pytest.mark.parametrize("name", one_of_each(NAMES, FEW))
def test_every_method_has_its_what_if(name, tmp_path):
    run = simulate(experiment(name), runs=tmp_path)
    found = what_if(run, windows=[2], points=3, steps=3)
    assert np.isfinite(found.gain.isel(round=-1)).all()
    assert all({"long_name", "units"} <= set(found[name].attrs) for name in found.data_vars)


def test_a_round_in_which_every_shrunk_mean_has_no_loss_has_no_gamma_and_no_error(tmp_path):
    model = nn.Linear(4, 3)
    task = make_task(model, nn.CrossEntropyLoss(), (1e10 * hand.random(20, 4).float(), torch.arange(20) % 3))

    def state(scale, seed):
        return {name: scale * hand.random(*part.shape, seed=seed).float() for name, part in model.state_dict().items()}

    recorder = Recorder(tmp_path / "run", model, method="FedAvg", seed=0, data="d", partition="p", settings={})
    for index in range(2):
        models = {0: (state(1, 1), 2), 1: (state(1e30 if index else 1, 2), 3)}
        recorder.round(start=state(1, 4), clients=models, end=state(1, 1))
    found = what_if(drift.open(tmp_path / "run", task=task), windows=())
    whole, broken = found.sel(round=0), found.sel(round=1)
    assert np.isfinite(whole.gamma) and np.isfinite(whole.shrink_loss).all() and np.isfinite(whole.error).all()
    assert np.isnan(broken.gamma) and np.isnan(broken.shrink_loss).all()
    assert np.isfinite(broken.error.sel(variant="end"))
    for name in ("loss", "error", "gain", "error_gain"):
        assert np.isnan(broken[name].sel(variant=["fma", "gamma", "weights"])).all(), name
