"""Options of plug-ins: every number of every model and dataset refuses true and false, annotated or not."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
import pytest
import torch

import drift
from landscape import datasets, models, plugins
from landscape.models import build_model
from landscape.plugins.option_types import require_options

PLUGINS = [("landscape.models", name, "build", 2) for name in models.names()]
PLUGINS += [("landscape.datasets", name, "load", 1) for name in datasets.names()]


def numeric(package, name, function, positional):
    """Each option with a number in its type, and values that contain a boolean in its place."""
    parameters = list(inspect.signature(getattr(plugins.load(package, name, "plug-in"), function)).parameters.values())
    for parameter in parameters[positional:]:
        kind = str(parameter.annotation)
        if "Mapping[str, int]" in kind:
            yield parameter.name, ({"item": True},)
        elif "[int" in kind:
            yield parameter.name, (True, [True], [3, False])
        elif "int" in kind or "float" in kind:
            yield parameter.name, (True, False)


@pytest.mark.parametrize(("package", "name", "function", "positional"), PLUGINS, ids=[f"{p[1]}" for p in PLUGINS])
def test_no_number_of_a_plug_in_takes_a_boolean(package, name, function, positional):
    plugin = getattr(plugins.load(package, name, "plug-in"), function)
    for option, values in numeric(package, name, function, positional):
        for value in values:
            with pytest.raises(ValueError, match=rf"^{option} is .*; {name} takes .*number"):
                require_options(name, plugin, {option: value}, positional=positional)


def test_the_loop_above_meets_numbers_lists_and_tables():
    met = {name: [option for option, _ in numeric(package, name, *rest)] for package, name, *rest in PLUGINS}
    assert met["lenet5"] == ["dropout"] and met["mlp"] == ["hidden"] and met["din"] == ["sizes"]
    assert {"samples", "seed", "spread"} <= set(met["blobs"])


def test_an_option_without_annotation_takes_what_its_default_is():
    def build(shape, classes, *, width=32, bias=True, norm=None):
        return width, bias, norm

    require_options("mine", build, {"width": 0.5, "bias": False, "norm": True}, positional=2)
    with pytest.raises(ValueError, match=r"^width is True; mine takes a finite number\.$"):
        require_options("mine", build, {"width": True}, positional=2)


def test_a_type_that_is_no_text_is_read_as_well():
    def load(folder=None, *, samples=10, shuffle=False):
        return samples, shuffle

    load.__annotations__ |= {"samples": int, "shuffle": bool}
    with pytest.raises(ValueError, match=r"samples is 2\.5; mine takes a whole number"):
        require_options("mine", load, {"samples": 2.5})
    with pytest.raises(ValueError, match="shuffle is 'yes'; mine takes true or false"):
        require_options("mine", load, {"shuffle": "yes"})


@pytest.mark.parametrize(
    ("kind", "accepted"),
    [
        (Sequence[int], "a list of whole numbers"),
        (list[float] | None, "a list of finite numbers, as in '[0.5,1]' or none"),
        (str | Sequence[str], "a text or a list of texts"),
        (tuple[float, float], "two finite numbers"),
        (Mapping[str, int], "whole numbers by name"),
    ],
    ids=str,
)
def test_a_type_with_parts_that_is_no_text_is_read_as_well(kind, accepted):
    def load(folder=None, *, option=None):
        return option

    load.__annotations__ |= {"option": kind}
    with pytest.raises(ValueError, match=re.escape(f"option is True; mine takes {accepted}")):
        require_options("mine", load, {"option": True})


def test_a_model_is_refused_before_it_is_built():
    with pytest.raises(ValueError, match=r"^dropout is True; model 'lenet5' takes a finite number\.$"):
        build_model("lenet5", (1, 28, 28), 10, seed=0, dropout=True)


def test_numbers_without_brackets_are_refused_with_how_a_list_is_written():
    def line(run, *, rounds: tuple[int, int] = (0, 1), groups: list[int] | None = None):
        return rounds, groups

    for name in ("rounds", "groups"):
        with pytest.raises(ValueError, match=rf"^{name} is '5,11'; mine takes .*as in '\[5,11\]'"):
            require_options("mine", line, {name: "5,11"}, positional=1)


WRONG = [
    ("noise_or_drift", "fractions", value, "a list of finite numbers") for value in (0.5, None, "1", ["a"], [True])
]
WRONG += [("drift_curvature", "kinds", value, "a list of client, step") for value in (5, None, [["client"]], "client")]
WRONG += [("early_warning", "detectors", value, "one of all, drift, curve") for value in (["all"], [["all"]], None)]
WRONG += [
    ("noise_or_drift", "clients", value, "one of cohort, all or a whole number") for value in (2.5, True, ["all"])
]
WRONG += [("drift_curvature", "kinds", ["clint"], "a list of client, step")]
WRONG += [("coherence", "weighting", "sizes", "one of used, shares")]
WRONG += [("drift_variances", "momentum", "none", "one of recorded, previous, zero")]
WRONG += [("drift_variances", "center", "mean", "one of weighted, uniform")]
WRONG += [("layer_drift", "momentum", "recorded", "one of previous, zero")]


@pytest.mark.parametrize(("name", "option", "value", "accepted"), WRONG)
def test_lists_of_numbers_and_literals_are_checked(name, option, value, accepted):
    with pytest.raises(ValueError, match=rf"^{re.escape(f'{option} is {value!r}; {name} takes {accepted}')}[^\n]*\.$"):
        getattr(drift, name)(None, **{option: value})


def test_an_option_partial_is_unknown_where_there_is_none():
    with pytest.raises(ValueError, match="no option of drift_curvature named 'partial'"):
        drift.drift_curvature(None, partial=None)


def test_values_of_numpy_and_torch_are_taken_as_plain_ones():
    def build(*, number: int = 1, names: Sequence[str] = (), rounds: list[int] | None = None, on: bool = False):
        return number, names, rounds, on

    given = {"number": np.int64(3), "names": np.array(["a"]), "rounds": torch.tensor([2]), "on": np.True_}
    taken = require_options("mine", build, given, positional=0)
    assert taken == {"number": 3, "names": ["a"], "rounds": [2], "on": True}
    assert type(taken["number"]) is int and type(taken["on"]) is bool


Size = Literal[1, 2]
Form = Literal["a"] | Callable[[int], int]


def test_literals_that_are_no_texts_and_other_types_are_left_to_the_function():
    def build(*, size: Size = 1, form: Form = "a", text: Literal["a"] = "a"):
        return size, form, text

    require_options("mine", build, {"size": 2, "form": len, "text": "b"}, positional=0)
