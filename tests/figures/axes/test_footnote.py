from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from figures.axes.footnote import footnote
from figures.looks import style

pytestmark = pytest.mark.seconds


def _plain(layout, **options):
    figure = Figure(layout=layout, figsize=(4, 3))
    ax = figure.add_subplot(**options)
    ax.plot([0, 1], [1, 2], label="a line")
    ax.set(xlabel="across", ylabel="up")
    figure.suptitle("title")
    return figure


def _with_a_shared_label():
    figure = _plain("constrained")
    figure.supxlabel("across all panels")
    figure.supylabel("up all panels")
    return figure


def _with_legend_below():
    figure = _plain(None)
    figure.subplots_adjust(bottom=0.3)
    figure.legend(loc="lower center")
    figure.text(0.5, 0.17, "of one's own")
    return figure


def _by_hand():
    figure = Figure(figsize=(4, 3))
    figure.add_axes((0.2, 0.2, 0.7, 0.6)).set_xlabel("across")
    return figure


def _of_parts():
    figure = Figure(figsize=(4, 3))
    for one in figure.subfigures(1, 2):
        one.subplots().set_xlabel("across")
    return figure


LAYOUTS = {
    **{str(name): (lambda name=name: _plain(name)) for name in (None, "none", "tight", "constrained", "compressed")},
    "an image": lambda: _plain(None, aspect="equal"),
    "shared label": _with_a_shared_label,
    "legend below": _with_legend_below,
    "by hand": _by_hand,
    "parts": _of_parts,
}


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_footnotes_stand_below_everything_in_a_figure_of_any_layout(make, tmp_path):
    """Figures of one's own are made as their authors like."""
    figure = make()
    before = figure.get_figheight()
    for text in ("first", "second of two lines, " * 9):
        footnote(figure, text)
    style.save(figure, tmp_path / "figure", ("png",))
    figure.draw_without_rendering()
    second, first = sorted((text for text in figure.texts if text.get_label() == "footnote"), key=_bottom)[::-1]
    rest = [*figure.axes, *figure.legends, *(text for text in figure.texts if text not in (first, second))]
    boxes = [one.get_tightbbox() for one in rest]
    assert 0 <= _bottom(first) < first.get_window_extent().y1 <= _bottom(second)
    assert second.get_window_extent().y1 <= min(box.y0 for box in boxes)
    assert max(box.y1 for box in boxes) <= figure.bbox.y1
    assert figure.get_figheight() > before + 0.3


def _bottom(text):
    return text.get_window_extent().y0


def test_no_line_of_a_footnote_begins_with_a_dot():
    figure = _plain(None)
    footnote(figure, " · ".join(["a" * length for length in range(9, 19)]))
    lines = figure.texts[-1].get_text().split("\n")
    assert len(lines) > 2 and not any(line.startswith("·") for line in lines)
    assert "\N{NO-BREAK SPACE}" not in figure.texts[-1].get_text()


def test_a_line_of_a_footnote_fills_the_page_and_stays_on_it():
    figure, _ = style.panels(1, 1)
    footnote(figure, "Note: the order of FedLAW, IMA by mean accuracy may be chance on 1900 test samples, 95 %. " * 3)
    figure.draw_without_rendering()
    assert 0.86 * figure.bbox.x1 < figure.texts[-1].get_window_extent().x1 <= figure.bbox.x1


def test_a_footnote_takes_nothing_from_axes_that_were_placed_by_hand():
    figure = _by_hand()
    before = figure.axes[0].get_window_extent().height / figure.dpi, 3 - figure.axes[0].get_position().y1 * 3
    footnote(figure, "note")
    place, tall = figure.axes[0].get_position(), figure.get_figheight()
    assert (place.height * tall, (1 - place.y1) * tall) == pytest.approx(before)


def test_footnotes_stand_above_each_other_below_the_panels():
    figure, axs = style.panels(1, 1, height=2.0)
    for text in ("first", "second"):
        footnote(figure, text)
    figure.draw_without_rendering()
    first, second = (text.get_window_extent() for text in figure.texts)
    assert figure.get_figheight() > 2.2
    assert 0 <= first.y0 < first.y1 <= second.y0
    assert second.y1 <= axs[0, 0].get_tightbbox().y0
