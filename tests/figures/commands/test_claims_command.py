"""fedscape claims: the table, the JSON, and what bad input gets."""

import json

import pytest

from figures import cli
from tests.tiny import trained, written


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    for seed in (1, 2, 3):
        for method in ("fedavg", "fedeve"):
            trained(place, f"seed={seed}", f"method={method}", "rounds=2")
    return place


def call(*tokens: object) -> int:
    with pytest.raises(SystemExit) as stop:
        cli.main([str(token) for token in tokens])
    return int(stop.value.code or 0)


def test_a_table_of_verdicts_and_the_claims_that_lack_runs(folder, capsys):
    assert call("claims", folder, "--paper", "fedeve") == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.strip().startswith("fedeve-accuracy"))
    assert "agrees" in row or "differs" in row or "equivalent" in row or "too few" in row
    assert "points" in row
    assert row.rstrip().endswith("3")
    assert "not tested with these runs: fedeve-over-momentum, " in out


def test_json_says_what_is_measured_and_why_not(folder, capsys):
    assert call("claims", folder, "--paper", "fedeve", "--json") == 0
    found = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["fedeve-accuracy"]["seeds"] == [1, 2, 3]
    assert found["fedeve-accuracy"]["low"] <= found["fedeve-accuracy"]["effect"] <= found["fedeve-accuracy"]["high"]
    assert "concentration" in found["fedeve-gain-heterogeneity"]["reason"]
    assert found["fedeve-gain-heterogeneity"]["effect"] is None


def test_the_files_of_a_campaign_stand_for_its_runs(tmp_path, capsys):
    plan = """
processor = "any"
[[items]]
name = "table"
paper = "fedeve"
item = "Table 1"
value = 1
experiment = "TINY"
claims = ["fedeve-accuracy"]
rows = [
    { set = ["method=fedavg"], seeds = 3, minutes = 1 },
    { set = ["method=fedeve"], seeds = 3, minutes = 1 },
]
"""
    path = tmp_path / "plan.toml"
    path.write_text(plan.replace("TINY", str(written(tmp_path))))
    files = tmp_path / "files"
    files.mkdir()
    assert call("reproduce", "--plan", path, "--files", files, "--runs", tmp_path / "runs") == 0
    capsys.readouterr()
    assert call("reproduce", "--plan", path, "--files", files, "--runs", tmp_path / "runs") == 0
    assert f"all 6 runs of the plan are recorded in {files}." in "".join(capsys.readouterr())
    assert call("claims", "--files", files, "--plan", path, "--paper", "fedeve", "--json") == 0
    found = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["fedeve-accuracy"]["seeds"] == [0, 1, 2]
    assert found["fedeve-accuracy"]["setting"] == "table"
    assert found["fedeve-accuracy"]["picture"] == "accuracy-table"
    assert (found["fedeve-accuracy"]["added"], found["fedeve-accuracy"]["same_setting"]) == ([], "-"), (
        "a plan of one's own"
    )
    assert found["fedeve-momentum"]["verdict"] == "not tested"
    assert call("claims", "--files", files, "--plan", path) == 0
    out = capsys.readouterr().out
    assert "table" in next(line for line in out.splitlines() if line.strip().startswith("fedeve-accuracy"))
    assert found["fedeve-accuracy"]["repeat"] == "fedscape reproduce --item table --files again"
    assert found["fedeve-momentum"]["repeat"] == ""
    assert "Effect: " not in out
    assert call("claims", "--files", files, "--plan", path, "--claim", "fedeve-accuracy") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "FedEve, Table 1: FedEve is more accurate than FedAvg. Effect: accuracy of the last 10 evaluated" in out
    assert out.endswith("minus FedAvg. fedscape reproduce --item table --files again")
    (lost,) = files.glob("fedeve-*-s1-*.json")
    lost.write_text(json.dumps({**json.loads(lost.read_text()), "diverged": True}))
    assert call("claims", "--files", files, "--plan", path, "--claim", "fedeve-accuracy") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "too few, fewer than 3 seeds" in out
    assert out.endswith("fedeve-accuracy, table: seed 1: fedeve diverged after round 2.")
    assert call("claims", "--files", files, "--plan", path, "--claim", "fedeve-accuracy", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["seeds"], row["reason"]) == ([0, 2], "seed 1: fedeve diverged after round 2")


@pytest.mark.parametrize("asked", [("--paper", "cross"), ("--claim", "cross-fedeve-accuracy")])
def test_questions_across_the_papers_are_those_of_files(folder, asked, capsys):
    assert call("claims", folder, *asked) == 2
    assert "questions across the papers need the files of a campaign: --files FOLDER." in capsys.readouterr().err


def test_the_rows_of_one_claim_keep_the_adjustment_of_all(folder, capsys):
    assert call("claims", folder, "--paper", "fedeve", "--json") == 0
    every = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert call("claims", folder, "--paper", "fedeve", "--claim", "fedeve-accuracy", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == every["fedeve-accuracy"]
    assert row["repeat"] == "", "no plan has these runs"
    assert call("claims", folder, "--paper", "fedeve", "--claim", "fedeve-accurate") == 2
    assert "no claim named 'fedeve-accurate'" in capsys.readouterr().err


@pytest.mark.parametrize("tokens", [[], ["RUN", "--files", "."]])
def test_runs_or_files_have_to_be_named(tokens, capsys):
    assert call("claims", *tokens) == 2
    assert "name runs, or a campaign's folder by --files FOLDER." in capsys.readouterr().err


def test_an_unknown_paper_is_one_line(folder, capsys):
    assert call("claims", folder, "--paper", "fedprox") == 2
    assert capsys.readouterr().err.strip() == (
        "fedscape: no paper named 'fedprox'. Known: fedeve, fedlaw, ima, lss. To list them: fedscape list papers."
    )


def test_a_folder_without_files_of_runs_is_refused(tmp_path, capsys):
    for folder in (tmp_path, tmp_path / "absent"):
        assert call("claims", "--files", folder) == 2
        assert "there is no file of a run in" in capsys.readouterr().err


def test_reproduce_takes_items_by_name(capsys):
    assert call("reproduce", "--list", "--item", "fedeve-fig4-mnist", "--json") == 0
    assert [row["item"] for row in json.loads(capsys.readouterr().out)] == ["fedeve-fig4-mnist"]
    assert call("reproduce", "--list", "--item", "fedeve-fig4") == 2
    assert "fedeve-fig4-mnist" in capsys.readouterr().err
