"""A table of runs that a stranger forged: the rows are those of the folders, at once, and a sound table replaces it."""

import json
import os
import sqlite3
import time
from contextlib import closing

import pytest
import tiny

from drift.simulation import run_index as module
from drift.simulation.run_index import index
from figures.cli import main

COLUMNS = "name TEXT PRIMARY KEY, stamp TEXT NOT NULL, content TEXT NOT NULL, digest TEXT NOT NULL"
TABLE = f"CREATE TABLE fedscape_2 ({COLUMNS})"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i, i, i FROM n"
VIEW = f"CREATE VIEW fedscape_2 (name, stamp, content, digest) AS {ENDLESS}"


def _based(path, *commands, rows=()):
    """A database of these commands and rows."""
    path.unlink()
    with closing(sqlite3.connect(path)) as base, base:
        for command in commands:
            base.execute(command)
        if rows:
            base.executemany("INSERT INTO fedscape_2 VALUES (?, ?, ?, ?)", rows)


def _rows(path):
    with closing(sqlite3.connect(path)) as base:
        return base.execute("SELECT name, stamp, content, digest FROM fedscape_2").fetchall()


STRANGER = b"a secret of somebody else, which is as long"


def _forged(path, **changes):
    """The table's rows with changed content, and a digest as a stranger can give it."""
    rows = []
    for name, stamp, content, _ in _rows(path):
        text = json.dumps({**json.loads(content), **changes})
        rows.append((name, stamp, text, module._digest(STRANGER, name, stamp, text)))
    _based(path, TABLE, rows=rows)


def _rewritten_schema(path, sql):
    """The table with other words in its schema, as `PRAGMA writable_schema` allows."""
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("PRAGMA writable_schema = ON")
        base.execute("UPDATE sqlite_master SET sql = ? WHERE type = 'table'", (sql,))


def _huge(path):
    rows = [(name, stamp, "x" * 50_000_000, digest) for name, stamp, _, digest in _rows(path)]
    _based(path, TABLE, rows=rows)


def _folder(path):
    path.unlink()
    path.mkdir()


def _linked(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


NO_INSERT = TABLE.replace("digest TEXT NOT NULL", "digest TEXT GENERATED ALWAYS AS (zeroblob(10)) STORED")
FORGERIES = {
    "endless view": lambda path: _based(path, VIEW),
    "endless view beside": lambda path: _based(path, TABLE, f"CREATE VIEW other AS {ENDLESS}"),
    "trigger": lambda path: _based(
        path, TABLE, "CREATE TRIGGER t AFTER DELETE ON fedscape_2 BEGIN INSERT INTO fedscape_2 VALUES (1, 2, 3, 4); END"
    ),
    "accuracy": lambda path: _forged(path, accuracy=0.999),
    "method": lambda path: _forged(path, method="\x1b[31mfedbest"),
    "every field": lambda path: _forged(
        path, name="x", dataset="x", model="x", partition="x", seed=9, done=9, rounds=9
    ),
    "further field": lambda path: _forged(path, more=1),
    "problem": lambda path: _forged(path, problem="all of it"),
    "wrong schema": lambda path: _based(path, "CREATE TABLE fedscape_2 (a, b, c, d)"),
    "computed column": lambda path: _based(path, NO_INSERT),
    "without a key": lambda path: _based(path, TABLE.replace(" PRIMARY KEY", "")),
    "forged schema": lambda path: _rewritten_schema(path, VIEW),
    "long schema": lambda path: _rewritten_schema(path, TABLE + " -- " + "x" * 1_000_000),
    "numbers": lambda path: _based(path, TABLE, rows=[(name, b"\xff", b"\xff", 5) for name, *_ in _rows(path)]),
    "huge text": _huge,
    "folder": _folder,
    "link": _linked,
    "no database": lambda path: path.write_bytes(b"SQLite format 3\0" + b"\xff" * 10_000),
}


@pytest.fixture(autouse=True)
def own_secret(tmp_path_factory, monkeypatch):
    """A cache folder of this test alone, where the secret that rows are signed with lies."""
    monkeypatch.setenv("FEDSCAPE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    tiny.trained(folder)
    tiny.trained(folder, "seed=6")
    return folder


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_rows_are_those_of_the_folders(trained, forge):
    path = trained / "index.sqlite"
    if path.is_dir():
        path.rmdir()
    expected = index(trained)
    sound = path.read_bytes()
    forge(path)
    begun = time.perf_counter()
    assert index(trained) == expected
    assert time.perf_counter() - begun < 10
    if not path.is_dir():
        assert not path.is_symlink()
        assert path.read_bytes() == sound


def test_a_lookup_that_does_not_end_is_given_up(trained, monkeypatch):
    with closing(sqlite3.connect(":memory:")) as base, pytest.raises(sqlite3.OperationalError, match="interrupted"):
        list(module._query(base, ENDLESS))


def test_a_linked_table_is_not_written_through(trained):
    path, precious = trained / "index.sqlite", trained / "precious"
    precious.write_bytes(b"precious")
    path.unlink()
    path.symlink_to(precious)
    index(trained)
    assert precious.read_bytes() == b"precious"


def test_the_command_line_lists_runs_beside_an_endless_view(trained, capsys):
    index(trained)
    FORGERIES["endless view"](trained / "index.sqlite")
    with pytest.raises(SystemExit) as told:
        main(["runs", "--runs", str(trained)])
    assert told.value.code in (0, None)
    assert "fedavg-blobs" in capsys.readouterr().out


def test_a_row_of_a_damaged_run_is_not_believed(tmp_path):
    run = tiny.trained(tmp_path)
    (sound,) = index(tmp_path)
    path = run.folder / "state.safetensors"
    fact, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    (row,) = index(tmp_path)
    assert "altered" in row["problem"]
    assert not _rows(tmp_path / "index.sqlite"), "what is damaged is read again every time"
    name, stamp = run.name, f"{module._stamp(str(run.folder))}; {module._last_stamp(str(run.folder), 3)}"
    text = json.dumps({**{key: value for key, value in sound.items() if key != "folder"}, "accuracy": 1.0})
    _based(tmp_path / "index.sqlite", TABLE, rows=[(name, stamp, text, module._digest(STRANGER, name, stamp, text))])
    assert index(tmp_path) == [row]
    assert fact.st_size == path.stat().st_size


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


def test_rows_of_another_user_are_not_believed(tmp_path, monkeypatch):
    tiny.trained(tmp_path / "runs")
    rows, read = index(tmp_path / "runs"), []
    short = module.summary
    monkeypatch.setattr(module, "summary", lambda folder, **how: read.append(folder) or short(folder, **how))
    assert index(tmp_path / "runs") == rows
    assert not read
    monkeypatch.setenv("FEDSCAPE_CACHE", str(tmp_path / "cache of another user"))
    assert index(tmp_path / "runs") == rows
    assert len(read) == 1
    secret = tmp_path / "cache of another user" / "secret"
    assert len(secret.read_bytes()) == 32
    if os.name != "nt":
        assert secret.stat().st_mode & 0o777 == 0o600


def test_where_no_secret_can_be_stored_the_rows_are_the_same(tmp_path, monkeypatch):
    tiny.trained(tmp_path / "runs")
    rows = index(tmp_path / "runs")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("FEDSCAPE_CACHE", str(tmp_path / "file"))
    assert index(tmp_path / "runs") == rows
    assert index(tmp_path / "runs") == rows
