"""The papers' items: every one resolves, finds its runs, and is drawn with the paper's numbers beside."""

from __future__ import annotations

import csv
import inspect
import json
import shlex
from pathlib import Path

import pytest
import tiny

from drift.config.load import presets
from drift.simulation import settings_grid as grids
from figures import cli, gallery, papers
from figures.commands import _draw_papers
from figures.papers import catalogue, needed
from figures.pictures.draw_files import draw, split_words
from figures.selection.open_runs import open_run
from landscape.results import netcdf_files

DATA = Path(__file__).parents[3] / "docs" / "results" / "data"

ITEMS = [(name, item) for name in papers.names() for item in papers.load(name).items]


def test_the_papers_are_those_of_the_issue():
    assert set(papers.names()) <= {"ima", "fedlaw", "lss", "fedeve"}
    assert "ima" in papers.names()


@pytest.mark.parametrize("name", papers.names())
def test_items_of_a_paper_have_names_of_their_own(name):
    found = [item.slug for item in papers.load(name).items]
    assert len(set(found)) == len(found)
    assert papers.load(name).title


@pytest.mark.parametrize(("name", "item"), ITEMS, ids=[f"{name}-{item.slug}" for name, item in ITEMS])
def test_every_item_resolves(name, item):
    options = _draw_papers.PlannedItem(name, item, ()).options | item.quick_options
    split_words(item.figure, options)
    assert item.shows[0].islower() or item.shows.split()[0].isupper()
    for setting in item.settings:
        assert {setting.experiment, setting.quick or setting.experiment} <= set(presets())
        for quick in (False, True):
            assert needed.combinations(item, setting, quick=quick)
            lines = papers.commands(item, setting, quick=quick, runs="some runs")
            assert all(line.startswith("fedscape ") for line in lines)
    columns = {number.column for number in item.numbers}
    if len(item.settings) > 1 and columns:
        labels = {setting.label for setting in item.settings}
        assert all(any(column == label or column.startswith(f"{label}, ") for label in labels) for column in columns)


@pytest.mark.parametrize(("name", "item"), ITEMS, ids=[f"{name}-{item.slug}" for name, item in ITEMS])
def test_every_command_crosses_the_grid(name, item):
    for quick in (False, True):
        lines = [
            shlex.split(line)
            for line in papers.commands(item, item.settings[0], quick=quick)
            if line.startswith(("fedscape sweep", "fedscape train"))
        ]
        for words, crossed in zip(lines, item.grids(quick=quick), strict=True):
            first = words.index("--grid") + 1 if crossed else 0
            assert grids.values(words[first : first + len(crossed)]) == crossed


@pytest.mark.parametrize(("name", "item"), ITEMS, ids=[f"{name}-{item.slug}" for name, item in ITEMS])
def test_numbers_stand_where_runs_can_stand(name, item):
    """Rows of printed numbers are labels of runs of the grid, wherever rows are methods."""
    tables = ("accuracy-table", "rounds-target")
    if item.figure in tables and item.options.get("rows", "method") == "method" and item.numbers:
        labels = {one.method.label for one in needed.combinations(item, item.settings[0], quick=False)}
        assert {number.row for number in item.numbers} <= labels


@pytest.fixture
def item(tmp_path, monkeypatch):
    """An item of a made-up paper `toy`, over the tiny experiment."""
    file = tiny.written(tmp_path)
    content = f"""
title = "Toy"

[[items]]
item = "Table IV"
shows = "accuracy with and without IMA"
figure = "accuracy-table"
options = {{ over = ["local.epochs"], last = 1 }}
experiment = "{file}"
numbers = [
    {{ row = "fedavg", column = "1", value = 61.5 }},
    {{ row = "ima", column = "2", value = 62.5 }},
    {{ row = "fedlaw", column = "2", value = 63.5 }},
]

[[items.grid]]
method = ["fedavg"]
"local.epochs" = [1, 2]

[[items.grid]]
method = ["ima"]
"method.base" = ["fedavg", {{ name = "fedprox", mu = 0.5 }}]
"method.window" = [2]
"local.epochs" = [1, 2]
"""
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "toy.toml").write_text(content)
    monkeypatch.setattr(catalogue, "FOLDER", folder)
    catalogue.load.cache_clear()
    yield papers.load("toy").item("tableiv")
    catalogue.load.cache_clear()


def _trained(item, folder):
    return [
        tiny.simulate(one.model_copy(update={"seed": seed}), runs=folder)
        for one in needed.combinations(item, item.settings[0], quick=False)
        for seed in (5, 6)
    ]


