"""The table of runs: what it says, that it follows the folders, and how runs are found."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import tiny

from drift.runs import run_summary
from drift.simulation.run_index import find, index
from figures.commands.runs import runs
from landscape import plugins


@pytest.fixture(autouse=True)
def own_secret(tmp_path_factory, monkeypatch):
    """A cache folder of this test alone, where the secret that rows are signed with lies."""
    monkeypatch.setenv("FEDSCAPE_CACHE", str(tmp_path_factory.mktemp("cache")))


def test_a_row_says_what_the_run_is(tmp_path):
    run = tiny.trained(tmp_path)
    (row,) = index(tmp_path)
    expected = {"name": run.name, "folder": str(run.folder), "method": "fedavg", "dataset": "blobs", "model": "linear"}
    assert expected.items() <= row.items()
    assert (row["partition"], row["seed"], row["done"], row["rounds"]) == ("dirichlet", 5, 3, 3)
    assert row["accuracy"] == run.round(-1).metrics["accuracy"]
    assert row["problem"] is None


def test_unchanged_folders_are_not_read_again(tmp_path, monkeypatch):
    tiny.trained(tmp_path)
    first = index(tmp_path)
    monkeypatch.setattr(run_summary, "is_whole", lambda path: pytest.fail(f"{path} was read again"))
    assert index(tmp_path) == first


def test_new_and_deleted_runs_are_seen(tmp_path):
    first, second = tiny.trained(tmp_path), tiny.trained(tmp_path, "seed=6")
    assert [row["seed"] for row in index(tmp_path)] == [5, 6] or {row["seed"] for row in index(tmp_path)} == {5, 6}
    for path in sorted(first.folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    first.folder.rmdir()
    assert [row["name"] for row in index(tmp_path)] == [second.name]


@pytest.mark.parametrize("content", [b"", b"no database at all, but long enough to be read as one" * 40, None])
def test_a_lost_or_damaged_table_is_made_anew(tmp_path, content):
    tiny.trained(tmp_path)
    rows = index(tmp_path)
    path = tmp_path / "index.sqlite"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert index(tmp_path) == rows
    with sqlite3.connect(path) as base:
        assert base.execute("SELECT count(*) FROM fedscape_2").fetchone() == (1,)
    base.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_listed(tmp_path):
    tiny.trained(tmp_path)
    tmp_path.chmod(0o500)
    try:
        assert len(index(tmp_path)) == 1
    finally:
        tmp_path.chmod(0o700)


def test_a_table_that_cannot_be_opened_does_not_matter(tmp_path):
    tiny.trained(tmp_path)
    (tmp_path / "index.sqlite").mkdir()
    assert len(index(tmp_path)) == 1


def test_a_damaged_run_is_listed_with_its_problem(tmp_path):
    run = tiny.trained(tmp_path)
    path = run.folder / "run.json"
    path.write_bytes(path.read_bytes()[:50])
    (row,) = index(tmp_path)
    assert "run.json cannot be read" in row["problem"]
    assert row["name"] == run.name


def test_a_run_whose_name_is_no_text_is_named_and_the_others_are_remembered(tmp_path, monkeypatch, capsys):
    run = tiny.trained(tmp_path)
    try:
        shutil.copytree(run.folder, tmp_path / os.fsdecode(b"again-\xff-\xc3\xa9"))
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    strange, plain = index(tmp_path)
    assert (strange["name"], plain["name"]) == ("again-\\xff-\N{LATIN SMALL LETTER E WITH ACUTE}", run.name)
    assert "not valid UTF-8; rename the folder" in strange["problem"]
    assert (Path(strange["folder"]) / "run.json").is_file()
    assert plain["problem"] is None
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as base:
        assert base.execute("SELECT name FROM fedscape_2").fetchall() == [(run.name,)]
    monkeypatch.setattr(run_summary, "is_whole", lambda path: pytest.fail(f"{path} was read again"))
    assert index(tmp_path) == [strange, plain]
    for json in (False, True):
        runs(runs=tmp_path, json=json)
    output = capsys.readouterr()
    assert strange["name"] in output.err
    assert output.out.count(run.name) >= 2


@pytest.mark.parametrize("name", ["blobs", "fedavg", "dirichlet", "linear"])
def test_a_row_counts_only_while_its_settings_are_accepted(name, tmp_path, monkeypatch):
    """The names that settings use are looked up for every run, also where the table knows it."""
    tiny.trained(tmp_path)
    assert index(tmp_path)[0]["problem"] is None
    names = plugins.names
    for module in (plugins, plugins.folders):
        monkeypatch.setattr(module, "names", lambda package: [one for one in names(package) if one != name])
    assert f"named '{name}'" in index(tmp_path)[0]["problem"]


def test_no_runs_give_no_rows_and_no_file(tmp_path):
    assert index(tmp_path / "nowhere") == []
    assert not (tmp_path / "nowhere").exists()


def test_a_run_is_found_by_path_name_and_beginning(tmp_path):
    run = tiny.trained(tmp_path)
    for text in (str(run.folder), run.name, "fedavg", run.name[:-1]):
        assert find(tmp_path, text).resolve() == run.folder.resolve()


def test_an_ambiguous_beginning_lists_the_candidates(tmp_path):
    names = sorted(tiny.trained(tmp_path, f"seed={seed}").name for seed in (1, 2))
    with pytest.raises(LookupError, match="begins the names of 2 runs") as told:
        find(tmp_path, "fedavg")
    assert all(name in str(told.value) for name in names)


def test_what_is_not_found_is_said(tmp_path):
    with pytest.raises(LookupError, match="has no runs"):
        find(tmp_path, "fedavg")
    name = tiny.trained(tmp_path).name
    with pytest.raises(LookupError, match=f"Did you mean '{name}'"):
        find(tmp_path, name.replace("blobs", "blops"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(LookupError, match=r"is no run: it has no run\.json"):
        find(tmp_path, str(tmp_path / "folder"))
