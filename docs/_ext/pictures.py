"""The gallery page: `{pictures} QUESTION` shows the figures that answer a question.

A new figure appears by itself; remake.py draws it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from _ext.facts import IMAGES, NOT_DRAWN, QUESTIONS, RECORD, described, finding, is_whole, items_of, seen, split

MORE = nodes.raw("", "<details><summary>runs, cost, command</summary>", format="html")
END = nodes.raw("", "</details>", format="html")
"""What a card keeps folded: the page is a grid of small pictures, each of which leads to the whole one."""

WIDE, SCENES = 1.3, ("images/surface.png",)
"""Width over height of a picture with panels side by side, and pictures as wide that are one scene."""


class Pictures(SphinxDirective):
    """A grid of figures: picture, name, what it shows; folded: its place in a paper, what it needs, the command."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The grid."""
        self.env.note_dependency(str(RECORD))
        grid = nodes.container(classes=["gallery"])
        about = {one["name"]: one for one in described()}
        for name in QUESTIONS[self.arguments[0]]:
            grid += self._card(about[name])
        return [grid]

    def _card(self, one: dict[str, Any]) -> nodes.Node:
        name = one["name"]
        shows, items = split(one["description"])
        card = nodes.container(classes=["figure-card"], ids=[f"figure-{name}"])
        if (IMAGES / f"{name}.webp").exists():
            whole = ["whole"] if is_whole(name) else []
            card += nodes.image(uri=f"/images/gallery/{name}.webp", alt=seen(name), classes=whole)
        else:
            card += nodes.paragraph("", NOT_DRAWN.get(name, "not drawn yet"), classes=["no-picture"])
        card += nodes.paragraph("", "", nodes.strong("", name), classes=["name"])
        card += nodes.paragraph("", f"{shows}.")
        card += [nodes.paragraph("", text, classes=["finding"]) for text in [finding(name)] if text]
        card += MORE.deepcopy()
        facts = {"paper": items_of(one["papers"]) or items, "needs": one["needs"], "cost": one["cost"]}
        for fact, value in facts.items():
            if value:
                card += nodes.paragraph("", "", nodes.emphasis("", f"{fact}: "), nodes.Text(value))
        runs = "RUN" if re.match(r"(one|a) run\b", one["needs"]) else "RUNS"
        card += nodes.literal_block("", f"fedscape figures draw {name} {runs}", language="bash")
        card += END.deepcopy()
        return card


def link(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Make every picture of a page lead to its file; a wide one keeps readable text on a small screen, and scrolls."""
    for picture in list(doctree.findall(nodes.image)):
        stored = app.env.images.get(picture["uri"])
        if stored and picture["uri"].endswith((".png", ".webp")):
            with Image.open(Path(app.srcdir) / picture["uri"]) as pixels:
                wide = pixels.width > WIDE * pixels.height and picture["uri"] not in SCENES
            picture["classes"] += ["wide"] if wide else []
        if stored and not isinstance(picture.parent, nodes.reference):
            leading = nodes.reference("", "", refuri=f"{'../' * page.count('/')}{app.builder.imagedir}/{stored[1]}")
            picture.replace_self(leading)
            leading += picture


def setup(app: Sphinx) -> dict[str, bool]:
    """Give Sphinx the directive and the links."""
    app.add_directive("pictures", Pictures)
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True}
