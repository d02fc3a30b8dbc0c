"""Every analysis refuses rounds and clients that its run does not have, and says which there are."""

from __future__ import annotations

import importlib
import inspect

import pytest
import tiny

from drift.runs.registry import registered

ABSENT = {
    "round": [99, -99],
    "rounds": [[99], [0, 99], [-99]],
    "client": [99, -1],
    "clients": [[97, 98, 99], [0, 99], [-1]],
}

KNOWN = {
    name: inspect.signature(getattr(importlib.import_module(analysis.module), name)).parameters
    for name, analysis in registered().items()
}


def _is_asked(name, option):
    """Whether an option names rounds or clients, and is no number of them or a switch."""
    parameter = KNOWN[name].get(option)
    if parameter is None:
        return False
    if option in ("rounds", "clients"):
        return "Sequence" in str(parameter.annotation)
    return "int" in str(parameter.annotation)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "method=fedavg", "clients.valid_ratio=0.3")


@pytest.mark.parametrize(("name", "option"), [(name, one) for name in KNOWN for one in ABSENT if _is_asked(name, one)])
def test_what_is_not_there_is_refused(name, option, run):
    analysis = getattr(importlib.import_module(registered()[name].module), name)
    for value in ABSENT[option]:
        with pytest.raises((LookupError, ValueError)) as told:
            run.cached(analysis, **{option: value})
        assert not isinstance(told.value, KeyError | IndexError), value
        assert any(character.isdigit() for character in str(told.value)), value
