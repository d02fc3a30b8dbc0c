"""Logistic regression: one linear layer on the flattened input (this project)."""

from math import prod

from torch import nn

from landscape.models._blocks import Classifier


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """One linear layer; convex in its parameters. Any input shape."""
    return Classifier(nn.Sequential(nn.Flatten()), nn.Linear(prod(shape), classes))
