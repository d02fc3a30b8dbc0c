"""Tables and pairs on a pipe: one line per row, however long."""

from __future__ import annotations

import pytest
import rich

from figures.texts import console

LONG = "x" * 3000


def test_a_row_on_a_pipe_is_one_line(capsys):
    console.table([{"name": LONG, "note": f"{LONG} and more words " * 3}], {"name": "name", "note": "note"})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2  # heading, row
    assert lines[1].startswith(f"{LONG}\t{LONG} and more")


@pytest.mark.parametrize(
    ("most", "lines"), [(120, ["run   seed", "\u2500" * 10, "a        5"]), (9, ["run\tseed", "a\t5"])]
)
def test_a_wide_table_on_a_pipe_has_tabs_in_place_of_spaces(most, lines, capsys, monkeypatch):
    monkeypatch.setattr(console, "WIDEST", most)
    console.table([{"name": "a", "seed": 5}], {"name": "run", "seed": "seed"})
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == lines


def test_a_pair_on_a_pipe_is_one_line(capsys):
    console.pairs({"name": f"{LONG} {LONG}"})
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\x07b", "\x9b2J"])
def test_what_runs_say_cannot_steer_the_terminal(capsys, text):
    console.table([{"name": text}], {"name": "name"})
    console.pairs({"name": text})
    console.say(text)
    console.put(text)
    shown = capsys.readouterr()
    assert not {"\x1b", "\x07", "\x9b"} & set(shown.out + shown.err)


def test_a_table_in_a_pipe_has_the_lines_of_one_in_a_terminal(capsys):
    rows = [{"name": "run-1", "seed": 5, "accuracy": 0.123456}, {"name": "\u6f22\u5b57 long name", "seed": 11}]
    columns = {"name": "run", "seed": "seed", "accuracy": "accuracy", "absent": "not there"}
    rich.print(console.rich_table(rows, columns))
    expected = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    console.table(rows, columns)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == expected


def test_pairs_in_a_pipe_have_no_space_at_their_ends(capsys):
    console.pairs({"name": "a", "a longer name": "b" * 300, "empty": ""})
    assert capsys.readouterr().out == f"name           a\na longer name  {'b' * 300}\nempty\n"
