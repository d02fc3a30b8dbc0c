"""What the loss is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from landscape.model.samples import Samples
from landscape.model.task import Task, cross_entropy, error, squared_error
from landscape.sweep.evaluate import evaluate
from tests.oracles import cnn_task, mlp_task, thetas


def test_cross_entropy_and_error_by_hand():
    logits = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    targets = torch.tensor([0, 1, 1])
    torch.testing.assert_close(cross_entropy(logits, targets)[0], torch.tensor(2.0).log())
    torch.testing.assert_close(cross_entropy(logits, targets)[1], torch.tensor(2.0).exp().add(1).log())
    assert error(logits, targets).tolist() == [0, 1, 0]


def test_squared_error_sums_over_outputs():
    outputs = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    assert squared_error(outputs, torch.zeros(2, 2)).tolist() == [5, 0]
    assert squared_error(outputs[:, :1], torch.tensor([0.0, 2.0])).tolist() == [1, 4]


def test_the_model_is_copied():
    model = mlp_task().model
    task = Task(model, {})
    before = task.theta
    with torch.no_grad():
        model[0].weight.zero_()
    assert torch.equal(task.theta, before)


def test_outputs_do_not_depend_on_blocks():
    task = cnn_task()
    theta = thetas(task, 1)[0]
    torch.testing.assert_close(task.outputs(theta, "test", block=3), task.outputs(theta, "test"))
    assert task.outputs(theta, task.split("train")[:5]).shape == (5, 3)


def test_outputs_use_the_given_buffers():
    task = cnn_task(norm=True)
    other = task.buffers.clone()
    other[:4] += 1
    assert not torch.allclose(task.outputs(task.theta, "test"), task.outputs(task.theta, "test", buffers=other))


def test_unknown_splits_and_metrics_are_named():
    task = mlp_task()
    with pytest.raises(ValueError, match="no split named 'valid'; the task has train, test"):
        task.split("valid")
    with pytest.raises(ValueError, match="no metric named 'f1'; the task has loss, error"):
        task.measures(("loss", "f1"))


def test_samples_pass_as_a_split():
    samples = Samples(torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64))
    assert mlp_task().split(samples) is samples


def test_all_measures_of_a_task_are_taken_where_none_is_named():
    samples = {"test": Samples(torch.randn(5, 3), torch.randn(5, 2))}
    task = Task(nn.Linear(3, 2), samples, loss=squared_error, metrics={"mae": lambda o, t: (o - t).abs().mean(1)})
    assert list(task.measures()) == ["loss", "mae"]
    assert set(evaluate(task, task.theta[None], torch.ones(1, 1))) == {"loss", "mae"}
