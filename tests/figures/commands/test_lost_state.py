"""Commands on a run whose state file is gone while its rounds are there."""

from __future__ import annotations

import pytest
import tiny

from drift.store import files


@pytest.mark.parametrize("words", [["show"], ["verify"], ["analyse", "coherence"], ["diagnose"], ["runs"]])
def test_a_lost_state_is_named_with_the_rounds_on_disk(words, fedscape, tmp_path):
    run = tiny.trained(tmp_path / "runs")
    (run.folder / files.STATE).unlink()
    status, out, err = fedscape(*words, run.folder.parent if words == ["runs"] else run.folder)
    assert "is missing" in out + err and "0 to 2" in out + err
    assert status == (0 if words == ["runs"] else 2)
