"""Predictions per sample against a linear model computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from landscape.measures.predictions import confusion_counts, predictions
from landscape.model.binary_losses import binary_cross_entropy, binary_error
from landscape.model.samples import Samples
from landscape.model.task import Task

X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [3.0, 1.0], [0.5, 0.0]], dtype=torch.float64)
Y = torch.tensor([0, 1, 1, 2, 2])


def test_classes_probabilities_and_losses_equal_a_softmax_by_hand():
    task = Task(nn.Linear(2, 3, bias=False, dtype=torch.float64), {"test": Samples(X, Y)})
    theta = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.5, -1.0], dtype=torch.float64)
    logits = X.numpy() @ theta.view(3, 2).numpy().T
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    result = predictions(task, theta)
    np.testing.assert_array_equal(result.predicted, logits.argmax(1))
    np.testing.assert_allclose(result.probabilities, probabilities, rtol=1e-12)
    np.testing.assert_allclose(result.confidence, probabilities.max(1), rtol=1e-12)
    np.testing.assert_allclose(result.loss, -np.log(probabilities[np.arange(5), Y]), rtol=1e-12)


def test_one_logit_is_that_of_class_one():
    task = Task(
        nn.Linear(2, 1, bias=False, dtype=torch.float64),
        {"test": Samples(X, (Y > 0).long())},
        loss=binary_cross_entropy,
        metrics={"error": binary_error},
    )
    result = predictions(task, torch.tensor([1.0, -1.0], dtype=torch.float64))
    assert result.predicted.tolist() == [1, 0, 0, 1, 1]
    np.testing.assert_allclose(result.probabilities[:, 1], torch.sigmoid(X[:, 0] - X[:, 1]), rtol=1e-12)


def test_targets_that_are_no_classes_are_refused():
    task = Task(nn.Linear(2, 3, dtype=torch.float64), {"test": Samples(X, Y.double())})
    with pytest.raises(ValueError, match=r"give classes as targets\.long\(\)"):
        predictions(task, task.theta)


def test_confusions_have_classes_in_rows():
    counts = confusion_counts(np.array([0, 0, 2, 1]), np.array([0, 2, 2, 0]), 3)
    assert counts.tolist() == [[1, 0, 1], [1, 0, 0], [0, 0, 1]]
