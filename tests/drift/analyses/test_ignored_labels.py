"""Samples whose labels the loss ignores leave every count: results are those of the data without them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import drift
from figures.explore.work.points import Query, numbers
from figures.selection.identity import sample_counts
from landscape import make_task

K = 3


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A recorded run with tasks whose ignored label is -100 and 9, and with one that lacks those samples."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("ignored") / "run"
    first, *models = (nn.Linear(5, 3) for _ in range(K + 2))
    recorder = drift.Recorder(folder, first)
    recorder.round(start=first, clients={k: (model, 1) for k, model in enumerate(models[:K])}, end=models[K])
    x, y, count = torch.randn(90, 5), torch.randint(3, (90,)), torch.rand(90) > 0.3
    parts = [np.arange(90)[place::K] for place in range(K)]

    def opened(label):
        loss = nn.CrossEntropyLoss(ignore_index=label)
        return drift.open(folder, task=(make_task(nn.Linear(5, 3), loss, (x, torch.where(count, y, label))), parts))

    kept = np.cumsum(count.numpy()) - 1
    less = [kept[part[count.numpy()[part]]] for part in parts]
    without = make_task(nn.Linear(5, 3), nn.CrossEntropyLoss(), (x[count], y[count]))
    return {-100: opened(-100), 9: opened(9), "without": drift.open(folder, task=(without, less))}


ANALYSES = {
    "three_accuracies": {},
    "three_accuracies of train": {"criterion": "train"},
    "confusion": {},
    "confusion of a client": {"split": "client 1"},
    "decomposition": {},
    "decomposition of test": {"split": "test"},
    "label_scatter": {},
    "heterogeneity": {},
    "models_plane": {"points": 3},
    "client_losses": {},
    "client_deviations": {},
}


def named(name):
    return getattr(drift, name)


@pytest.mark.parametrize("label", [-100, 9])
@pytest.mark.parametrize("name", ANALYSES)
def test_ignored_labels_leave_the_count(runs, name, label):
    found, expected = (named(name.split()[0])(runs[key], **ANALYSES[name]) for key in (label, "without"))
    for key, values in expected.data_vars.items():
        if values.dtype.kind in "fi" and key != "target":
            np.testing.assert_allclose(found[key], values, rtol=2e-5, atol=1e-6, err_msg=key)
    assert found.attrs.get("samples") == expected.attrs.get("samples")


@pytest.mark.parametrize("label", [-100, 9])
def test_analyses_of_classes_take_ignored_labels(runs, label):
    run = runs[label]
    assert np.isfinite(drift.weight_factors(run).balance).all() and np.isfinite(drift.heterogeneity(run).overlap).all()
    assert run.dataset.class_names == ["0", "1", "2"]


@pytest.mark.parametrize("label", [-100, 9])
def test_numbers_of_a_point_leave_ignored_labels_out(runs, label):
    found, expected = (numbers(runs[key], Query(0, "cohort"), [1.0, 0, 0]) for key in (label, "without"))
    np.testing.assert_allclose(found["class_error"], expected["class_error"])
    assert found["samples"] == expected["samples"] == len(runs["without"].task.split("test"))


@pytest.mark.parametrize("label", [-100, 9])
def test_stated_numbers_of_samples_are_of_those_that_count(runs, label):
    expected = sample_counts(runs["without"])
    assert sample_counts(runs[label]) == expected
    assert drift.round_plane(runs[label], points=3).attrs["samples"] == expected["test"] < 90


def test_a_client_whose_labels_are_all_ignored_is_named(runs):
    run = runs[-100]
    task = run.context.user_task.task
    samples = task.samples["train"]
    targets = samples.targets.clone()
    targets[1::K] = -100
    other = make_task(task.model, nn.CrossEntropyLoss(), {"train": (samples.inputs, targets), "test": samples})
    run = drift.open(run.folder, task=(other, run.context.user_task.parts))
    with pytest.raises(ValueError, match="no sample has a label that counts"):
        drift.confusion(run, split="client 1")
    assert np.isnan(drift.three_accuracies(run).ood.values[:, 1]).all()
    assert np.isfinite(drift.three_accuracies(run).worst_ood)


def test_a_client_without_outputs_has_no_accuracy(tmp_path):
    torch.manual_seed(0)
    first, *models = (nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)) for _ in range(4))
    for parameter in models[1].parameters():
        parameter.data *= 1e25
    recorder = drift.Recorder(tmp_path / "run", first)
    recorder.round(start=first, clients={k: (model, 1) for k, model in enumerate(models)}, end=models[1])
    x, y = torch.randn(60, 5), torch.arange(60) % 3
    parts = [list(range(start, start + 20)) for start in (0, 20, 40)]
    assert not models[1](x).amax(1).isfinite().all(), "infinite or NaN, as the processor multiplies"
    run = drift.open(tmp_path / "run", task=(make_task(first, nn.CrossEntropyLoss(), (x, y)), parts))
    ds = drift.three_accuracies(run)
    right = np.array([(model(x).argmax(1) == y).double().mean() for model in models])
    np.testing.assert_allclose(ds.local, [right[0], np.nan, right[2]])
    assert np.isnan([ds.global_accuracy, ds.averaged_local, ds.worst_ood, ds.ood_min, ds.ood_mean]).all()
    for client in (0, 2):
        of_class = np.array([(models[client](x).argmax(1) == y)[y == c].double().mean() for c in range(3)])
        shares = np.array([[(y[part] == c).double().mean() for c in range(3)] for part in parts])
        np.testing.assert_allclose(ds.ood.sel(client=client), shares @ of_class)
    assert np.isnan(ds.ood.sel(client=1)).all()
    lost = numbers(run, Query(0, "cohort"), [0.0, 1, 0])
    assert lost["loss"] is None and lost["class_error"] == [None] * 3