def test_runs_are_found_whatever_their_seed_and_missing_ones_counted(item, tmp_path):
    runs = _trained(item, tmp_path / "runs")
    (part,) = papers.match_runs(item, runs)
    assert part.complete and len(part.runs) == len(runs) == 12
    other = tiny.trained(tmp_path / "runs", "local.epochs=3")
    assert papers.match_runs(item, [other])[0].missing == 6
    kept = [run for run in runs if run.label != "fedprox+ima"]
    assert papers.match_runs(item, [*kept, other])[0].missing == 2
    assert other.folder not in {run.folder for run in papers.match_runs(item, [*kept, other])[0].runs}


def test_a_cell_of_a_table_has_all_its_seeds_and_the_picture_counts_them(item, tmp_path):
    runs = [run for run in _trained(item, tmp_path / "runs") if (run.label, run.experiment.seed) != ("ima", 6)]
    (part,) = papers.match_runs(item, runs)
    assert {run.experiment.seed for run in part.paired} == {5}, "in a line figure all lines have the same seeds"
    entry = _draw_papers.PlannedItem("toy", item, (part,))
    assert {run.folder for run in entry.runs} == {run.folder for run in runs}
    figure = gallery.load("accuracy-table")
    ds = figure.data(entry.runs, **entry.options)
    assert ds.measured.notnull().sum("seed").sel(column="1").values.tolist() == [2, 1, 2]
    texts = [text.get_text() for ax in figure.draw(ds).axes for text in (*ax.texts, ax.title)]
    assert sum(text.endswith(" (1)") for text in texts) == 2 and sum(text.endswith(" (2)") for text in texts) == 4


def test_an_unfinished_run_is_missing(item, tmp_path):
    runs = _trained(item, tmp_path / "runs")
    for path in (runs[0].folder, runs[1].folder):
        (path / "state.safetensors").unlink()
    assert papers.match_runs(item, runs)[0].missing == 1


def test_a_table_has_the_papers_numbers_beside_its_own(item, tmp_path):
    runs = _trained(item, tmp_path / "runs")
    figure = gallery.load("accuracy-table")
    ds = figure.data(runs, **_draw_papers.PlannedItem("toy", item, ()).options)
    assert ds.row.values.tolist() == ["fedavg", "ima", "fedprox+ima"]
    assert ds.column.values.tolist() == ["1", "2"]
    assert ds.measured.dims == ("row", "column", "seed")
    for run in runs:
        place = {"row": run.label, "column": str(run.experiment.local.epochs), "seed": run.experiment.seed}
        assert float(ds.measured.sel(place)) == run.round(-1).metrics["accuracy"]
    assert float(ds.printed.sel(row="fedavg", column="1")) == pytest.approx(0.615)
    assert float(ds.printed.sel(row="ima", column="2")) == pytest.approx(0.625)
    assert int(ds.printed.notnull().sum()) == 2
    drawn = figure.draw(ds)
    texts = {text.get_text(): text for ax in drawn.axes for text in ax.texts}
    assert texts["61.50"].get_color() != "black"
    assert {"FedAvg", "FedAvg+IMA", "FedProx+IMA", "paper", "measured"} <= set(texts)


def test_the_command_draws_what_is_there_and_names_what_is_not(item, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*tokens):
        with pytest.raises(SystemExit) as stop:
            cli.main(["figures", "draw", "--paper", "toy", *map(str, tokens)])
        told = capsys.readouterr()
        return stop.value.code, told.out, told.err

    folder = tmp_path / "runs"
    tiny.trained(folder, "local.epochs=3")
    code, out, err = call(folder)
    assert code == 2 and not out and "1 of 1 runs are not drawn" in err
    lines = [line.strip() for line in err.splitlines() if line.strip().startswith("fedscape sweep")]
    assert len(lines) == 2
    for line in lines:
        with pytest.raises(SystemExit) as stop:
            cli.main(shlex.split(line)[1:])
        assert stop.value.code == 0
    capsys.readouterr()
    code, out, err = call(folder, "-o", "pictures", "--item", "tableiv")
    assert code == 0, err
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == [
        f"toy-tableiv-accuracy-table.{kind}"
        for kind in (
            *("alt.txt", "csv", "nc", "pdf", "png", "svg", "table.html", "table.md", "table.tex", "tex", "txt"),
        )
    ]
    ds = netcdf_files.load(tmp_path / "pictures" / "toy-tableiv-accuracy-table.nc")
    assert ds.measured.shape == (3, 2, 1)
    table = (tmp_path / "pictures" / "toy-tableiv-accuracy-table.csv").read_text()
    rows = {(row["row"], row["column"]): row for row in csv.DictReader(table.splitlines())}
    assert float(rows["fedavg", "1"]["printed"]) == 0.615 and rows["fedavg", "2"]["printed"] == ""
    assert "left out" not in err


