"""The explorer without a browser: what a closed page leaves behind."""

from __future__ import annotations

import pytest
import tiny

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")

from figures.explore.app import Explorer
from figures.explore.job import Job
from figures.explore.workspace import Workspace


def test_work_that_only_a_closed_page_waits_for_is_ended(tmp_path):
    run = tiny.trained(tmp_path)
    workspace = Workspace([run.folder])
    try:
        explorer, other = (Explorer(workspace, "view=plane&plane.points=101") for _ in range(2))
        stopped = []
        explorer.views["plane"]._jobs.append(Job("waits", _stop=stopped.append))
        survey = explorer.views["plane"]._survey
        explorer.close()
        assert len(stopped) == 1 and survey._cancelled
        assert not other.views["plane"]._survey._cancelled
    finally:
        workspace.close()
