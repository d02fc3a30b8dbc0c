"""API pages: `.. public:: PACKAGE` lists the public names of a package by room; each has a page of its own.

The pages are written into docs/api/objects, which git ignores, before Sphinx looks for files.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from myst_parser.mdit_to_docutils.base import default_slugify
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from _ext import drawn_with
from _ext.facts import IMAGES, is_whole, seen
from drift.runs.registry import registered

PACKAGES = ("landscape", "drift", "figures")
DOCS = Path(__file__).parents[1]
OBJECTS = DOCS / "api" / "objects"
MOST = 4
"""Pictures on the page of an object; further figures are links."""


class Public(SphinxDirective):
    """Tables of the names of a package, one for each of its rooms, with the first lines of their docstrings."""

    required_arguments = 1
    has_content = False

    def run(self) -> list[nodes.Node]:
        """The nodes of the tables."""
        package = self.arguments[0]
        lines = []
        for room, names in rooms(package).items():
            title = heading(room)
            lines += [title, "-" * len(title), "", ".. list-table::", "   :class: public", "   :widths: auto", ""]
            for name in names:
                first = (inspect.getdoc(getattr(importlib.import_module(package), name)) or "").split("\n\n")[0]
                lines += [f"   * - :doc:`{name} </api/objects/{package}.{name}>`"]
                lines += [f"     - {_escaped(' '.join(first.split()))}"]
            lines += [""]
        return self.parse_text_to_nodes(StringList(lines, source=package), allow_section_headings=True)


def rooms(package: str) -> dict[str, list[str]]:
    """Public names of a package by the folder whose module defines them, all in alphabetical order."""
    found = defaultdict(list)
    module = importlib.import_module(package)
    for name in module.__all__:
        found[_room(getattr(module, name))].append(name)
    return {room: found[room] for room in sorted(found)}


def _room(public: Any) -> str:
    parts = public.__module__.split(".")
    return ".".join(parts[: 3 if parts[1] == "analyses" else 2])


def heading(room: str) -> str:
    """What the first sentence of a room's docstring says of it, up to its colon if that says enough."""
    first = (inspect.getdoc(importlib.import_module(room)) or "").split("\n\n")[0]
    return _escaped(re.split(r"[.:;](?:\s|$)", " ".join(first.split()))[0])


def write(app: Sphinx) -> None:
    """Write a page for every public name; pages that did not change keep their time, so that Sphinx skips them."""
    OBJECTS.mkdir(exist_ok=True)
    pages = {f"{package}.{name}.rst": page(package, name) for package in PACKAGES for name in _names(package)}
    for path in OBJECTS.glob("*.rst"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = OBJECTS / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def page(package: str, name: str) -> str:
    """Signature and docstring of an object, how a run keeps its result, and the figures drawn with it."""
    title, kind = f"{package}.{name}", "function"
    public = getattr(importlib.import_module(package), name)
    lines = [
        ":orphan:",
        "",
        title,
        "=" * len(title),
        "",
        f"Part of :doc:`{package} </api/{package}>`: {heading(_room(public))}.",
        "",
    ]
    if inspect.isclass(public):
        kind = "class"
    lines += [f".. currentmodule:: {package}", "", f".. auto{kind}:: {package}.{name}"]
    lines += ["   :members:"] if kind == "class" else []
    if name in (known := registered()) and known[name].module == public.__module__:
        kept = f"``run.cached({title})`` keeps the result with the run, as does"
        lines += ["", f"{kept} ``fedscape analyse {name.replace('_', '-')} RUN``."]
    return "\n".join([*lines, *_pictures(public), ""])


def _names(package: str) -> list[str]:
    return importlib.import_module(package).__all__


def _pictures(public: Any) -> list[str]:
    """Figures of the gallery that are drawn with a function: pictures of the first, links to all others."""
    names = drawn_with.figures_of().get(id(inspect.unwrap(public)), []) if inspect.isfunction(public) else []
    shown = [name for name in names if (IMAGES / f"{name}.webp").exists()][:MOST]
    if not names:
        return []
    lines = ["", "Figures drawn with it", "---------------------", ""]
    lines += [".. container:: gallery", ""] if shown else []
    for name in shown:
        lines += ["   .. container:: figure-card", "", f"      .. image:: /images/gallery/{name}.webp"]
        lines += [
            f"         :alt: {seen(name)}",
            *(["         :class: whole"] if is_whole(name) else []),
            f"         :target: {_card(name)}",
            "",
            f"      `{name} <{_card(name)}>`__",
            "",
        ]
    further = ", ".join(f"`{name} <{_card(name)}>`__" for name in names if name not in shown)
    return [*lines, f"{'Also ' if shown else ''}{further}", ""] if further else lines


def _card(figure: str) -> str:
    """Where the gallery has a figure, seen from the page of an object."""
    return f"../../gallery.html#figure-{figure}"


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
        kept.append(line if block else _cited(_escaped(line), app.env.docname))
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


def _cited(line: str, page: str) -> str:
    """A line whose citations of sections of docs/papers.md, and of other pages, are links from a page."""
    up = "../" * page.count("/")
    line = re.sub(r"papers\.md (\d(?:\.\d+)*)", lambda one: f"`{one[0]} <{up}papers.html#{_section(one[1])}>`__", line)
    return re.sub(r"docs/([\w-]+)(?:\.md)?(?![\w/])", lambda one: f":doc:`{one[1]} </{one[1]}>`", line)


def _section(number: str) -> str:
    """Anchor of the section of docs/papers.md that has a number, or of the one around it."""
    titles = _titles()
    return default_slugify(titles[number]) if number in titles else _section(number.rpartition(".")[0])


@cache
def _titles() -> dict[str, str]:
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
    return {number: title for title, number in re.findall(r"^#{2,3} (([\d.]+) .*)$", text, re.MULTILINE)}


def plain(app: Sphinx, what: str, name: str, found: Any, options: Any, signature: str | None, returns: Any) -> Any:
    """A signature that Sphinx can read: made defaults are three dots, tensors have their short name."""
    short = None if signature is None else signature.replace("<factory>", "...").replace("~torch.", "")
    return short, returns


def break_title(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Let the title of an object's page break behind a dot or an underscore, on a narrow screen."""
    if page.startswith("api/objects/"):
        title = re.compile("(?<=<h1>)[^<]+")
        context["body"] = title.sub(lambda found: re.sub("(?<=[._])", "<wbr>", found[0]), context["body"], count=1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Give Sphinx the directive."""
    app.add_directive("public", Public)
    app.connect("builder-inited", write)
    app.connect("html-page-context", break_title)
    app.connect("autodoc-process-docstring", escape, priority=100)  # before napoleon reads the sections
    app.connect("autodoc-process-signature", plain)
    app.connect("autodoc-process-docstring", restore, priority=900)
    return {"parallel_read_safe": True}
