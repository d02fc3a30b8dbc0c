"""The visual linter finds faults; that figures of the gallery have none is in test_drawings."""

from __future__ import annotations

import xarray as xr
from visual_linter import lint

from figures.axes import surfaces
from figures.looks import style


def _panel(**options):
    with style.context():
        figure, axs = style.panels(1, 1, width=3.3, height=2.0, **options)
        axs[0, 0].plot([0, 1], [1, 2], label="first")
        return figure, axs[0, 0]


def test_the_linter_finds_nothing_in_a_plain_figure():
    assert lint(_panel()[0]) == []


def test_the_linter_finds_small_text():
    figure, ax = _panel()
    ax.text(0.5, 1.5, "tiny", fontsize=5)
    assert lint(figure) == ["text of 5.0 points: 'tiny'"]


def test_the_linter_finds_texts_that_overlap():
    figure, ax = _panel()
    for text in ("one", "two"):
        ax.text(0.5, 1.5, text, fontsize=7)
    assert lint(figure) == ["overlap: 'one' and 'two'"]


def test_the_linter_finds_text_outside():
    figure, ax = _panel()
    ax.text(1.0, 1.5, "a long text that leaves", fontsize=7, in_layout=False)
    assert lint(figure) == ["outside of the figure: 'a long text that leaves'"]


def test_the_linter_finds_an_empty_panel():
    with style.context():
        figure, axs = style.panels(2, 1, width=3.3, height=3.0)
        axs[0, 0].plot([0, 1], [1, 2])
        axs[1, 0].set_title("nothing")
    assert lint(figure) == ["empty panel nothing"]


def test_the_linter_finds_a_hidden_line_and_not_one_below_dashes():
    figure, ax = _panel()
    (above,) = ax.plot([0, 1], [1, 2], label="second", color="white")
    assert lint(figure) == ["first is hidden by second"]
    above.set_linestyle("--")
    assert lint(figure) == []


def test_the_linter_finds_lines_that_look_alike_in_grey():
    figure, ax = _panel()
    ax.lines[0].set_color("#0072B2")
    (other,) = ax.plot([0, 1], [2, 1], label="second", color="#D55E00")
    other.set_color("#C04000")
    assert lint(figure) == ["first and second look alike in grey"]
    other.set_marker("s")
    assert lint(figure) == []


def test_the_linter_finds_maps_above_their_scale():
    values = [[float(row + column) for column in range(6)] for row in range(5)]
    ds = xr.Dataset(
        {"loss": (("alpha", "beta"), values, {"long_name": "loss", "units": "nats"})},
        coords={"alpha": range(5), "beta": range(6)},
    )
    with style.context():
        figure, axs = style.panels(1, 1, width=3.3, height=2.6)
        levels = surfaces.common_levels(ds.loss, log=False, top=0.4)
        surfaces.contour(ds, ax=axs[0, 0], levels=levels, marks=False, bar=True)
    (fault,) = lint(figure)
    assert fault.endswith("of the maps of a scale are above it")
    with style.context():
        figure, axs = style.panels(1, 1, width=3.3, height=2.6)
        surfaces.contour(ds, ax=axs[0, 0], levels=surfaces.common_levels(ds.loss, log=False, top=0.95), marks=False)
    assert len(lint(figure)) == 1, "no bar states what is clipped"


def test_the_linter_finds_figures_taller_than_a_page():
    with style.context():
        figure, axs = style.panels(1, 1, width=3.3)
        axs[0, 0].plot([0, 1], [1, 2])
        figure.set_figheight(12.0)
    assert lint(figure) == ["12.0 inches tall"]
