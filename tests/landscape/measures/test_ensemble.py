from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from oracles import cnn_task, mlp_task, quadratic, thetas
from torch import Tensor

from landscape import make_task
from landscape.measures.ensemble import ensemble_gap, subset_errors
from landscape.model.task import Task, cross_entropy

WEIGHTS = torch.tensor([2.0, 7.0, 1.0])


def shrunk(models: Tensor, scale: float) -> Tensor:
    centre = WEIGHTS.double() / WEIGHTS.sum() @ models
    return centre + scale * (models - centre)


def error_of(outputs: Tensor, targets: Tensor) -> float:
    return (outputs.argmax(1) != targets).double().mean().item()


def test_linear_models_have_no_gap():
    task = quadratic(5).task
    ds = ensemble_gap(task, thetas(task, 3), WEIGHTS)
    assert ds.gap.item() < 1e-12
    assert ds.distance.item() > 0.1
    assert ds.ensemble_loss.item() == pytest.approx(ds.mean_loss.item(), rel=1e-12)
    assert "mean_error" not in ds


@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
def test_gap_has_slope_two_and_a_bounded_ratio(outputs):
    task = mlp_task()
    models = thetas(task, 3)
    near, far = (ensemble_gap(task, shrunk(models, scale), WEIGHTS, outputs=outputs) for scale in (0.01, 0.02))
    assert np.log2(far.gap.item() / near.gap.item()) == pytest.approx(2, abs=0.05)
    assert far.distance.item() == pytest.approx(2 * near.distance.item())
    assert far.gap_ratio.item() == pytest.approx(near.gap_ratio.item(), rel=0.05)


def test_losses_and_errors_by_hand():
    task = mlp_task()
    models, share = thetas(task, 3, spread=2.0), (WEIGHTS / WEIGHTS.sum()).double()
    test = task.split("test")
    each = torch.stack([task.outputs(model, test) for model in models])
    mean = task.outputs(share @ models, test)
    logits, probabilities = (torch.einsum("k,knc->nc", share, z) for z in (each, each.softmax(2)))

    ds = ensemble_gap(task, models, WEIGHTS)
    assert ds.gap.item() == pytest.approx((logits - mean).norm(dim=1).mean().item())
    assert ds.ensemble_loss.item() == pytest.approx(cross_entropy(logits, test.targets).mean().item())
    assert ds.ensemble_error.item() == pytest.approx(error_of(logits, test.targets))
    assert ds.mean_loss.item() == pytest.approx(cross_entropy(mean, test.targets).mean().item())

    soft = ensemble_gap(task, models, WEIGHTS, outputs="probabilities")
    assert soft.gap.item() == pytest.approx((probabilities - mean.softmax(1)).norm(dim=1).mean().item())
    hit = probabilities[torch.arange(len(test)), test.targets]
    assert soft.ensemble_loss.item() == pytest.approx(-hit.log().mean().item())
    assert soft.mean_loss.item() == pytest.approx(ds.mean_loss.item())
    assert soft.ensemble_error.item() == pytest.approx(error_of(probabilities, test.targets))


def test_one_model_and_equal_models_have_no_gap():
    task = mlp_task()
    one = ensemble_gap(task, task.theta[None], torch.tensor([3.0]))
    assert one.gap.item() == 0
    assert one.distance.item() == 0
    assert np.isnan(one.gap_ratio.item())
    assert ensemble_gap(task, task.theta.expand(3, -1), WEIGHTS).gap.item() < 1e-12


def test_scaling_weights_and_permuting_models_change_nothing():
    task = mlp_task()
    models, order = thetas(task, 3), [2, 0, 1]
    a = ensemble_gap(task, models, WEIGHTS)
    for b in (ensemble_gap(task, models, 10 * WEIGHTS), ensemble_gap(task, models[order], WEIGHTS[order])):
        np.testing.assert_allclose(b.to_dataarray(), a.to_dataarray(), rtol=1e-10)


