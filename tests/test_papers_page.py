"""docs/papers.md has every section and every code that a docstring, a setting or a page cites."""

from __future__ import annotations

import re

from blocks import ROOT

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
SECTIONS = set(re.findall(r"^#{2,3} ([\d.]+) ", PAGE, re.MULTILINE)) | set(
    re.findall(r"^\*\*(\d[\d.]+\d) ", PAGE, re.MULTILINE)
)
CODES = set(re.findall(r'<a id="[a-z]+-\d+"></a>([A-Z]+-\d+)', PAGE))


def texts():
    for folder, kind in (
        ("landscape", "py"),
        ("drift", "py"),
        ("figures", "py"),
        ("figures", "toml"),
        ("experiments", "toml"),
        ("docs", "md"),
    ):
        yield from sorted((ROOT / folder).rglob(f"*.{kind}"))


def test_what_is_cited_is_there():
    cited = {"section": set(), "code": set()}
    for path in texts():
        text = path.read_text(encoding="utf-8")
        cited["section"] |= set(re.findall(r"papers\.md (\d+(?:\.\d+)*)", text))
        cited["code"] |= set(re.findall(r"\b((?:FMA|IMA|LAW|LSS|EVE)-\d+)\b", text))
    assert len(cited["section"]) > 20 and len(cited["code"]) > 25, "the citations are read"
    assert cited["section"] - SECTIONS == set()
    assert cited["code"] - CODES == set()


def test_no_text_cites_a_document_outside_the_repository():
    for path in texts():
        assert not re.search(r"methods\.md \d", path.read_text(encoding="utf-8")), path


def test_a_code_has_one_row_and_links_lead_to_rows():
    anchors = re.findall(r'<a id="([a-z]+-\d+)"></a>', PAGE)
    assert len(anchors) == len(set(anchors)) == len(CODES)
    assert set(re.findall(r"\]\(#([a-z]+-\d+)\)", PAGE)) <= set(anchors)