def test_a_table_is_drawn_in_part_with_the_printed_numbers_and_in_the_look_asked_for(item, tmp_path, capsys):
    def call(*tokens):
        with pytest.raises(SystemExit) as stop:
            cli.main(["figures", "draw", "--paper", "toy", *map(str, tokens)])
        return stop.value.code, capsys.readouterr().err

    runs = [tiny.trained(tmp_path / "runs", "seed=5"), tiny.trained(tmp_path / "runs", "seed=6")]
    other = [tiny.trained(tmp_path / "runs", "method=ima", "method.window=2", "local.epochs=2", "seed=5")]
    out = tmp_path / "out"
    look = ("--format", "svg", "--width", "2.75", "--style", "ieee")
    code, err = call(tmp_path / "runs", "-o", out, *look)
    assert code == 0, err
    assert "Table IV is drawn in part: 2 of 6 cells have runs" in err and "fedscape sweep" in err
    assert "are not drawn" not in err and "font" in err, "all seeds; a missing font is said as without --paper"
    assert not list(out.glob("*.p??")) and 'width="198pt"' in (out / "toy-tableiv-accuracy-table.svg").read_text()
    ds = netcdf_files.load(out / "toy-tableiv-accuracy-table.nc")
    assert (ds.row.values.tolist(), ds.column.values.tolist()) == (["fedavg", "ima"], ["1", "2"])
    for run, place in ((runs[0], ("fedavg", "1")), (other[0], ("ima", "2"))):
        assert float(ds.measured.sel(row=place[0], column=place[1], seed=5)) == run.round(-1).metrics["accuracy"]
    assert float(ds.measured.sel(row="fedavg", column="1", seed=6)) == runs[1].round(-1).metrics["accuracy"]
    assert int(ds.measured.notnull().sum()) == 3
    assert ds.printed.sel(row=["fedavg", "ima"]).values.tolist()[0][0] == pytest.approx(0.615)
    assert float(ds.printed.sel(row="ima", column="2")) == pytest.approx(0.625)
    for wrong in (("--style", "iee"), ("--format", "pfd"), ("--width", "-1")):
        code, err = call(tmp_path / "runs", "-o", out, *wrong)
        assert code == 2 and len(err.strip().splitlines()) == 1, err


@pytest.mark.parametrize("name", papers.names())
def test_a_paper_is_listed(name, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["figures", "list", "--paper", name, "--json"])
    assert stop.value.code == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["item"] for row in rows] == [item.item for item in papers.load(name).items]
    assert all(row["cost"] and row["commands"] for row in rows)


def test_an_unknown_paper_or_item_gets_the_nearest_one():
    with pytest.raises(ValueError, match="Did you mean 'ima'"):
        papers.load("imo")
    with pytest.raises(ValueError, match="no item of this paper named 'Table IX'"):
        papers.load("ima").item("Table IX")


def test_every_figure_says_its_cost():
    for name in gallery.names():
        figure = gallery.load(name)
        assert figure.COST in gallery.COSTS, name
        assert next(iter(inspect.signature(figure.data).parameters)) == "runs"


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        ("ima", "Fig. 5b"),
        ("ima", "Fig. 5c"),
        ("ima", "Fig. 7c"),
        ("fedlaw", "Fig. 1"),
        ("fedeve", "Fig. 3b"),
        ("fedeve", "Fig. 4"),
        ("fedeve", "Table 1, FEMNIST"),
        ("lss", "Table 1"),
        ("lss", "Table 6"),
    ],
)
def test_recorded_runs_stand_in_for_those_of_a_figure_and_it_is_said(paper, name, tmp_path):
    files = [open_run(path) for path in sorted(DATA.glob("*-s0-*.json"))]
    (entry,) = _draw_papers.planned(paper, files, [name])
    labels = {one.method.label for one in needed.combinations(entry.item, entry.item.settings[0], quick=False)}
    assert entry.runs and {run.label for run in entry.runs} <= labels
    names = ", ".join(entry.item.measured)
    assert entry.reservation.startswith(f"in the setting of {names} (fedscape reproduce")
    assert " in place of " in entry.reservation
    assert draw(entry.item.figure, gallery.AnyOf(entry.runs), tmp_path, formats=("png",), **entry.options)


def test_a_table_with_runs_for_one_cell_compares_nothing_and_is_refused():
    (entry,) = _draw_papers.planned("fedlaw", [open_run(path) for path in sorted(DATA.glob("*.json"))], ["Table 2"])
    assert sum(part.matching for part in entry.settings) == 1
    assert entry.runs == [] and entry.lone_cell == "1 of 20 cells has runs, which compares nothing"


def test_an_item_whose_runs_are_there_takes_no_other_ones(item, tmp_path):
    runs = _trained(item, tmp_path / "runs")
    (part,) = papers.match_runs(item, runs)
    entry = _draw_papers.PlannedItem("toy", item, (part,), tuple(runs[:1]))
    assert len(entry.runs) == len(runs) and not entry.reservation
