"""Runs of an earlier schema are read in the present one; those of a later one are refused."""

from __future__ import annotations

import json

import pytest
import tiny

import drift
from drift.config import migrations


@pytest.fixture
def second(monkeypatch):
    """A version in which the setting `rounds` has been called `rounds` only since schema 2; it was `turns`."""
    monkeypatch.setattr(migrations, "SCHEMA", 2)

    def step(content):
        return {("rounds" if name == "turns" else name): value for name, value in content.items()}

    monkeypatch.setitem(migrations.STEPS, 1, step)


def test_settings_of_an_earlier_schema_are_migrated_where_they_are_read(second):
    content = {"turns": 3, "seed": 5}
    assert migrations.migrate({"experiment": content}) == {"rounds": 3, "seed": 5}
    assert content == {"turns": 3, "seed": 5}
    assert migrations.migrate({"experiment": {"rounds": 3}, "schema": 2}) == {"rounds": 3}


def test_a_run_of_the_first_schema_is_opened_and_one_written_now_states_its_own(tmp_path, second):
    run = tiny.trained(tmp_path)
    assert json.loads((run.folder / "run.json").read_text())["schema"] == 2
    assert drift.open(run.folder).experiment == run.experiment


def test_the_first_schema_is_not_stated(tmp_path):
    assert "schema" not in json.loads((tiny.trained(tmp_path).folder / "run.json").read_text())


@pytest.mark.parametrize("stated", [2, 0, "1", None])
def test_a_later_schema_is_refused_in_one_line(stated):
    with pytest.raises(ValueError, match=r"schema .*, and this version of fedscape reads 1 to 1; open the run with"):
        migrations.migrate({"experiment": {"rounds": 3}, "schema": stated})


def test_every_schema_has_its_step():
    assert set(migrations.STEPS) == set(range(1, migrations.SCHEMA))
