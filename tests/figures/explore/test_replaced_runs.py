"""What tells a run from another one that takes its place under its name."""

from __future__ import annotations

import tiny

from figures.explore.work.versions import round_version


def test_what_tells_a_round_stays_while_the_run_grows_and_changes_with_the_run(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2")
    first, link, grown = round_version(run, 1), run.head, tiny.trained(tmp_path)
    assert round_version(grown, 1)[0][2] == first[0][2] and has_link(grown, link)
    other = tiny.trained(tmp_path, "seed=6")
    assert round_version(other, 1)[0][2] != first[0][2] and not has_link(other, link)
