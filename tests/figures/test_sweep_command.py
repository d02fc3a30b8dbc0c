"""fedscape sweep: one table of all runs, and an exit code that tells of failures."""

import json

import pytest
import tiny

from figures import console
from figures.cli import main
from figures.commands import sweep as module


def test_a_sweep_trains_tabulates_and_tells_of_failures(tmp_path, capsys):
    command = ["sweep", str(tiny.written(tmp_path)), "--runs", str(tmp_path), "--set", "rounds=1", "--grid"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "seed=0", "local.lr=0.1,1e39", "--json"])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    whole, failed = json.loads(out)
    assert (whole["state"], whole["rounds"], failed["state"]) == ("done", "1/1", "failed")
    assert 0 <= whole["accuracy"] <= 1 and failed["accuracy"] is None and "Lower local.lr" in failed["reason"]
    assert "1 of 2 runs are whole" in err and "done, 1 of 1 rounds" in err
    with pytest.raises(SystemExit) as ended:
        main([*command, "seed=0", "local.lr=0.1"])
    assert ended.value.code == 0 and "on disk" in capsys.readouterr().out


def test_the_table_of_progress_shows_what_goes_on_first(tmp_path):
    from drift.grid import Planned
    from drift.run import Run

    states = ["done", "waiting", "training", "failed"] + ["on disk"] * module.ROWS
    planned = [Planned(Run(tmp_path / str(place)), tiny.experiment(), one, 2) for place, one in enumerate(states)]
    rows = module._board(planned)
    assert [row["state"] for row in rows[:4]] == ["training", "failed", "waiting", "done"]
    assert len(rows) == module.ROWS + 1 and rows[-1]["run"] == f"{module.ROWS + 2} of {len(planned)} runs"
    assert console.drawn(rows, module._BOARD).row_count == len(rows)
