"""fedscape partition: counts in a table, as JSON and as a picture; partitions in words."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import tiny
import torch

from drift import partitions
from figures import cli
from figures.looks import style
from figures.selection.partition_text import describe_partition
from landscape.datasets import digits
from landscape.datasets._dataset import Groups


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tiny.written(tmp_path)


def call(*tokens: object) -> int:
    with pytest.raises(SystemExit) as stop:
        cli.main([str(token) for token in tokens])
    return int(stop.value.code or 0)


def test_the_table_counts_every_sample_and_nothing_is_trained(file, tmp_path, capsys):
    assert call("partition", file, "--set", "clients.partition=iid") == 0
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines() if line.split() and line.split()[0].isdigit()]
    assert [int(row[0]) for row in rows] == [0, 1, 2, 3]
    assert all(int(row[1]) == sum(map(int, row[2:])) == 15 for row in rows)
    assert "4 clients, 60 of 60 training samples" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.toml"]


def test_many_classes_are_shortened_and_json_has_all(file, capsys):
    options = ["--set", "clients.partition=iid", "task.dataset_options.classes=20", "task.dataset_options.samples=400"]
    assert call("partition", file, *options) == 0
    assert {"classes", "most", "share"} <= set(capsys.readouterr().out.split())
    assert call("partition", file, *options, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 4
    assert sum(rows[2][str(label)] for label in range(20)) == rows[2]["samples"] == 100


def test_the_picture_is_the_figure_of_the_gallery(file, tmp_path, capsys):
    assert call("partition", file, "-o", "drawn") == 0
    assert "drawn/labels-partition.pdf" in capsys.readouterr().out
    assert {path.suffix for path in (tmp_path / "drawn").iterdir()} == {".pdf", ".png", ".svg"}


@pytest.mark.parametrize("name", partitions.names())
def test_every_partition_prints_and_draws_its_histogram(name, tmp_path, monkeypatch, capsys):
    if name == "flwr":
        pytest.importorskip("flwr_datasets", reason="needs the extra `flwr`")
    plain = digits.load()

    def grouped(folder=None):
        splits = [torch.arange(len(part)) % 3 for part in (plain.train, plain.test)]
        coarse = [part.targets // 2 for part in (plain.train, plain.test)]
        groups = {"user": Groups(tuple("abc"), *splits), "domain": Groups(tuple("xyz"), *splits)}
        return replace(plain, groups={**groups, "coarse": Groups(tuple("01234"), *coarse)})

    drawn = []
    monkeypatch.setattr(style, "save", lambda figure, path: drawn.append(figure) or [])
    monkeypatch.setattr(digits, "load", grouped)
    monkeypatch.chdir(tmp_path)
    options = ["--set", f"clients.partition={{name='{name}'}}", "clients.number=3", "clients.per_round=2"]
    assert call("partition", "digits-shards2", *options, "-o", ".", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["client"] for row in rows] == [0, 1, 2]
    assert all(row["samples"] == sum(row[str(label)] for label in range(10)) for row in rows)
    assert 400 < sum(row["samples"] for row in rows) <= len(plain.train) + len(plain.test)
    (figure,) = drawn
    dots = sum(len(part.get_offsets()) for part in figure.axes[0].collections)
    assert dots == sum(row[str(label)] > 0 for row in rows for label in range(10))


def test_groups_that_are_missing_are_one_line(file, capsys):
    assert call("partition", file, "--set", "clients.partition=users") == 2
    assert capsys.readouterr().err.startswith("fedscape: partition users needs the user of every sample")


@pytest.mark.parametrize("name", partitions.names())
def test_every_partition_is_said_in_few_words(name):
    assert 2 < len(describe_partition(partitions.load(name)())) < 45


def test_words_tell_partitions_apart():
    said = [describe_partition(partitions.load(name)()) for name in partitions.names()]
    assert len(set(said)) == len(said)
    nested = partitions.load("domains")(base={"name": "dirichlet", "concentration": 0.1})
    assert describe_partition(nested) == "domains, Dir(0.1)"
