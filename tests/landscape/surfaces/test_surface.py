"""Labelled surfaces, and resuming them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch import nn

from landscape import surface as surface_function
from landscape.geometry.lines import line
from landscape.geometry.planes import plane
from landscape.geometry.simplex import simplex
from landscape.model.make_task import make_task
from landscape.model.metrics import class_error
from landscape.model.task import Task, error
from landscape.surfaces.interpolated_surface import interpolated_surface
from landscape.surfaces.surface import surface
from landscape.sweep import worker as sweeping
from tests.oracles import cnn_task, mlp_task, quadratic, thetas


def test_names_units_and_attributes_are_given():
    task = mlp_task()
    ds = surface(task, plane(*thetas(task, 3), points=(3, 5)))
    assert ds.loss.dims == ("alpha", "beta")
    assert ds.loss.attrs == {"long_name": "loss", "units": "nats"}
    assert ds.error.attrs["units"] == "fraction"
    assert all({"long_name", "units"} <= set(ds[name].attrs) for name in ds.variables if name != "mark")
    assert ds.attrs["analysis"] == "plane"
    assert (ds.attrs["split"], ds.attrs["samples"]) == ("test", 11)
    assert all(isinstance(value, str | int | float) for value in ds.attrs.values())
    assert surface_function is surface


def test_axes_are_not_swapped():
    oracle = quadratic(3)
    models = torch.zeros(3, 3, dtype=torch.float64)
    models[1, 0], models[2, 1] = 1, 2
    ds = surface(oracle.task, plane(*models, points=(3, 5)), metrics=("loss",))
    theta = torch.tensor([float(ds.alpha[2]), float(ds.beta[1]), 0], dtype=torch.float64)
    assert float(ds.loss[2, 1]) == pytest.approx(oracle.loss(theta).item())


@pytest.mark.parametrize("task", [mlp_task(dtype=torch.float32), cnn_task(dtype=torch.float32)])
def test_a_resumed_surface_has_the_bits_of_a_whole_one(task):
    sweep = plane(*thetas(task, 3), points=(3, 5))
    whole = surface(task, sweep)
    partial = whole.copy(deep=True)
    partial.loss.values[1:, ::2] = np.nan
    partial.mark_error.values[2] = np.nan
    assert surface(task, sweep, known=partial).identical(whole)
    assert surface(task, sweep, known=whole).identical(whole)


def test_known_values_are_kept_and_not_computed_again(monkeypatch):
    task = mlp_task()
    sweep = line(*thetas(task, 2), points=5)
    known = surface(task, sweep)
    known.loss.values[1] = 42
    known.error.values[3] = np.nan
    asked = []
    plain = sweeping.Worker.chunk

    def watched(worker, points):
        asked.extend(points)
        return plain(worker, points)

    monkeypatch.setattr(sweeping.Worker, "chunk", watched)
    found = surface(task, sweep, known=known)
    assert float(found.loss[1]) == 42
    assert asked == [sweep.coefficients[3].tolist()]
    assert np.isnan(known.error.values[3])


def test_a_metric_that_known_lacks_is_computed():
    task = mlp_task()
    sweep = line(*thetas(task, 2), points=5)
    known = surface(task, sweep, metrics=("loss",))
    assert surface(task, sweep, known=known).identical(surface(task, sweep))


def test_known_of_something_else_is_refused():
    task = mlp_task()
    models = thetas(task, 3)
    sweep = plane(*models, points=(3, 5))
    known = surface(task, sweep)
    with pytest.raises(ValueError, match="other alpha coordinates"):
        surface(task, plane(*models, points=(4, 5)), known=known)
    with pytest.raises(ValueError, match="has split = test, this sweep has train"):
        surface(task, sweep, split="train", known=known)
    first = line(*models[:2], points=3)
    with pytest.raises(ValueError, match="has models ="):
        surface(task, line(*models[1:], points=3), known=surface(task, first))


@pytest.mark.parametrize("function", [surface, interpolated_surface])
def test_a_known_part_of_other_data_or_another_loss_is_refused(function):
    net, draw = nn.Linear(3, 3), torch.Generator().manual_seed(0)
    x, y = torch.randn(9, 3, generator=draw), torch.randint(3, (9,), generator=draw)
    task, smoothed, other = (
        make_task(net, nn.CrossEntropyLoss(label_smoothing=smoothing), (x, (y + shift) % 3))
        for smoothing, shift in ((0.0, 0), (0.5, 0), (0.0, 1))
    )
    sweep = plane(*thetas(task, 3), points=(5, 5))
    known = function(task, sweep)
    known.loss.values[2] = np.nan
    for changed in (smoothed, other):
        with pytest.raises(ValueError, match="digest of samples, loss, metrics and frozen tensors"):
            function(changed, sweep, known=known)


def test_a_known_part_with_batch_statistics_of_other_samples_is_refused():
    nets = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)) for _ in range(2)]
    x, y = torch.randn(9, 3), torch.arange(9) % 3
    splits = [{"train": (factor * x, y), "test": (x, y)} for factor in (1, 2)]
    task, other = (make_task(nets[0], nn.CrossEntropyLoss(), data) for data in splits)
    sweep = line(task, *nets, points=3)
    known = surface(task, sweep)
    assert surface(task, sweep, known=known).identical(known)
    with pytest.raises(ValueError, match="digest of samples"):
        surface(other, sweep, known=known)


def test_checkpoints_grow_and_lead_to_the_same_surface(monkeypatch):
    monkeypatch.setattr(sys.modules["landscape.surfaces.surface"], "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr("landscape.sweep.threads.CHUNK_SECONDS", 0.0)
    task, kept = mlp_task(), []
    sweep = simplex(thetas(task, 3), step=0.5)
    whole = surface(task, sweep, checkpoint=kept.append)
    counts = [int(ds.loss.notnull().sum()) + int(ds.mark_loss.notnull().sum()) for ds in kept]
    assert counts == list(range(1, 11))
    assert surface(task, sweep, known=kept[4]).identical(whole)


def test_an_interrupted_surface_resumes_from_its_last_checkpoint(monkeypatch):
    monkeypatch.setattr(sys.modules["landscape.surfaces.surface"], "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr("landscape.sweep.threads.CHUNK_SECONDS", 0.0)
    task, kept = mlp_task(), []
    sweep = plane(*thetas(task, 3), points=(3, 5))

    def stop(ds):
        kept.append(ds)
        if len(kept) == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        surface(task, sweep, checkpoint=stop)
    assert surface(task, sweep, known=kept[-1]).identical(surface(task, sweep))


def test_progress_counts_every_point_once_and_known_ones_at_the_start(monkeypatch):
    monkeypatch.setattr("landscape.sweep.threads.CHUNK_SECONDS", 0.0)
    task, heard = mlp_task(), []
    sweep = simplex(thetas(task, 3), step=0.5)
    whole = surface(task, sweep, progress=lambda *steps: heard.append(steps))
    points = int(whole.loss.notnull().sum()) + whole.sizes["mark"]
    assert points < whole.loss.size + whole.sizes["mark"]
    assert heard == [(done, points) for done in range(points + 1)]
    known = whole.copy(deep=True)
    known.loss.values[0, 0] = known.error.values[0, 0] = known.mark_loss.values[1] = np.nan
    heard.clear()
    assert surface(task, sweep, known=known, progress=lambda *steps: heard.append(steps)).identical(whole)
    assert heard == [(points - 2, points), (points - 1, points), (points, points)]
    heard.clear()
    surface(task, sweep, known=whole, progress=lambda *steps: heard.append(steps))
    assert heard == [(points, points)]


def test_buffers_move_with_the_plane():
    task = cnn_task(norm=True)
    models = thetas(task, 3)
    buffers = torch.stack([task.buffers, task.buffers + 1, 2 * task.buffers + 0.5])
    ds = surface(task, plane(*models, points=2, buffers=buffers))
    targets = task.split("test").targets
    for index in range(3):
        outputs = task.outputs(models[index], "test", buffers=buffers[index])
        expected = torch.nn.functional.cross_entropy(outputs, targets).item()
        assert float(ds.mark_loss[index]) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="buffers have 2 rows; the basis has 3"):
        plane(*models, buffers=buffers[:2])


def test_groups_and_classes_become_dimensions_and_resume_bit_for_bit():
    plain = cnn_task(norm=True)
    task = Task(plain.model, plain.samples, metrics={"error": error, "class_error": class_error})
    sweep = plane(*thetas(task, 3), points=(3, 5))
    asked = {
        "metrics": ("loss", "class_error"),
        "groups": torch.tensor([0, 2, 2, 0, 2, 2, 2, 2, 0, 2, 2]),  # nobody is in group 1
        "calibration": 7,
    }
    ds = surface(task, sweep, **asked)
    assert ds.loss.dims == ("alpha", "beta", "group")
    assert ds.class_error.sizes == {"alpha": 3, "beta": 5, "group": 3, "class": 3}
    assert (ds.attrs["statistics"], ds.attrs["calibration"]) == ("recomputed", 7)
    half = ds.copy(deep=True)
    half.loss.values[1:], half.class_error.values[1:] = np.nan, np.nan
    assert surface(task, sweep, known=half, **asked).identical(ds)
    assert surface(task, sweep, workers=2, **asked).identical(ds)
    with pytest.raises(ValueError, match="groups"):
        surface(task, sweep, known=half, **{**asked, "groups": torch.arange(11) % 3})


def test_models_of_one_name_are_refused(tmp_path):
    task = make_task(nn.Linear(3, 3), nn.CrossEntropyLoss(), (torch.randn(9, 3), torch.arange(9) % 3))
    (tmp_path / "other").mkdir()
    paths = [tmp_path / name for name in ("mean.pt", "a.pt", "b.pt", "other/a.pt")]
    for path in paths:
        torch.save(nn.Linear(3, 3).state_dict(), path)
    with pytest.raises(ValueError, match=r"two marks are called 'mean' \(of mean, a, b, mean\); give other labels="):
        surface(task, *map(str, paths[:3]))
    assert len(set(surface(task, *map(str, paths[1:])).mark.values)) == 4
    with pytest.raises(ValueError, match="two marks are called 'q'"):
        plane(*thetas(task, 3), labels=("q", "q", "r"))
