"""Numbers of an analysis, written to a file for another program."""

from __future__ import annotations

import csv
import importlib
import json
import re
from functools import wraps

import numpy as np
import pytest
import tiny
import xarray as xr

import drift
from figures import cli


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


def call(*tokens: object) -> int:
    with pytest.raises(SystemExit) as stop:
        cli.main([str(token) for token in tokens])
    return int(stop.value.code or 0)


@pytest.mark.parametrize(
    ("words", "processes"),
    [
        (("--workers", 2), 2),
        ((), 1),
        (("--workers", 2, "--set", "workers=3"), 3),
        (("--cluster", "tcp://localhost:1"), 1),
    ],
)
def test_the_workers_train_again_what_an_analysis_repeats(words, processes, tmp_path, monkeypatch, capsys):
    """A cluster, which shares points alone, is not passed over in silence."""
    run, seen = tiny.trained(tmp_path, "rounds=1"), []
    module = importlib.import_module("drift.analyses.counterfactual.counterfactual")

    @wraps(module.counterfactual)
    def watched(run, **options):
        seen.append(options["workers"])
        return xr.Dataset()

    monkeypatch.setattr(module, "counterfactual", watched)
    assert call("analyse", "counterfactual", run.folder, *words) == 0
    assert seen == [processes]
    said = "counterfactual trains clients on this machine, by --set workers=N in N processes; the cluster shares points"
    assert (said in capsys.readouterr().err) == ("--cluster" in words)


@pytest.mark.parametrize("suffix", ["csv", "vtk", "ply", "nc"])
def test_a_plane_is_written_in_the_format_of_the_suffix(run, suffix, tmp_path, capsys):
    path = tmp_path / "new" / f"plane.{suffix}"
    assert call("analyse", "plane", run.folder, "--set", "points=5", "-o", path) == 0
    assert f"written to {path}" in capsys.readouterr().err.replace("\n", "")
    begins = {
        "csv": b"alpha,beta,mark,",
        "nc": b"\x89HDF\r\n",
        "vtk": b"# vtk DataFile Version 3.0\n",
        "ply": b"ply\nformat ascii 1.0\n",
    }
    assert path.read_bytes().startswith(begins[suffix])
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_a_series_is_written_as_a_table_and_is_no_surface(run, tmp_path, capsys):
    path = tmp_path / "coherence.csv"
    assert call("analyse", "coherence", run.folder, "--out", path) == 0
    lines = path.read_text().splitlines()
    rows = list(csv.DictReader(lines))
    result = drift.coherence(run)
    assert list(rows[0]) == ["round", *sorted(map(str, result.data_vars))]
    assert [row["round"] for row in rows] == ["0", "1", "2"]
    for name, values in result.data_vars.items():
        written = [float(row[str(name)] or "nan") for row in rows]
        np.testing.assert_array_equal(written, np.broadcast_to(values.values, 3))
    assert call("analyse", "coherence", run.folder, "--out", path, "--tidy") == 0
    rows = [row for row in csv.DictReader(path.read_text().splitlines()) if row["variable"] == "coherence"]
    assert [(int(row["round"]), float(row["value"])) for row in rows] == list(enumerate(result.coherence.values))
    assert call("analyse", "coherence", run.folder, "--out", path.with_suffix(".nc"), "--tidy") == 2
    assert "--tidy needs a .csv file" in capsys.readouterr().err
    assert call("analyse", "coherence", run.folder, "--out", path.with_suffix(".vtk")) == 2
    assert "export it as CSV" in capsys.readouterr().err
    assert not path.with_suffix(".vtk").exists()


@pytest.mark.parametrize(("suffix", "text"), [(".tex", "\\toprule"), (".md", "| --- |"), (".html", "<thead>")])
def test_a_result_is_written_as_a_table(run, tmp_path, suffix, text):
    path = tmp_path / f"coherence{suffix}"
    assert call("analyse", "coherence", run.folder, "--out", path) == 0
    assert text in path.read_text()


