"""The pages and notebooks are read by people: no sentence of their prose has more than 30 words."""

from __future__ import annotations

import re

import blocks
import pytest
from markdown_it import MarkdownIt
from test_notebooks import TEXTS, cells
from test_size import pages

MOST = 30
"""Most words of a sentence; code, a formula or a number counts as one."""

LINKS = 3
"""A sentence with as many links is a list of them."""

ABBREVIATED = r"\b(Figs?|Eqs?|e\.g|i\.e|et al|vs|cf|Sec|App|No)\."

EXCUSED = {"docs/methods.md", "docs/papers.md"}
"""Pages with longer sentences; take one out when it has none."""

NAMES = {path.relative_to(blocks.ROOT).as_posix(): path for path in [*pages(), *TEXTS]}


def prose(name: str) -> str:
    """Markdown of a page, or of the cells of a notebook's text."""
    if not name.endswith(".py"):
        return NAMES[name].read_text(encoding="utf-8")
    texts = [source for kind, _, source in cells(NAMES[name]) if kind == "markdown"]
    return re.sub("^# ?", "", "\n\n".join(texts), flags=re.MULTILINE)


def sentences(text: str) -> list[str]:
    """Sentences of a page's paragraphs and list items, without tables, code, formulas and pictures."""
    text = re.sub(r"\A---\n.*?\n---\n|\$\$.*?\$\$", "", text, flags=re.DOTALL)
    tokens, table, shown = MarkdownIt("commonmark").enable("table").parse(text), False, []
    for number, token in enumerate(tokens):
        table = (table and token.type != "table_close") or token.type == "table_open"
        if token.type == "inline" and not table and tokens[number - 1].type == "paragraph_open":
            shown += _split(token.children or [])
    return [sentence for sentence in shown if sentence.count("\0") < LINKS]


def _split(parts: list) -> list[str]:
    """Sentences of one paragraph; a link begins with a mark."""
    written = {"code_inline": "Code", "softbreak": " ", "hardbreak": " ", "link_open": "\0"}
    text = "".join(part.content if part.type == "text" else written.get(part.type, "") for part in parts)
    text = re.sub(r"\$[^$]*\$", "formula", re.sub(ABBREVIATED, r"\1", text))
    return re.split(r"(?<=[.!?])[)\"”]* (?=[\0(\"“]*(?:[A-Z0-9]|fedscape\b))", text)


def long_sentences(text: str) -> list[str]:
    """Those that have too many words."""
    return [one.replace("\0", "") for one in sentences(text) if len(re.findall(r"\S*\w\S*", one)) > MOST]


@pytest.mark.parametrize("name", NAMES)
def test_no_sentence_of_a_page_is_long(name):
    found = long_sentences(prose(name))
    assert not found or name in EXCUSED, found


def test_no_page_is_excused_without_need():
    assert [name for name in EXCUSED if not long_sentences(prose(name))] == []


def test_long_sentences_are_seen():
    long, links = "Word " + "word " * 29 + "end.", "[a](b) " * 3
    assert long_sentences(f"# {long}\n\nShort. {long} Short.\n\n- {long}\n") == [long, long]
    assert long_sentences(f"| {long} |\n|---|\n\n    {long}\n\n```\n{long}\n```\n\n$$\n{long}\n$$\n") == []
    assert long_sentences(f"One {'`a b` ' * 26}end (Fig. 1). `Next` {'word ' * 29}") == []
    assert long_sentences(f"{links}{long}") == []
