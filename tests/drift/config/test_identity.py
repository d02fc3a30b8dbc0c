"""A run's name depends on its settings alone: neither on settings that came later nor on where code lies."""

from __future__ import annotations

import json

import pytest
import tiny
from pydantic import Field, create_model

from drift import partitions
from drift.config import experiment as experiments
from drift.config import identity
from drift.config import method as methods
from drift.config.experiment import Experiment

TABLES = {
    "experiment": Experiment,
    "task": experiments.TaskSettings,
    "clients": experiments.Clients,
    "local": experiments.Local,
    "proxy": experiments.Proxy,
    "init": experiments.Init,
    "keep": experiments.Keep,
}


def with_a_new_setting(model):
    """A model whose class has one more setting, at its default."""
    more = create_model("More", __base__=type(model), newer=(int, Field(7)))
    more.__module__ = type(model).__module__
    return more.model_validate(dict(model))


def identifying(table, name):
    return identity._settings(table, table.model_dump(mode="json"), name)


@pytest.mark.parametrize("name", ["task", "clients", "local", "keep", "method", "proxy"])
def test_a_new_setting_counts_only_where_it_differs_from_its_default(name):
    table = getattr(tiny.experiment("method=fedprox"), name)
    newer = with_a_new_setting(table)
    assert identifying(newer, name) == identifying(table, name)
    assert identifying(newer.model_copy(update={"newer": 8}), name) == {**identifying(table, name), "newer": 8}


def test_a_new_setting_of_the_experiment_and_of_a_wrapped_method_renames_no_run():
    spec = tiny.experiment("method=ima", "method.base=fedprox", "method.window=2")
    assert with_a_new_setting(spec).slug == spec.slug
    base = with_a_new_setting(spec.method.base)
    method = spec.method.model_copy(update={"base": base})
    assert spec.model_copy(update={"method": method}).slug == spec.slug


@pytest.mark.parametrize("table", TABLES)
def test_settings_of_the_first_version_are_still_there(table):
    schema = json.loads(json.dumps(identity._schema()))
    assert set(schema[table]) <= set(TABLES[table].model_fields)


def test_plug_ins_of_the_first_version_still_have_their_settings():
    schema = identity._schema()
    for name, fields in schema["methods"].items():
        assert set(fields) <= set(methods.load(name).model_fields), name
    for name, fields in schema["partitions"].items():
        assert set(fields) <= set(partitions.load(name).model_fields), name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["local.lr=0.05"], ["local.lr=0.06"]),
        (["clients.corrupted=0.25"], []),
        (["keep.compress=true"], []),
        (["engine=batched"], []),
        (["method=fedprox", "method.mu=0.1"], ["method=fedprox", "method.mu=0.2"]),
        (["method=ima", "method.window=2", "method.base=fedprox"], ["method=ima", "method.window=2"]),
        (["clients.partition=iid"], []),
    ],
)
def test_another_setting_is_another_run(one, other):
    assert tiny.experiment(*one).hash != tiny.experiment(*other).hash


def test_no_corrupted_clients_are_one_setting_however_they_are_said():
    assert tiny.experiment("clients.corrupted=[]").slug == tiny.experiment("clients.corrupted=0.0").slug
    assert tiny.experiment("clients.corrupted=[]").slug == tiny.experiment().slug
