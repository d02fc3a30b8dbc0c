"""Multilayer perceptron 784-200-200-10 (FedLAW, App. D.3)."""

from collections.abc import Sequence
from math import prod

from torch import nn

from landscape.models._blocks import Classifier, dense


def build(shape: tuple[int, ...], classes: int, *, hidden: Sequence[int] = (200, 200)) -> nn.Module:
    """Fully connected layers with ReLU; 199,210 parameters for (1, 28, 28) and 10 classes. Any input shape.

    Args:
        shape, classes: Of one input, and number of outputs.
        hidden: Widths of the hidden layers; the last is the feature.

    Raises:
        ValueError: If there is no hidden layer, or one without units.
    """
    if not isinstance(hidden, Sequence) or not hidden or not all(type(width) is int and width > 0 for width in hidden):
        raise ValueError(f"hidden is {hidden!r}; mlp takes a list of widths >= 1, such as (200, 200).")
    return Classifier(nn.Sequential(nn.Flatten(), *dense(prod(shape), *hidden)), nn.Linear(hidden[-1], classes))
