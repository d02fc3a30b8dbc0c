"""Replacements and overrides of a forward end in the same state in any order."""

import torch
from torch import nn

from landscape.sweep.layer_forward import overridden, override, release, replace_forward, replacement


def double(inputs):
    return 2 * inputs


def triple(inputs):
    return 3 * inputs


def test_an_override_covers_a_replacement_made_before_or_during_it():
    layer, ones = nn.Identity(), torch.ones(2)
    for replace_first in (True, False):
        steps = [lambda: replace_forward(layer, double), lambda: override(layer, triple)]
        for step in steps if replace_first else steps[::-1]:
            step()
        assert torch.equal(layer(ones), 3 * ones)
        assert replacement(layer) is double
        release(layer)
        assert torch.equal(layer(ones), 2 * ones)
        replace_forward(layer, None)
        assert torch.equal(layer(ones), ones)


def test_a_layer_without_replacement_gets_the_forward_of_its_class_back():
    layer = nn.ReLU()
    before = set(vars(layer))
    override(layer, double)
    override(layer, triple)
    release(layer)
    release(layer)
    assert set(vars(layer)) == before
    assert replacement(layer) is None


def test_a_context_restores_the_override_before_it():
    layer, ones = nn.Identity(), torch.ones(2)
    override(layer, double)
    with overridden(layer, triple):
        assert torch.equal(layer(ones), 3 * ones)
    assert torch.equal(layer(ones), 2 * ones)
    release(layer)
    assert torch.equal(layer(ones), ones)
