"""The sampling error of a surface: against the paired formula, with the means of the plain one, and what has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from landscape.geometry.lines import line
from landscape.geometry.planes import plane
from landscape.model.metrics import class_error
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.surfaces.sampling_error import sample_folds
from landscape.surfaces.surface import surface
from tests.oracles import mlp_task, thetas


def test_with_one_sample_per_fold_it_is_the_paired_standard_error():
    task = mlp_task()
    sweep = plane(*thetas(task, 3), points=(3, 4))
    found = surface(task, sweep, folds=11)
    each = surface(task, sweep, groups=torch.arange(11)).loss.values
    place = np.unravel_index(each.mean(-1).argmin(), each.shape[:-1])
    expected = (each - each[place]).std(-1, ddof=1) / np.sqrt(11)
    np.testing.assert_allclose(found.loss_sampling_error, expected, rtol=1e-10, atol=1e-15)
    assert float(found.loss_sampling_error[place]) == 0
    corner = surface(task, sweep, groups=torch.arange(11)).mark_loss.values[1]
    expected = (corner - each[place]).std(ddof=1) / np.sqrt(11)
    assert float(found.mark_loss_sampling_error[1]) == pytest.approx(expected)


def test_folds_of_unequal_size_are_weighted_and_means_stay():
    task = mlp_task()
    sweep = line(*thetas(task, 2), points=5)
    plain, found = surface(task, sweep), surface(task, sweep, folds=3)
    np.testing.assert_allclose(found.loss, plain.loss, rtol=1e-12)
    np.testing.assert_allclose(found.mark_error, plain.mark_error, rtol=1e-12)
    assert found.loss.attrs == plain.loss.attrs
    assert found.attrs["folds"] == 3
    assert sorted(np.bincount(sample_folds(11, 3).numpy())) == [3, 4, 4]
    fold = sample_folds(11, 3)
    by_fold, sizes = surface(task, sweep, groups=fold).loss.values, np.bincount(fold.numpy())
    difference = by_fold - by_fold[int(plain.loss.values.argmin())]
    mean = difference @ sizes / 11
    expected = np.sqrt((difference - mean[:, None]) ** 2 @ sizes / 11 / 2)
    np.testing.assert_allclose(found.loss_sampling_error, expected, rtol=1e-10, atol=1e-15)


@pytest.mark.seconds
def test_it_covers_the_error_of_drawing_other_samples():
    """Points of a line differ from the lowest as on all samples, within 1.96 standard errors, in 95 % of draws."""
    task = mlp_task()
    generator = torch.Generator().manual_seed(0)
    inputs, targets = task.samples["test"].inputs, task.samples["test"].targets
    noise = torch.randn(4000, *inputs.shape[1:], generator=generator, dtype=inputs.dtype)
    labels = torch.randint(0, int(targets.max()) + 1, (4000,), generator=generator)
    sweep, inside = line(*thetas(task, 2), points=3), []
    whole = replace(task, samples={"test": Samples(noise, labels)})
    true = surface(whole, sweep, metrics=("loss",)).loss.values
    for part in range(50):
        some = Samples(noise[40 * part : 40 * (part + 1)], labels[40 * part : 40 * (part + 1)])
        found = surface(whole, sweep, metrics=("loss",), split=some, folds=20)
        lowest = int(found.loss.values.argmin())
        far = abs((found.loss.values - found.loss.values[lowest]) - (true - true[lowest]))
        inside += [far[place] < 1.96 * found.loss_sampling_error.values[place] for place in range(3) if place != lowest]
    assert 0.88 < np.mean(inside) <= 0.99


def test_what_has_no_sampling_error_is_refused():
    task = mlp_task()
    sweep = line(*thetas(task, 2), points=3)
    with pytest.raises(ValueError, match="folds is 12; give 2 or more, at most the number of samples, 11"):
        surface(task, sweep, folds=12)
    with pytest.raises(ValueError, match="folds is 3 and groups are given"):
        surface(task, sweep, folds=3, groups=torch.arange(11))
    several = replace(task, metrics={"class_error": class_error})
    with pytest.raises(ValueError, match="class_error has several values per sample"):
        surface(several, sweep, folds=3)
    with pytest.raises(ValueError, match="the known surface is complete"):
        surface(task, sweep, folds=3, known=surface(task, sweep, folds=3))


def test_a_checkpoint_goes_on_to_the_same_bits(monkeypatch):
    monkeypatch.setattr("landscape.surfaces.surface.CHECKPOINT_SECONDS", -1.0)
    task = mlp_task()
    sweep, kept = line(*thetas(task, 2), points=9), []
    whole = surface(task, sweep, folds=3, checkpoint=kept.append)
    partial = kept[0]
    partial.loss.values[4:] = np.nan
    assert surface(task, sweep, folds=3, known=partial).identical(whole)


def test_folds_without_a_counted_sample_do_not_matter():
    inputs, targets = torch.randn(40, 6, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 3
    targets[::3] = -100
    kept = targets >= 0
    task = Task(nn.Linear(6, 3), {"test": Samples(inputs, targets)}, metrics={})
    found = surface(task, line(*thetas(task, 2), points=4), folds=40)
    only = Task(task.model, {"test": Samples(inputs[kept], targets[kept])}, metrics={})
    expected = surface(only, line(*thetas(task, 2), points=4), folds=int(kept.sum()))
    for name in ("loss", "loss_sampling_error", "mark_loss_sampling_error"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-9)