def test_a_suffix_that_is_not_known_is_refused_before_anything_is_computed(run, tmp_path, capsys):
    before = sorted((run.folder / "results").glob("*"))
    assert call("analyse", "locality", run.folder, "-o", tmp_path / "locality.obj") == 2
    assert "the suffix says the format: .csv, .nc, .vtk, .ply, .tex" in capsys.readouterr().err
    assert sorted((run.folder / "results").glob("*")) == before


@pytest.mark.parametrize("workers", [1, 2])
def test_rounds_of_runs_are_computed_one_by_one_and_stored_where_cached_finds_them(workers, tmp_path, capsys):
    first, second = (tiny.trained(tmp_path, f"seed={seed}") for seed in (1, 2))
    out = tmp_path / "out" / "{run}-{round}.csv"
    words = ("--rounds", "all", "--workers", workers, "-o", out, "--json")
    assert call("analyse", "client-losses", tmp_path, *words) == 0
    told = capsys.readouterr()
    rows = json.loads(told.out)
    assert [(row["run"], row["round"]) for row in rows] == [
        (run.name, index) for run in (first, second) for index in (0, 1, 2)
    ]
    assert "6 of 6 results are kept" in told.err
    for run in (first, second):
        assert len(list((run.folder / "results").glob("client_losses-*.nc"))) == 3
        stored = run.cached(drift.client_losses, round=1)
        xr.testing.assert_equal(stored, drift.client_losses(run, round=1))
        assert (out.parent / f"{run.name}-1.csv").read_text().startswith("client,")
    assert len(list(out.parent.iterdir())) == 6


def test_numbers_of_several_results_stand_in_a_table(run, capsys):
    assert call("analyse", "three-accuracies", run.folder, "--rounds", "0:1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["run", "round"] and len(lines) == 4
    assert [line.split()[1] for line in lines[2:]] == ["0", "1"]


def test_a_table_of_several_results_names_the_clients_that_were_excluded(run, tmp_path, capsys):
    diverged = tiny.trained(tmp_path, "rounds=1", "task.model=mlp", "local.lr=300", "local.epochs=2")
    excluded = ", ".join(map(str, diverged.round(0).extras["excluded"].tolist()))
    assert call("analyse", "update-norms", run.folder, diverged.folder) == 0
    assert excluded and f"round 0 of {diverged.name}: client {excluded}" in capsys.readouterr().out


def test_a_round_that_cannot_be_computed_stops_no_other(tmp_path, capsys):
    run = tiny.trained(tmp_path, "keep.clients=last 1")
    assert call("analyse", "client-losses", run.folder, "--rounds", "all") == 2
    told = capsys.readouterr()
    assert "1 of 3 results are kept" in told.err and told.out.count("kept no clients in round") == 2
    assert call("analyse", "client-losses", run.folder, "--rounds", "kept", "-1") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("coherence", "--rounds", "all"), "coherence is not an analysis of one round; leave --rounds out: it covers"),
        (("eigenvalues", "--rounds", "0"), r"choose its rounds by --set rounds=\[0,5\]"),
        (("client-losses", "--rounds", "x"), "--rounds x cannot be read; give all, kept"),
        (("client-losses", "--rounds", "9"), "has no round 9; it has 0 to 2"),
        (
            ("client-losses", "--rounds", "7:"),
            r"--rounds 7: chooses no round of .*; it has 0 to 2, and client models of",
        ),
        (("client-losses", "--rounds", "0", "1", "--set", "round=0"), "both --rounds and --set round"),
        (("client-losses", "--rounds", "0", "1", "-o", "a.csv"), r"name it by \{round\}: a-\{round\}\.csv"),
    ],
)
def test_rounds_that_make_no_sense_are_refused_in_a_line(run, words, message, capsys):
    name, *rest = words
    assert call("analyse", name, run.folder, *rest) == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))
