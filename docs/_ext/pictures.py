"""The gallery page: `{pictures} PAPER` shows the named figures of a paper, with thumbnails where there are any.

A new figure appears by itself; its thumbnail is made by thumbnails.py.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from _ext.facts import IMAGES, NOT_DRAWN, described, items_of, paper_of, split


class Pictures(SphinxDirective):
    """A grid of figures: picture, name, what it shows, where it stands in the paper, what it needs, the command."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The grid."""
        grid = nodes.container(classes=["gallery"])
        for one in described():
            if paper_of(one["description"]) == self.arguments[0]:
                grid += self._card(one)
        return [grid]

    def _card(self, one: dict[str, Any]) -> nodes.Node:
        name = one["name"]
        shows, items = split(one["description"])
        card = nodes.container(classes=["figure-card"], ids=[f"figure-{name}"])
        if (IMAGES / f"{name}.png").exists():
            card += nodes.image(uri=f"/images/gallery/{name}.png", alt=shows)
        else:
            card += nodes.paragraph("", NOT_DRAWN.get(name, "not drawn yet"), classes=["no-picture"])
        card += nodes.paragraph("", "", nodes.strong("", name), classes=["name"])
        card += nodes.paragraph("", f"{shows}.")
        facts = {"paper": items_of(one["papers"]) or items, "needs": one["needs"], "cost": one["cost"]}
        for fact, value in facts.items():
            if value:
                card += nodes.paragraph("", "", nodes.emphasis("", f"{fact}: "), nodes.Text(value))
        runs = "RUN" if re.match(r"(one|a) run\b", one["needs"]) else "RUNS"
        card += nodes.literal_block("", f"fedscape figures draw {name} {runs}", language="bash")
        return card


def setup(app: Sphinx) -> dict[str, bool]:
    """Give Sphinx the directive."""
    app.add_directive("pictures", Pictures)
    return {"parallel_read_safe": True}
