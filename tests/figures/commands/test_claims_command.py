"""fedscape claims: the table, the JSON, and what bad input gets."""

import json

import pytest

from figures import cli
from tests.tiny import trained


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
    assert "supported" in row
    assert "points" in row
    assert row.rstrip().endswith("3")
    assert "not testable with these runs: fedeve-gain-heterogeneity, " in out


def test_json_says_what_is_measured_and_why_not(folder, capsys):
    assert call("claims", folder, "--paper", "fedeve", "--json") == 0
    found = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["fedeve-accuracy"]["seeds"] == [1, 2, 3]
    assert found["fedeve-accuracy"]["low"] <= found["fedeve-accuracy"]["effect"] <= found["fedeve-accuracy"]["high"]
    assert "concentration" in found["fedeve-gain-heterogeneity"]["reason"]
    assert found["fedeve-gain-heterogeneity"]["effect"] is None


def test_an_unknown_paper_is_one_line(folder, capsys):
    assert call("claims", folder, "--paper", "fedprox") == 2
    assert capsys.readouterr().err.strip() == (
        "fedscape: no paper named 'fedprox'. Known: fedeve, fedlaw, ima, lss. To list them: fedscape list papers."
    )
