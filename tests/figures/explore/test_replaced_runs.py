"""What tells a run from another one that takes its place under its name."""

from __future__ import annotations

import tiny

from figures.explore.work.versions import round_version


def test_what_tells_a_round_stays_while_the_run_grows_and_changes_with_the_run(tmp_path):
    first = round_version(tiny.trained(tmp_path, "rounds=2"), 1)
    assert round_version(tiny.trained(tmp_path), 1)[2] == first[2]
    assert round_version(tiny.trained(tmp_path, "seed=6"), 1)[2] != first[2]
