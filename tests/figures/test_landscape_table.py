"""The table of landscape figures in the documentation names what there is."""

from __future__ import annotations

import re
from pathlib import Path

from figures import gallery
from figures.commands.analyse import analyses


def test_figures_and_analyses_of_the_table_exist():
    page = (Path(__file__).parents[2] / "docs" / "reading-landscapes.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| `")]
    drawn = {name for figure, _, _ in rows for name in re.findall(r"`([a-z-]+)`", figure)}
    computed = {name for _, analysis, _ in rows for name in re.findall(r"`([a-z]+_[a-z]+)`", analysis)}
    assert len(rows) > 15
    assert drawn <= set(gallery.names())
    assert computed <= set(analyses())
