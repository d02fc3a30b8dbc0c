"""A small campaign with its runs and files."""

import shutil

import pytest
from campaigns import places, small_plan

from drift.claims.campaign.execute import execute


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A plan, and where its four runs and their files are."""
    folder = tmp_path_factory.mktemp("campaign")
    plan = small_plan(folder)
    assert [one.state for one in execute(plan.sets(), places(folder))] == ["recorded"] * 4
    return plan, folder


@pytest.fixture
def campaign(trained, tmp_path):
    """That plan, and a copy of runs and files."""
    plan, folder = trained
    for name in ("runs", "files"):
        shutil.copytree(folder / name, tmp_path / name)
    return plan, places(tmp_path)
