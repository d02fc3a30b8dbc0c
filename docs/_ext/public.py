"""API pages: `.. public:: PACKAGE` lists and documents the names that a package binds."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Public(SphinxDirective):
    """A table of names with first lines, then each with signature and docstring, in the order of the package."""

    required_arguments = 1
    has_content = False

    def run(self) -> list[nodes.Node]:
        """The nodes of the page."""
        package = self.arguments[0]
        names = importlib.import_module(package).__all__
        lines = [f".. currentmodule:: {package}", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names]
        for name in names:
            lines += ["", *_documented(package, name)]
        return self.parse_text_to_nodes(StringList(lines, source=package))


def _documented(package: str, name: str) -> list[str]:
    """Lines of the directive that documents one name."""
    if inspect.isclass(getattr(importlib.import_module(package), name)):
        return [f".. autoclass:: {package}.{name}", "   :members:"]
    return [f".. autofunction:: {package}.{name}"]


def escape(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Docstrings here are plain text in which only backticks mean something; what reStructuredText would read stays.

    A formula on indented lines becomes a block of text, as it stands.
    """
    kept, block = [], False
    for at, line in enumerate(lines):
        if (before := lines[at - 1].strip() if at else "") or not line.strip():
            block = block and bool(line.strip())
        elif line.startswith("    ") and (not at or not before) and not _in_section(lines, at):
            kept += ["::", ""]
            block = True
        kept.append(line if block else _escaped(line))
    lines[:] = [line.replace(":", COLON) for line in kept] if what in ("property", "attribute") else kept


COLON = "\ue000"
"""Stands for a colon in the docstring of an attribute, which napoleon would read as the end of a type."""


def restore(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """The colons that `escape` has hidden from napoleon."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def _in_section(lines: list[str], at: int) -> bool:
    """Whether line `at` belongs to a section such as Args."""
    heads = [line for line in lines[:at] if line and not line.startswith(" ")]
    return bool(heads) and bool(re.fullmatch(r"(Args|Returns|Raises|Yields):", heads[-1]))


def _escaped(line: str) -> str:
    parts = re.split(r"(`+[^`]+`+)", line)
    return "".join(
        f"``{part.strip('`')}``" if part.startswith("`") else re.sub(r"([*|])|(?<=\w)(_)(?!\w)", r"\\\1\2", part)
        for part in parts
    )


def plain(app: Sphinx, what: str, name: str, found: Any, options: Any, signature: str | None, returns: Any) -> Any:
    """A signature that Sphinx can read: made defaults are three dots, tensors have their short name."""
    short = None if signature is None else signature.replace("<factory>", "...").replace("~torch.", "")
    return short, returns


def setup(app: Sphinx) -> dict[str, bool]:
    """Give Sphinx the directive."""
    app.add_directive("public", Public)
    app.connect("autodoc-process-docstring", escape, priority=100)  # before napoleon reads the sections
    app.connect("autodoc-process-signature", plain)
    app.connect("autodoc-process-docstring", restore, priority=900)
    return {"parallel_read_safe": True}
