"""Surfaces from a subset of the samples: exact where all are seen, unbiased elsewhere, with an honest error."""

import numpy as np
import pytest
import torch
from torch import nn

from landscape import make_task
from landscape.geometry.lines import line
from landscape.geometry.planes import plane
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.surfaces.interpolation import possible, trial_errors
from landscape.surfaces.refinement import RefinementTrial, lattices
from landscape.surfaces.sampled_surface import FOLDS, _Estimate, sample_rows, sampled_surface
from landscape.surfaces.sampling_error import sample_folds
from landscape.surfaces.surface import surface

pytestmark = pytest.mark.seconds


@pytest.fixture(scope="module")
def case():
    """A small classifier in float64, a plane through three copies of it, and its full surface."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)).double()
    task = Task(model, {"test": Samples(torch.randn(600, 6).double(), torch.randint(4, (600,)))})
    three = task.theta + 0.5 * torch.randn(3, task.layout.size, dtype=torch.float64)
    sweep = plane(*three, points=(21, 17), margin=0.3)
    return task, sweep, surface(task, sweep)


def test_the_lattice_and_the_marks_have_all_samples(case):
    task, sweep, full = case
    ds = sampled_surface(task, sweep, samples=60)
    first, *_ = lattices(sweep.shape)
    np.testing.assert_allclose(ds.loss.values[first], full.loss.values[first], rtol=1e-12)
    np.testing.assert_array_equal(ds.loss_subset_error.values[first], 0)
    np.testing.assert_array_equal(ds.mark_loss, full.mark_loss)
    assert not ds.interpolated.values[first].any()


def test_it_is_nearer_than_the_subset_alone_for_a_fraction_of_the_passes(case):
    task, sweep, full = case
    ds = sampled_surface(task, sweep, samples=60)
    alone = surface(task, sweep, split=task.split("test")[torch.arange(60)], metrics=("loss",))
    away, worse = (np.abs(one.loss - full.loss).values for one in (ds, alone))
    assert away.max() < 0.1 * worse.max()
    assert ds.attrs["passes"] < 0.15 * ds.attrs["passes_of_all"]
    marks = len(sweep.marks)
    assert ds.attrs["passes"] == (25 + marks) * 600 + (ds.attrs["evaluated"] + marks) * 60
    assert ds.attrs["passes_of_all"] == (21 * 17 + marks) * 600


def test_estimates_are_unbiased_and_their_standard_error_covers(case):
    task, *_ = case
    draws = torch.randn(3, task.layout.size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    sweep = plane(*task.theta + 0.5 * draws, points=(7, 5), margin=0.3)
    full = surface(task, sweep, metrics=("loss",))
    away, error = [], []
    for seed in range(40):
        ds = sampled_surface(task, sweep, samples=60, seed=seed, tolerance=1e-9)  # no point is interpolated
        assert not ds.interpolated.any()
        away.append((ds.loss - full.loss).values)
        error.append(ds.loss_subset_error.values)
    off = ~lattices_first(sweep)
    away, error = np.stack(away)[:, off], np.stack(error)[:, off]
    spread = away.std(axis=0, ddof=1)
    assert (np.abs(away.mean(axis=0)) < 4 * spread / np.sqrt(40)).all()
    assert np.sqrt((error**2).mean(axis=0)) / spread == pytest.approx(np.ones(off.sum()), abs=0.35)
    assert 0.9 < (np.abs(away) < 2.09 * error).mean() < 0.99  # Student's t with 19 degrees of freedom: 0.95


def lattices_first(sweep):
    return next(iter(lattices(sweep.shape)))


def test_the_stated_error_of_interpolation_is_that_of_the_next_points(case):
    task, sweep, full = case
    ds = sampled_surface(task, sweep, samples=200, tolerance=0.05)
    assert ds.interpolated.any()
    assert 0 < float(ds.loss_interpolation_share) <= 0.05
    logs = np.log(ds.loss.values), np.log(full.loss.values)
    within = 3 * (ds.loss_subset_error / ds.loss).max()
    assert np.abs(logs[0] - logs[1]).max() < 0.05 * np.ptp(logs[1]) + within


def test_progress_ends_at_its_total(case):
    task, sweep, _ = case
    told = []
    sampled_surface(task, sweep, samples=30, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]
    assert all(0 <= done <= total for done, total in told)


@pytest.mark.parametrize("samples", [19, 600, 5000])
def test_a_subset_is_a_part_with_enough_samples(case, samples):
    task, sweep, _ = case
    with pytest.raises(ValueError, match=f"samples is {samples} of the 600 of test; give 20 or more, fewer than all"):
        sampled_surface(task, sweep, samples=samples)


def test_a_line_is_refused(case):
    task, _, _ = case
    with pytest.raises(ValueError, match="full grids of two"):
        sampled_surface(task, line(task.theta, 2 * task.theta, points=9), samples=60)


def test_folds_without_a_counted_sample_do_not_count(case):
    task, sweep, _ = case
    samples = task.split("test")
    labels = torch.where(torch.arange(600) % 3 == 0, samples.targets, -100)
    ignoring = make_task(task.model, nn.CrossEntropyLoss(), (samples.inputs, labels))
    full = surface(ignoring, sweep)
    for seed in range(3):
        ds = sampled_surface(ignoring, sweep, samples=40, seed=seed)
        away = ((ds.loss - full.loss) / ds.loss_subset_error.where(ds.loss_subset_error > 0)).values
        assert np.nanmax(np.abs(away)) < 6 and np.isfinite(ds.loss).all()


def test_predictions_below_zero_have_a_share_on_the_linear_scale():
    whole = np.array([[[1.0, 2.0], [3.0, 5.0]]])
    fresh = np.array([[False, True], [False, False]])
    away, shares = trial_errors(whole, lambda mask: np.full_like(whole, -1.0), [RefinementTrial(~fresh, fresh)])
    np.testing.assert_array_equal(away[0], [[-3.0]])
    np.testing.assert_allclose(shares[0], [3.0 / 4.0])


@pytest.fixture(scope="module")
def fitted():
    """Two models with small losses of few, heavy tailed samples, and one without."""
    torch.manual_seed(0)
    inputs = torch.randn(400, 6)
    labels = (inputs[:, 0] * inputs[:, 1] > 0).long() + (inputs[:, 2] > 1).long()
    models = []
    for seed, steps in ((1, 250), (2, 250), (3, 60)):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
        optimizer = torch.optim.Adam(model.parameters(), 0.03)
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        models.append(model)
    return models, (inputs, labels)


def cubed(outputs, targets):
    """Cross-entropy to the third power: few samples carry most of it."""
    return nn.functional.cross_entropy(outputs, targets, reduction="none") ** 3


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), cubed])
def test_a_loss_that_is_positive_everywhere_stays_so(fitted, loss):
    models, samples = fitted
    task = make_task(models[0], loss, samples)
    sweep = plane(task, *models, points=17)
    full = surface(task, sweep)
    for seed in range(2):
        ds = sampled_surface(task, sweep, samples=40, seed=seed)
        assert ds.attrs["loss_estimated_in"] == "log"
        assert (ds.loss > 0.05 * full.loss.min()).all()


def estimates(models, samples, loss, size, seeds=60):
    """Errors of the estimate off the lattice, and their standard errors, (seeds, points) each, by draw of the subset.

    Source: the losses of each sample at each point, and means of them in numpy.
    """
    task = make_task(models[0], loss, samples)
    sweep = plane(task, *models, points=(9, 7))
    columns = np.stack(np.meshgrid(*sweep.coords.values(), indexing="ij"), -1).reshape(-1, 2)
    thetas = torch.from_numpy(sweep.origin + columns @ sweep.axes).to(sweep.basis) @ sweep.basis
    each = [loss(task.outputs(theta, task.split("test")), samples[1]) for theta in thetas]
    each = torch.stack(each, 1).double().reshape(-1, *sweep.shape).numpy()
    whole, first, every = each.mean(0, keepdims=True), lattices_first(sweep), np.ones(sweep.shape, bool)
    away, errors, left = [], [], np.sqrt(1 - size / len(each))
    for seed in range(seeds):
        part, folds = each[sample_rows(len(each), size, seed)], sample_folds(size, FOLDS).numpy()
        means = np.stack([part[folds == fold].mean(0) for fold in range(FOLDS)])
        estimate = _Estimate(whole, means, np.full((FOLDS, 1, 1), 1 / FOLDS), first, every, "nats")
        away.append((estimate.values(every) - whole)[0, ~first])
        errors.append((left * estimate.error() * max(1, estimate.times_as_far / left))[~first])
    return np.stack(away), np.stack(errors)


@pytest.mark.parametrize("size", [40, 200])
@pytest.mark.parametrize(("power", "least"), [(1, 0.93), (3, 0.92)])
def test_the_standard_error_covers_where_few_samples_carry_the_loss(fitted, power, least, size):
    def loss(outputs, targets):
        return nn.functional.cross_entropy(outputs, targets, reduction="none") ** power

    away, errors = estimates(*fitted, loss, size)
    assert least < (np.abs(away) < 2.09 * errors).mean() < 0.995


def test_a_loss_that_can_be_negative_is_estimated_without_bias(fitted):
    away, _ = estimates(*fitted, lambda outputs, targets: cubed(outputs, targets) - 2, 100)
    assert (np.abs(away.mean(0)) < 4 * away.std(0) / np.sqrt(len(away))).all()


def test_interpolation_of_what_is_never_negative_has_no_value_below_zero():
    known = np.array([[0.0, 1.0]])
    np.testing.assert_array_equal(possible(np.array([-0.5, 2.0]), known, "nats"), [0.0, 2.0])
    np.testing.assert_array_equal(possible(np.array([-0.5, 2.0]), known - 1, "nats"), [-0.5, 2.0])
    np.testing.assert_array_equal(possible(np.array([-0.5, 2.0]), known, "fraction"), [0.0, 1.0])
