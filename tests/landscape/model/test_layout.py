"""theta and the names in it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from landscape.model.layout import Layout
from tests.oracles import cnn_task


def _model() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))


def test_theta_and_its_names_are_inverse():
    model = _model()
    layout = Layout.of(model)
    theta = layout.theta(model)
    assert theta.numel() == layout.size == 3 * 2 + 2 + 2 + 2 + 2 + 1
    for name, view in layout.named(theta).items():
        assert torch.equal(view, model.get_parameter(name))
    assert torch.equal(layout.theta(layout.named(theta)), theta)
    assert torch.equal(layout.theta(model.state_dict()), theta)


def test_named_gives_views_and_theta_copies():
    model = _model()
    layout = Layout.of(model)
    theta = layout.theta(model)
    layout.named(theta)["2.bias"].fill_(7)
    assert theta[-1] == 7
    assert model[2].bias.item() != 7


def test_slices_cut_the_same_pieces():
    layout = cnn_task().layout
    theta = torch.arange(layout.size)
    named = layout.named(theta)
    for name, piece in layout.slices().items():
        assert torch.equal(theta[piece], named[name].flatten())


def test_frozen_parameters_and_integer_buffers_are_left_out():
    model = _model()
    model[0].weight.requires_grad_(False)
    layout = Layout.of(model)
    assert "0.weight" not in dict(layout.parameters)
    assert [name for name, _ in layout.buffers] == ["1.running_mean", "1.running_var"]
    assert layout.buffer_size == 4
    assert torch.equal(layout.buffer_vector(model), torch.tensor([0.0, 0, 1, 1]))


def test_wrong_lengths_and_models_are_named():
    layout = Layout.of(_model())
    with pytest.raises(ValueError, match="theta has 4 entries, the task has 15"):
        layout.named(torch.zeros(4))
    with pytest.raises(ValueError, match="buffer vector has 3 entries, the task has 4"):
        layout.named_buffers(torch.zeros(3))
    with pytest.raises(ValueError, match=r"'0.weight' has shape \(2, 4\), the task has \(2, 3\)"):
        layout.theta(nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2), nn.Linear(2, 1)))
    with pytest.raises(ValueError, match=r"no tensor named '2\.weight' .* another model\?"):
        layout.theta(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)))


def test_no_buffers_is_an_empty_vector():
    layout = Layout.of(nn.Linear(2, 2))
    assert layout.buffer_vector(nn.Linear(2, 2)).shape == (0,)
    assert layout.named_buffers(torch.zeros(0)) == {}
