"""What a page asks for, of models on a second device: nothing stays on the CPU, and values are the CPU's."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import tiny
from asking import unpacked
from second_device import second_device

import drift
from drift.store.round_record import Round
from figures.explore.answers.landscape import LandscapeQuery, of_round
from figures.explore.answers.point import at_spot
from figures.explore.answers.samples import SamplesQuery, shown
from figures.explore.answers.weights import Mixture, of_mixture
from figures.explore.work.points import Query

ROUND, SPOT = 1, (0.3, -0.2)
ANSWERS = {
    "map": lambda run: of_round(run, LandscapeQuery(ROUND, 5, None, "test", "loss")),
    "rough map": lambda run: of_round(run, LandscapeQuery(ROUND, 15, None, "test", "class 2", rough=True)),
    "point": lambda run: at_spot(run, (Query(ROUND, "plane"), SPOT)),
    "weights": lambda run: of_mixture(run, Mixture(Query(ROUND, "cohort"), (0.1, 0.2, 0.3, 0.4), True)),
    "samples": lambda run: shown(run, SamplesQuery(ROUND, "end", None, 0, "test", None, None, "all", 5)),
    "samples of a spot": lambda run: shown(run, SamplesQuery(ROUND, "", SPOT, None, "test", None, None, "wrong", 5)),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "clients.per_round=4")


def leaves(value, place=""):
    """The entries of an answer by their place; numbers are unpacked."""
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        return {name: leaf for key, entry in entries for name, leaf in leaves(entry, f"{place} {key}").items()}
    packed = place.endswith((" loss", " error", " class 2", " parts", " parts end"))
    return {place: unpacked(value) if packed and isinstance(value, str) else value}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_of_a_second_device_are_those_of_the_cpu(name, run, tmp_path, monkeypatch):
    expected = leaves(ANSWERS[name](run))
    folder = shutil.copytree(run.folder, tmp_path / run.folder.name)  # nothing of it is remembered
    made = Round.__post_init__
    with second_device(monkeypatch) as device:

        def moved(record):
            made(record)
            for part in ("start", "end", "clients"):
                if (models := getattr(record, part)) is not None:
                    object.__setattr__(record, part, models.to(device))

        monkeypatch.setattr(Round, "__post_init__", moved)
        there = drift.open(folder)
        assert there.round(ROUND).kept("clients").device == device
        found = leaves(ANSWERS[name](there))
    assert found.keys() == expected.keys()
    for place, value in expected.items():
        if isinstance(value, float | np.ndarray):
            np.testing.assert_allclose(found[place], value, rtol=1e-4, atol=1e-6, err_msg=place)
        else:
            assert found[place] == value, place
