"""`runs` and `verify` take folders and lists; `runs` filters and sorts."""

import json
from pathlib import Path

import pytest
import tiny
from recordings import recorded

import drift
from figures import cli


@pytest.fixture
def fedscape(tmp_path, monkeypatch, capsys):
    """The command beside two folders of runs, with its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    tiny.trained(Path("one"), "seed=2")
    tiny.trained(Path("one"), "method=fedprox", "seed=3")
    tiny.trained(Path("two"), "seed=11", "rounds=1")
    recorded(Path("two/mine"), method="FedAvg")
    recorded(Path("two/mine"), rounds=4, method="FedAvg")

    def call(*tokens):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main(list(map(str, tokens)))
        told = capsys.readouterr()
        return stop.value.code, told.out, told.err

    return call


def test_folders_runs_and_names_are_listed_filtered_and_sorted(fedscape):
    def seeds(*tokens):
        status, out, err = fedscape("runs", *tokens, "--json")
        assert status == 0, err
        return [row["seed"] for row in json.loads(out)]

    assert seeds("one") == [2, 3] and sorted(map(str, seeds("one", "two"))) == ["11", "2", "3", "None"]
    assert seeds("one", "two", "--sort", "seed") == [2, 3, 11, None], "numbers, not texts; nothing comes last"
    assert seeds("one", "two", "--sort", "seed", "--descending") == [11, 3, 2, None]
    assert seeds("one", "two", "--where", "method=fedavg", "dataset=bl*", "--sort", "seed") == [2, 11]
    (name,) = (path.name for path in Path("one").iterdir() if path.name.startswith("fedprox"))
    assert seeds(Path("one") / name) == [3] and seeds(name, "--runs", "one") == [3]
    assert seeds("one", Path("one") / name) == [2, 3], "a run that is named twice is listed once"
    for tokens, said in (
        (("one", "--where", "metod=x"), "Did you mean 'method'"),
        (("one", "--where", "method"), "COLUMN=VALUE"),
        (("one", "--sort", "size"), "column"),
        (("one", "--descending"), "--sort"),
        (("nowhere",), "no run"),
    ):
        status, _, err = fedscape("runs", *tokens)
        assert status == 2 and said in err, (tokens, err)
    assert "no run with method=ima" in fedscape("runs", "one", "--where", "method=ima")[2]


def test_a_folder_is_verified_run_by_run(fedscape):
    status, out, _ = fedscape("verify", "one", "two")
    assert status == 0 and out.count("every file is whole") == 4
    damaged = next(path for path in Path("one").iterdir() if path.name.startswith("fedprox"))
    (damaged / "rounds/000001.safetensors").write_bytes(b"nothing")
    status, out, _ = fedscape("verify", "one", "two")
    assert status == 2 and out.count("every file is whole") == 3 and f"{damaged}: rounds/000001.safetensors" in out
    entries = json.loads(fedscape("verify", "one", "--json")[1])
    assert {entry["run"] for entry in entries} == {str(damaged)}
    (damaged / "run.json").unlink()
    assert f"{damaged}: run.json" in fedscape("verify", "one")[1], "a run that lost its description is not passed over"


def test_settings_of_a_recorded_run_are_not_those_of_a_default(fedscape):
    described = json.loads(fedscape("show", "two/mine", "--json")[1])
    assert described["partition"] == described["experiment"]["clients"]["partition"]["name"] == "not said"
    assert described["experiment"]["task"]["dataset"] == described["data"] == "not said"


def test_a_run_that_a_warning_stopped_says_so_and_why(fedscape):
    with pytest.warns(UserWarning, match="is stopped: loss is low"):
        run = drift.simulate(tiny.experiment("seed=5"), runs="one", stop=lambda index, numbers: "loss is low")
    name = run.folder.name
    assert "stopped" in (shown := fedscape("show", name, "--runs", "one")[1]) and "loss is low" in shown
    assert json.loads(fedscape("show", name, "--runs", "one", "--json")[1])["stopped"] == "loss is low"
    assert "stopped" not in fedscape("show", "two/mine")[1]
