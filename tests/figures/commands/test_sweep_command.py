"""fedscape sweep: one table of all runs, and an exit code that tells of failures."""

import json

import pytest
import tiny

from figures.cli import main
from figures.commands import sweep as module
from figures.texts import console


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
    from drift.runs.run import Run
    from drift.simulation.settings_grid import Planned

    states = ["done", "waiting", "training", "failed"] + ["on disk"] * module.ROWS
    planned = [Planned(Run(tmp_path / str(place)), tiny.experiment(), one, 2) for place, one in enumerate(states)]
    rows = module._board(planned)
    assert [row["state"] for row in rows[:4]] == ["training", "failed", "waiting", "done"]
    assert len(rows) == module.ROWS + 1 and rows[-1]["run"] == f"{module.ROWS + 2} of {len(planned)} runs"
    assert console.rich_table(rows, module._BOARD).row_count == len(rows)


def test_refused_combinations_are_named_and_the_others_train(tmp_path, capsys):
    command = ["sweep", str(tiny.written(tmp_path)), "--runs", str(tmp_path), "--set", "rounds=1", "--json", "--grid"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "method=ima,fedavg,fedbn"])
    out, err = capsys.readouterr()
    rows = {row["run"].partition("-")[0]: row for row in json.loads(out)}
    assert ended.value.code == 2 and "1 of 3 runs are whole" in err
    assert {name: row["state"] for name, row in rows.items()} == {
        "method=ima": "refused",
        "fedavg": "done",
        "fedbn": "failed",
    }
    assert "window is 5" in rows["method=ima"]["reason"] and "normalisation layers" in rows["fedbn"]["reason"]
    assert "method=ima is not trained: " in err


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_compare_names_each_refusal_in_one_line_and_trains_the_others(json_too, tmp_path, capsys):
    command = [
        "compare",
        str(tiny.written(tmp_path)),
        "--runs",
        str(tmp_path),
        "--set",
        "rounds=1",
        "--seeds",
        "3",
        "4",
    ]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--methods", "ima", "fedbn", "fedavg", *json_too])
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    for method, reason in (("ima", "window is 5"), ("fedbn", "normalisation layers")):
        (line,) = [line for line in err.splitlines() if line.startswith(f"{method} is not trained")]
        assert "3, 4" in line and reason in line
    if json_too:
        trained, *refused = json.loads(out)
        assert (trained["method"], trained["done"]) == ("fedavg", 1)
        assert [(row["method"], row["seeds"], bool(row["refused"])) for row in refused] == [
            ("ima", [3, 4], True),
            ("fedbn", [3, 4], True),
        ]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--methods", "ima"])
    assert ended.value.code == 2 and "fedscape: " in capsys.readouterr().err
