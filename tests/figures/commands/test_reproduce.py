"""fedscape reproduce says which claims the files of runs have no number for."""

from __future__ import annotations

import json

import tiny

PLAN = """processor = "any"

[[items]]
name = "tiny-ima"
paper = "ima"
item = "Fig. 5b"
value = 1
experiment = "{experiment}"
set = ["rounds=6"]
reason = "six rounds, for a test"
claims = ["ima-between-globals"]
rows = [{{ set = ["method=fedavg"], seeds = 1, minutes = 6 }}]
"""


def test_a_file_with_missing_values_is_named_in_the_list_and_measured_again(fedscape, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.format(experiment=tiny.written(tmp_path)))
    for folder in ("files", "runs"):
        (tmp_path / folder).mkdir()
    words = ("reproduce", "--plan", "plan.toml", "--files", "files", "--runs", "runs")
    assert fedscape(*words)[0] == 0
    (path,) = (tmp_path / "files").glob("*.json")
    whole = json.loads(path.read_text())
    spoilt = json.loads(path.read_text())
    for result in spoilt["results"].values():
        values = result["variables"]["loss"]["values"]
        result["variables"]["loss"]["values"] = [None] * len(values)
    path.write_text(json.dumps(spoilt))
    code, out, _ = fedscape(*words, "--list", "--json")
    (row,) = json.loads(out)
    assert (code, row["runs"], row["hours"], row["lacking"]) == (0, "0 of 1", 0.1, "ima-between-globals")
    code, out, told = fedscape(*words, "--list")
    assert "ima-between-globals" in out
    code, out, told = fedscape(*words)
    said = " ".join((out + told).split())
    assert code == 0 and "files of 1 runs have no number for ima-between-globals" in said
    assert json.loads(path.read_text())["results"] == whole["results"]
    code, out, told = fedscape(*words)
    assert code == 0 and "all 1 runs of the plan are recorded" in " ".join((out + told).split())
