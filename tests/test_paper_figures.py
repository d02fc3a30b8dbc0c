"""Which figures of the papers are drawn as captioned: the table of docs/papers.md, against the runs by hand."""

import re
from dataclasses import replace

import blocks
import pytest

from figures.papers import catalogue

pytestmark = pytest.mark.skipif(not (blocks.ROOT / "docs/_ext").is_dir(), reason="a source distribution has no pages")


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(blocks.ROOT / "docs")
        from _ext import paper_figures

        yield paper_figures


def test_every_figure_of_the_papers_has_a_source_and_the_page_counts_them(page):
    items = {
        (name, item.item)
        for name in catalogue.names()
        for item in catalogue.load(name).items
        if item.item.startswith("Fig")
    }
    assert set(page.SOURCES) == items
    text = (blocks.ROOT / "docs/papers.md").read_text()
    block = re.search(r"<!-- figures-of-papers -->\n(.*?)\n<!-- end -->", text, re.DOTALL)[1]
    assert block == page.page(), "python docs/_ext/paper_figures.py"
    lines = [line[1:-1].split("|") for line in block.splitlines() if line.startswith("|")]
    rows = [row for row in lines if len(row) == 5][2:]
    assert len(rows) == len(items)
    by_paper = {row[0]: [list(map(int, cell.split(", "))) for cell in row[1:]] for row in lines[2:6]}
    for paper, (figures, tables) in by_paper.items():
        drawn = [row for row in rows if row[0].startswith(f"{paper}, ")]
        captioned = [row for row in drawn if row[1] == "yes"]
        own = [row for row in captioned if row[2] != "short"]
        shown = [row for row in drawn if row[1] != "no"]
        assert figures == [len(drawn), len(shown), len(captioned), len(own)]
        assert tables[0] == sum(item.item.startswith("Table") for item in catalogue.load(paper.lower()).items)


def test_a_table_is_counted_as_drawn_where_its_command_draws_it_from_the_files(page):
    """The tables of the page and those that `figures draw --paper` finds runs for in docs/results/data."""
    from figures.commands import _draw_papers

    files = [page.records.read(path) for path in sorted(page.DATA.glob("*.json"))]
    drawn = {
        (paper, entry.item.item)
        for paper in page.PAPERS
        for entry in _draw_papers.planned(paper, files)
        if entry.item.item.startswith("Table") and entry.runs
    }
    assert drawn == {(state.paper, state.item.item) for state in page.states_of_tables() if state.form != "none"}
    assert drawn == set(page.TABLES)


def test_a_form_needs_two_values_of_all_that_the_paper_compares(page):
    item = catalogue.load("ima").item("fig6a")
    source = page.SOURCES["ima", "Fig. 6a"]
    assert page._state("ima", item, source).form == "captioned"
    assert {one.method.label for one in page.drawn(source)} == {"fedavg", "fedadam", "ima", "fedadam+ima"}
    assert page._state("ima", item, source).fewer == ("4 of 5 values of concentration", "4 of 16 values of method")
    one_value = page._state("ima", item, replace(source, groups=("methods",)))
    assert one_value.form == "other"
    assert one_value.missing == ("0 of 5 values of concentration",)
    one_method = page._state("ima", item, replace(source, options={"methods": ["ima"]}))
    assert one_method.missing == ("1 of 16 values of method",)
    other_words = page._state("ima", item, replace(source, options={"gain": False}))
    assert other_words.missing == ("gain is false, not true",)
    assert page._state("ima", item, page.Source(lacks="no runs")).form == "none"


def test_a_method_that_the_paper_does_not_compare_stands_for_none(page):
    item = catalogue.load("ima").item("fig7c")
    source = page.SOURCES["ima", "Fig. 7c"]
    assert {one.method.label for one in page.drawn(source)} == {"fedavg", "ima"}
    assert page._state("ima", item, source).missing == ("1 of 8 values of method",), "IMA is none of the eight"


def test_a_setting_is_compared_value_by_value_with_the_papers(page):
    item = catalogue.load("fedeve").item("fig4")
    state = page._state("fedeve", item, page.SOURCES["fedeve", "Fig. 4"])
    assert state.differs == ("task.dataset", "clients.number", "rounds")
    assert state.setting == "but for dataset, number, rounds"
    short = page._state("fedeve", item, page.Source(("methods",)))
    assert short.setting == "short"
    assert len(short.differs) > page.FEW
