"""Formulas as MathML, which browsers draw without a network; and codes such as LAW-1 as targets of links."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def mathml(formula: str, block: bool = False) -> str:
    """A formula without the commands that docutils' converter does not know."""
    known = re.sub(r"\\rm\s+(\w+)", r"\\mathrm{\1}", re.sub(r"\\[bB]ig(?![a-z])", "", formula))
    return latex2mathml.tex2mathml(known.replace(r"\dots", r"\ldots").strip(), as_block=block)


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def targets(app: Sphinx, document: str, source: list[str]) -> None:
    """In place of `<a id="law-1"></a>`, which GitHub takes: a span with this name, which MyST takes."""
    source[0] = re.sub(r'<a id="([\w-]+)"></a>([\w-]+)', r"[\2]{#\1}", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Give Sphinx the renderer; conf.py names it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("source-read", targets)
    return {"parallel_read_safe": True}
