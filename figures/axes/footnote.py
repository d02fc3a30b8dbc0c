"""Footnotes: small text below a figure in any layout, which makes it taller."""

import textwrap
from typing import Any

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine, TightLayoutEngine
from matplotlib.textpath import text_to_path
from matplotlib.transforms import ScaledTranslation

from figures.axes.legends import move_legends
from figures.looks import style
from figures.looks.layout import TEXT_BLOCK, CanvasFigure

_LABEL = "footnote"
"""Label of the texts that are footnotes."""


@style.styled
def footnote(figure: Figure, text: str) -> None:
    """Add small text below a figure, which becomes taller by it; a second footnote is placed above the first.

    Args:
        figure: In any layout.
        text: Plain; lines longer than the figure is wide are wrapped.
    """
    width = figure.get_figwidth()
    unbroken = text.replace(" \N{MIDDLE DOT}", "\N{NO-BREAK SPACE}\N{MIDDLE DOT}")  # no line begins with a dot
    font = FontProperties(size=style.small())
    for most in range(int(width / (0.4 * style.small() / 72)), 0, -1):  # the longest lines that fit
        lines = [line for phrase in unbroken.splitlines() for line in textwrap.wrap(phrase, most)]
        if all(text_to_path.get_text_width_height_descent(line, font, False)[0] < 68 * width - 6 for line in lines):
            break
    if not lines:
        return
    below = sum(_height(note.get_text()) for note in figure.texts if note.get_label() == _LABEL)
    note = "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")
    spilled = 0.0 if below or figure.get_layout_engine() else max(0.0, -float(figure.get_tightbbox().y0))
    _grow(figure, _height(note) + spilled)
    look: dict[str, Any] = {"fontsize": style.small(), "color": "#444444", "va": "bottom", "linespacing": 1.25}
    look |= {"transform": figure.dpi_scale_trans, "label": _LABEL}
    style.stand_out([figure.text(0.04, below + 0.03, style.literal(note), **look)])
    style.keep_fonts(figure)


def _height(note: str) -> float:
    """Height of a footnote, inches."""
    return 1.3 * style.small() / 72 * len(note.splitlines()) + 0.05


def _grow(figure: Figure, more: float) -> None:
    """Add `more` inches at the bottom of a figure; its contents keep their size and their distance from the top.

    A figure that would then be taller than a page has lower panels.
    """
    width, height = (float(size) for size in figure.get_size_inches())
    taller = min(height + more, TEXT_BLOCK) if isinstance(figure, CanvasFigure) else height + more
    if figure.subfigs and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")  # nothing else moves subfigures

    def up(y: float) -> float:
        return (y * height + more if y < 0.5 else taller - (1 - y) * height) / taller

    engine = figure.get_layout_engine()
    texts = [text for text in figure.texts if text.get_transform() == figure.transFigure]
    if not isinstance(engine, ConstrainedLayoutEngine):
        move_legends(figure, up, beside="below")  # before what they may be anchored to
    figure.set_size_inches(width, taller)
    if isinstance(engine, ConstrainedLayoutEngine):  # it places legends and titles of the figure too
        for text in figure.texts:
            if text.get_text() == figure.get_supxlabel():  # placed at the lower edge of the figure
                text.set_transform(text.get_transform() + ScaledTranslation(0, more, figure.dpi_scale_trans))
        left, low, wide, high = engine.get()["rect"]
        engine.set(rect=(left, up(low), wide, up(low + high) - up(low)))
        move_legends(figure, up, beside="below")
        return
    if isinstance(engine, TightLayoutEngine):
        left, low, right, high = engine.get()["rect"]
        engine.set(rect=(left, up(low), right, up(high)))
    else:
        for ax in figure.axes:
            box = ax.get_position(original=True)
            ax.set_position((box.x0, up(box.y0), box.width, box.height * height / taller))
    for text in texts:
        text.set_y(up(text.get_position()[1]))
