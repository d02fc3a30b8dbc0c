"""What a method says that lacks something of the model, the task or the settings: the part, and the remedy."""

import pytest
import torch
from torch import nn

from drift.config.load import read, validated
from drift.simulation.simulate import simulate
from drift.training.model_layers import _NORMALISATION, NORMALISED
from landscape import models
from tests import movielens

SMALL = {
    "rounds": 1,
    "task": {"dataset": "digits", "model": "linear", "train_samples": 60, "test_samples": 40},
    "clients": {"number": 3, "per_round": 2, "partition": "iid"},
    "local": {"lr": 0.1, "epochs": 1},
    "proxy": {"per_class": 1},
}
SHAPES = {"alexnet_gn": (3, 64, 64)}
OPTIONS = {"din": {"sizes": {"user": 6, "zip": 5, "item": 24}}}


class Bare(nn.Module):
    """A model that does not tell its head from its body."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 10)

    def forward(self, inputs):
        return self.layer(inputs.flatten(1))


class Curved(nn.Module):
    """A model whose head is more than one linear layer."""

    def __init__(self):
        super().__init__()
        self.body = nn.Flatten()
        self.head = nn.Sequential(nn.Linear(64, 10), nn.Tanh())

    def forward(self, inputs):
        return self.head(self.body(inputs))


def bare(shape, classes):
    return Bare()


def curved(shape, classes):
    return Curved()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["method=fedbn"], "fedbn needs a model with normalisation layers .* has none; shipped models that do: alex"),
        (
            ["method=fedrep", f"task.model={__name__}:bare"],
            "fedrep needs a model with a `body` .* Bare has none; e",
        ),
        (["method=moon", f"task.model={__name__}:bare"], "moon needs a model with a `body`"),
        (["method=fedfa", f"task.model={__name__}:curved"], "fedfa needs a model with a linear head, .* Sequential; e"),
    ],
)
def test_a_part_that_a_model_lacks_is_named_and_nothing_is_left_behind(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        simulate(read(validated(SMALL), *changes), runs=tmp_path)
    assert not list(tmp_path.glob("*/run.json"))


@pytest.mark.parametrize("name", ["feddf", "fedbe", "fedfa"])
def test_methods_of_classes_refuse_one_output_for_two(name, tmp_path):
    movielens.write(tmp_path / "data" / "movielens1m")
    wanted = read(validated({**SMALL, "task": movielens.TASK}), f"method={name}")
    with pytest.raises(ValueError, match=f"{name} needs one output per class, and this task has one output for two"):
        simulate(wanted, runs=tmp_path, data=tmp_path / "data")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["method=fedbabu", "task.freeze_backbone=true"], "set task.freeze_backbone=false"),
        (["method=scaffold", "local.momentum=0.9"], "set local.optimizer=sgd and local.momentum=0.0"),
        (["method=fednova", "local.optimizer=adam"], "set local.optimizer=sgd"),
        (["method=swad"], "set clients.valid_ratio=0.2"),
        (["method=fedfomo"], "set clients.valid_ratio=0.2"),
        (["method=swad", "clients.valid_ratio=0.2", "local.steps=3"], "leave local.steps out"),
        (["method=soups", "clients.valid_ratio=0.2", "local.steps=3"], "leave local.steps out"),
        (["method=lss", "local.persist_optimizer=true"], "set it to false"),
    ],
)
def test_settings_that_do_not_go_together_are_named_with_the_remedy(changes, message):
    with pytest.raises(ValueError, match=message):
        read(validated(SMALL), *changes)


@pytest.mark.parametrize("name", ["fedlaw", "server_ft", "feddf", "fedbe"])
def test_a_missing_proxy_set_is_named(name):
    without = {key: value for key, value in SMALL.items() if key != "proxy"}
    with pytest.raises(ValueError, match=f"{name} learns on a proxy set and none is given; set proxy.per_class=10"):
        read(validated(without), f"method={name}")


def test_shipped_models_with_normalisation_layers_are_those_listed():
    found = []
    for name in models.names():
        if name == "hf":  # reads a folder or the hub
            continue
        shape = (10,) if name == "din" else SHAPES.get(name, (3, 32, 32))
        with torch.device("meta"):
            model = models.build_model(name, shape, 2 if name == "din" else 10, seed=0, **OPTIONS.get(name, {}))
        if any(isinstance(layer, _NORMALISATION) for layer in model.modules()):
            found.append(name)
    assert sorted(found) == sorted(NORMALISED)
