"""The table of runs: settings that differ are columns, texts of runs are escaped, rounds are not read."""

from datetime import datetime

import numpy as np
import tiny

from drift.record.recorder import Recorder
from figures.axes.units import ABSENT
from figures.explore.record.run_rows import COLUMNS, run_row, table, what_differs
from figures.explore.record.run_table import changed_rows
from figures.explore.shell.html_table import rounded
from figures.explore.work.open_runs import OpenRuns
from figures.page.tables import configuration
from figures.selection.groups import groups


def test_rows_have_settings_and_last_numbers_without_reading_rounds(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2")
    other = tiny.trained(tmp_path, "rounds=2", "method=fedprox", "local.lr=0.1", "seed=6")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{}")
    runs = OpenRuns([tmp_path])
    rows = {name: run_row(runs, name) for name in runs.names}
    assert runs.described(run.name).rounds() == []
    row = rows[run.name]
    assert (row["method"], row["seed"], row["done"], row["rounds"]) == ("FedAvg", 5, 2, 2)
    written = (run.folder / "state.safetensors").stat().st_mtime
    assert row["updated"] == f"{datetime.fromtimestamp(written):%Y-%m-%d %H:%M:%S}"
    assert row["loss"] == run.metrics().loss.values[-1] and row["problem"] == ""
    assert set(rows["broken"]) == {"problem"}
    frame = table(rows)
    assert list(frame.columns) == [*COLUMNS, "local.lr"]
    assert frame.loc[other.name, "local.lr"] == "0.1" and np.isnan(frame.loc["broken", "loss"])


def test_only_rows_of_runs_that_changed_are_read_again(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2")
    runs = OpenRuns([tmp_path])
    fresh = changed_rows(runs, {})
    stamps = {name: stamp for name, (stamp, _) in fresh.items()}
    assert list(fresh) == [run.name] and changed_rows(runs, stamps) == {}
    (run.folder / "state.safetensors").touch()
    runs.poll()
    assert list(changed_rows(runs, stamps)) == [run.name]


def test_what_differs_is_a_table_with_a_column_per_group(tmp_path):
    tiny.trained(tmp_path, "rounds=2", "method=fedprox", "method.mu=0.5")
    tiny.trained(tmp_path, "rounds=2", "local.lr=0.1", "seed=6")
    runs = OpenRuns([tmp_path])
    recorded = [runs.recorded(name) for name in runs.names]
    text = what_differs(recorded)
    assert "local.lr" in text and "<td>0.05</td>" in text and "FedAvg, seed 6" in text
    assert text.index("method.mu") > text.index("settings that only some methods have")
    assert what_differs(recorded[:1]) == ""
    tiny.trained(tmp_path, "rounds=2", "local.lr=0.1", "seed=7")
    runs.poll()
    assert "differ in their seed only" in what_differs([runs.recorded(name) for name in runs.names if "fedavg" in name])


def test_texts_of_runs_are_escaped(tmp_path):
    for name in ("<img src=x onerror=alert(1)>", "<b>bold</b>"):
        recorder = Recorder(tmp_path / f"run{len(name)}", method=name, data="<i>")
        recorder.round(start={"w": np.zeros(2)}, clients={0: ({"w": np.ones(2)}, 3)}, end={"w": np.ones(2)})
    runs = OpenRuns([tmp_path])
    text = what_differs([runs.recorded(name) for name in runs.names])
    assert "<img" not in text and "<b>" not in text and "&lt;b&gt;bold" in text


def test_a_recorded_run_has_no_settings_that_it_does_not_state(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2", "local.lr=0.01", "local.epochs=5")
    tiny.trained(tmp_path, "rounds=2", "local.lr=0.1")
    recorder = Recorder(tmp_path / "mine", method="FedNova", seed=3, settings={"tau": 2})
    recorder.round(start={"w": np.zeros(2)}, clients={0: ({"w": np.ones(2)}, 3)}, end={"w": np.ones(2)})
    runs = OpenRuns([tmp_path])
    rows = {name: run_row(runs, name) for name in runs.names}
    assert [name for name in rows["mine"] if name.startswith(("local.", "clients.weighting", "evaluate"))] == []
    frame = table(rows)
    assert frame.loc[run.name, "local.lr"] == "0.01" and frame.loc["mine", "local.lr"] == ""
    recorded = [runs.recorded(name) for name in runs.names]
    columns = [row for row in what_differs(recorded).split("<tr>") if "local.lr<" in row]
    assert len(columns) == 1 and columns[0].count(f"<td>{ABSENT}</td>") == 1
    rows = dict(configuration(groups(recorded))["differing"]["rows"])
    assert sorted(rows["local.lr"]) == sorted(["0.01", "0.1", ""])


def test_small_numbers_of_a_table_are_no_zeros():
    assert rounded(np.array([9.19e-06, 0.383214, np.nan]))[:2] == [9.19e-06, 0.3832]
    assert rounded(np.array([3.0, 12.0])) == [3, 12]
