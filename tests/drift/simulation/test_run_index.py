"""The table of runs: what it says, that it follows the folders, and how runs are found."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import tiny

from drift.runs import run_summary
from drift.simulation.run_index import find, index
from figures.commands.runs import runs
from landscape import plugins


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """A cache folder of this test alone, where the table lies."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("FEDSCAPE_CACHE", str(folder))
    return folder


def _table(cache):
    (path,) = (cache / "runs").iterdir()
    return path


def _remembered(cache):
    return [*json.loads(_table(cache).read_text().partition("\n")[2])]


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
    monkeypatch.setattr(run_summary, "is_intact", lambda path: pytest.fail(f"{path} was read again"))
    assert index(tmp_path) == first


def test_new_and_deleted_runs_are_seen(tmp_path):
    first, second = tiny.trained(tmp_path), tiny.trained(tmp_path, "seed=6")
    assert [row["seed"] for row in index(tmp_path)] == [5, 6] or {row["seed"] for row in index(tmp_path)} == {5, 6}
    for path in sorted(first.folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    first.folder.rmdir()
    assert [row["name"] for row in index(tmp_path)] == [second.name]


@pytest.mark.parametrize("damage", ["cut", "flipped", "no text", "accuracy", "empty", "folder"])
def test_a_lost_or_damaged_table_is_made_anew(tmp_path, cache, damage):
    tiny.trained(tmp_path)
    rows = index(tmp_path)
    path = _table(cache)
    whole = path.read_bytes()
    contents = {
        "cut": whole[:-9],
        "flipped": whole[:200] + bytes([whole[200] ^ 1]) + whole[201:],
        "no text": b"\xff" * 300,
        "accuracy": re.sub(rb'"accuracy": [0-9.]+', b'"accuracy": 0.999', whole),
        "empty": b"",
    }
    path.unlink()
    if damage == "folder":
        path.mkdir()
    else:
        assert contents[damage] != whole
        path.write_bytes(contents[damage])
    assert index(tmp_path) == rows
    assert damage == "folder" or path.read_bytes() == whole


@pytest.mark.parametrize("place", ["a file", "/proc/nowhere"])
def test_without_a_cache_that_can_be_written_the_rows_are_the_same(tmp_path, monkeypatch, place):
    tiny.trained(tmp_path / "runs")
    rows = index(tmp_path / "runs")
    (tmp_path / "a file").write_text("no folder")
    monkeypatch.setenv("FEDSCAPE_CACHE", str(tmp_path / place))
    assert index(tmp_path / "runs") == rows == index(tmp_path / "runs")


def test_nothing_is_written_beside_the_runs(tmp_path):
    run = tiny.trained(tmp_path)
    index(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [run.name]


def test_a_damaged_run_is_listed_with_its_problem(tmp_path):
    run = tiny.trained(tmp_path)
    path = run.folder / "run.json"
    path.write_bytes(path.read_bytes()[:50])
    (row,) = index(tmp_path)
    assert "run.json cannot be read" in row["problem"]
    assert row["name"] == run.name


@pytest.mark.parametrize("name", ["run.json", "state.safetensors", "rounds/000002.safetensors"])
def test_a_file_that_was_changed_behind_the_same_size_and_time_is_read_again(tmp_path, name):
    run = tiny.trained(tmp_path)
    index(tmp_path)
    path = run.folder / name
    fact, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(fact.st_atime_ns, fact.st_mtime_ns))
    assert (path.stat().st_mtime_ns, path.stat().st_size) == (fact.st_mtime_ns, fact.st_size)
    assert index(tmp_path)[0]["problem"]


def test_a_damaged_run_is_read_again_every_time(tmp_path, cache):
    run = tiny.trained(tmp_path)
    index(tmp_path)
    path = run.folder / "state.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    for _ in range(2):
        assert "altered" in index(tmp_path)[0]["problem"]
        assert _remembered(cache) == []


def test_a_run_whose_name_is_no_text_is_named_and_the_others_are_remembered(tmp_path, cache, monkeypatch, capsys):
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
    assert _remembered(cache) == [run.name]
    monkeypatch.setattr(run_summary, "is_intact", lambda path: pytest.fail(f"{path} was read again"))
    assert index(tmp_path) == [strange, plain]
    for as_json in (False, True):
        runs(runs=tmp_path, json=as_json)
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
    with pytest.raises(LookupError, match=r"is not a run: it has no run\.json"):
        find(tmp_path, str(tmp_path / "folder"))