def test_buffers_are_averaged_with_the_models_where_asked():
    task = cnn_task(norm=True)
    models, buffers = thetas(task, 3), task.buffers + torch.rand(3, len(task.buffers), dtype=torch.float64)
    share = (WEIGHTS / WEIGHTS.sum()).double()
    ds = ensemble_gap(task, models, WEIGHTS, buffers=buffers, statistics="averaged")
    mean = task.outputs(share @ models, "test", buffers=share @ buffers)
    assert ds.mean_loss.item() == pytest.approx(cross_entropy(mean, task.split("test").targets).mean().item())
    subsets = subset_errors(task, models, WEIGHTS, buffers=buffers, statistics="averaged")
    assert subsets.loss.sel(models=3, draw=0).item() == pytest.approx(ds.mean_loss.item())


def test_subsets_by_hand():
    task = mlp_task()
    models = thetas(task, 3)
    ds = subset_errors(task, models, WEIGHTS)
    assert dict(ds.sizes) == {"models": 3, "draw": 3}
    assert ds["models"].values.tolist() == [1, 2, 3]
    for count in (1, 2, 3):
        for draw, chosen in enumerate(combinations(range(3), count)):
            picked = list(chosen)
            theta = WEIGHTS[picked].double() @ models[picked] / WEIGHTS[picked].sum()
            outputs, targets = task.outputs(theta, "test"), task.split("test").targets
            cell = ds.sel(models=count).isel(draw=draw)
            assert cell.loss.item() == pytest.approx(cross_entropy(outputs, targets).mean().item())
            assert cell.error.item() == pytest.approx(error_of(outputs, targets))
    assert ds.loss.sel(models=3).isnull().values.tolist() == [False, True, True]


def test_subsets_are_drawn_without_repeats_and_by_seed():
    task = mlp_task()
    models, weights = thetas(task, 7), torch.arange(1.0, 8.0)
    ds = subset_errors(task, models, weights, subsets=9, counts=[1, 3, 7])
    assert ds.loss.notnull().sum("draw").values.tolist() == [7, 9, 1]
    assert len(np.unique(ds.loss.sel(models=3))) == 9
    assert ds.identical(subset_errors(task, models, weights, subsets=9, counts=[1, 3, 7]))
    other = subset_errors(task, models, weights, subsets=9, counts=[3], seed=1)
    assert not np.array_equal(other.loss.sel(models=3), ds.loss.sel(models=3))
    alone = subset_errors(task, models, weights, subsets=9, counts=[3])
    np.testing.assert_array_equal(alone.loss.sel(models=3), ds.loss.sel(models=3))


def test_tasks_without_error_have_loss_only():
    task = quadratic(4).task
    assert list(subset_errors(task, thetas(task, 2), WEIGHTS[:2]).data_vars) == ["loss"]


def test_bad_values_are_named():
    task: Task = mlp_task()
    models = thetas(task, 3)
    with pytest.raises(ValueError, match=r"\(m, d\) and \(m,\)"):
        ensemble_gap(task, models, WEIGHTS[:2])
    with pytest.raises(ValueError, match="must not be negative"):
        ensemble_gap(task, models, -WEIGHTS)
    with pytest.raises(ValueError, match="Did you mean 'logits'"):
        ensemble_gap(task, models, WEIGHTS, outputs="logit")
    with pytest.raises(ValueError, match="cannot average 4 of 3"):
        subset_errors(task, models, WEIGHTS, counts=[1, 4])
    with pytest.raises(ValueError, match="a weight is zero"):
        subset_errors(task, models, torch.tensor([1.0, 0.0, 2.0]))
    with pytest.raises(ValueError, match="subsets is 0"):
        subset_errors(task, models, WEIGHTS, subsets=0)


@pytest.mark.parametrize(
    ("width", "loss", "targets"),
    [
        (1, torch.nn.BCEWithLogitsLoss(), torch.arange(8).remainder(2).double()[:, None]),
        (3, torch.nn.BCEWithLogitsLoss(), torch.arange(24).remainder(2).double().view(8, 3)),
    ],
)
def test_probabilities_of_one_logit_or_of_labels_are_refused(width, loss, targets):
    models = [torch.nn.Linear(4, width).double() for _ in range(2)]
    task = make_task(models[0], loss, (torch.randn(8, 4).double(), targets))
    assert ensemble_gap(task, models, [1, 1]).gap.item() == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match=r"probabilities need logits \(n, C\) of two classes.*Give outputs=logits"):
        ensemble_gap(task, models, [1, 1], outputs="probabilities")
