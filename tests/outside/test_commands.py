"""Commands take plug-ins outside the package by every way of naming, and run none unasked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import tiny
from kinds import one_of_each
from outside_plugins import NAMES, PLURAL, ROOT, SETTINGS, WAYS, called, recorded

from drift.plugins import trust
from landscape.results import netcdf_files

pytestmark = pytest.mark.usefixtures("not_laid_out")


@pytest.mark.parametrize(
    ("kind", "way"),
    one_of_each(product(SETTINGS, WAYS), [(kind, "file") for kind in SETTINGS]),
)
def test_the_command_line_trains_shows_draws_and_refuses(elsewhere, fedscape, kind, way):
    text = recorded(elsewhere, kind, way)
    code, out, err = fedscape("train", "tiny.toml", "--set", f"{SETTINGS[kind]}={called(kind, way)}")
    assert code == 0 and f"--trust {text}" in err
    folder = out.strip()
    code, out, err = fedscape("runs")
    assert code == 0 and not err and Path(folder).name in out, err
    code, out, err = fedscape("runs", "--json", "--trust", text)
    assert code == 0 and json.loads(out)[0]["problem"] is None
    code, out, _ = fedscape("show", folder, "--trust", text)
    assert code == 0 and NAMES[kind] in out
    draw = ("figures", "draw", "planes-random", folder, "--set", "points=3")
    (elsewhere / "ran").unlink()
    code, _, err = fedscape(*draw)
    last = err.strip().splitlines()[-1]
    assert not (elsewhere / "ran").exists(), err
    if kind == "method":  # a plane of stored models runs no method
        assert code == 0, err
    else:
        assert code == 2 and f"--trust {text}" in last, err
    assert fedscape(*draw, "--trust", text)[0] == 0


@pytest.mark.slow
def test_a_fresh_process_opens_and_reports_them_all(elsewhere):
    texts = []
    for kind, way in zip(SETTINGS, ("file", "module") * 2, strict=True):  # an entry point is recorded as what it names
        tiny.trained(Path("runs"), f"{SETTINGS[kind]}={called(kind, way)}", "rounds=1")
        texts += ["--trust", recorded(elsewhere, kind, way)]
    known = {"PYTHONPATH": f"{ROOT}{os.pathsep}{elsewhere}", trust.TRUSTED: "", "MPLBACKEND": "Agg"}
    command = [sys.executable, "-m", "figures.cli", "publish", "runs", *texts]
    done = subprocess.run(command, env=os.environ | known, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "left out" not in done.stderr, done.stderr
    page = Path("report.html").read_text()
    assert all(folder.name in page for folder in Path("runs").glob("*-*"))


@pytest.mark.parametrize("way", WAYS)
def test_a_figure_is_drawn_by_its_name_and_its_file_says_whose_it_is(elsewhere, fedscape, way):
    from figures.gallery import load

    run = tiny.trained(Path("runs"))
    with pytest.raises(ValueError, match="code that is not part of fedscape"):
        load(called("figure", way))
    assert not (elsewhere / "ran").exists()
    code, _, err = fedscape("figures", "draw", called("figure", way), run.folder)
    assert code == 0, err
    stem = "my-figure" if way == "entry point" else "Lengths"
    ds = netcdf_files.load(Path(f"out/figures/{stem}.nc"))
    assert ds.attrs["figure"] == recorded(elsewhere, "figure", way).removeprefix(f"{elsewhere}/")
    assert len(ds.attrs["source_digest"]) == 16


@pytest.mark.parametrize("way", WAYS)
def test_an_analysis_is_computed_and_stored_by_its_name(elsewhere, fedscape, way):
    run = tiny.trained(Path("runs"))
    code, out, err = fedscape("analyse", called("analysis", way), run.folder, "--set", "metric=mine", "--json")
    assert code == 0, err
    assert json.loads(out)["data_vars"]["metric"]["data"] == "mine"
    assert [path.name.partition("-")[0] for path in (run.folder / "results").glob("*.nc")] == ["longest"]
    code, _, err = fedscape("analyse", called("analysis", way), run.folder, "--set", "metrik=mine")
    assert code == 2 and "metric" in err


def test_entry_points_of_every_kind_are_listed_and_imported_by_none(elsewhere, fedscape):
    for kind in SETTINGS | {"analysis": ""}:
        code, out, _ = fedscape("list", PLURAL.get(kind, f"{kind}s"), "--json")
        assert code == 0 and f"my-{kind}" in [row["name"] for row in json.loads(out)]
    assert "my-figure" in fedscape("figures", "list", "--json")[1]
    assert not (elsewhere / "ran").exists()
    code, _, err = fedscape("analyse", "my-analysys", "RUN")
    assert code == 2 and "Did you mean 'my-analysis'?" in err


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_file_of_settings_names_no_code_that_is_run_unasked(elsewhere, fedscape, kind, way):
    table = {"method": "method", "partition": "clients", "dataset": "task", "model": "task"}[kind]
    inner = f'name = "{called(kind, way)}"' if kind == "method" else f'{kind} = "{called(kind, way)}"'
    Path("theirs.toml").write_text(f'extends = "tiny.toml"\n[{table}]\n{inner}\n')
    code, _, err = fedscape("train", "theirs.toml")
    assert code == 2 and len(err.strip().splitlines()) == 1, err
    assert f"--trust {recorded(elsewhere, kind, way)}" in err
    assert not (elsewhere / "ran").exists() and not Path("runs").exists()
    code, _, err = fedscape("train", "theirs.toml", "--trust", recorded(elsewhere, kind, way))
    assert code == 0, err
