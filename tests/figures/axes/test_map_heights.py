from __future__ import annotations

import numpy as np
import pytest

from figures.axes import map_heights
from figures.looks import style

pytestmark = pytest.mark.seconds


def _maps(rows: int, columns: int, ratio: float):
    """A figure of maps that are `ratio` times as high as wide."""
    figure, axs = style.panels(rows, columns, height=1.0)
    for ax in axs.flat:
        ax.contourf(np.linspace(0, 2, 4), np.linspace(0, 2 * ratio, 3), np.arange(12.0).reshape(3, 4))
        ax.set_aspect("equal")
    return figure, axs


def _inches(figure, ax):
    """Size of a panel as it is drawn, and of its cell."""
    figure.draw_without_rendering()
    whole = figure.get_size_inches()
    return [(place.width * whole[0], place.height * whole[1]) for place in (ax.get_position(), ax.get_position(True))]


@pytest.mark.parametrize("ratio", [0.4, 1.1])
def test_maps_fill_their_cells_whatever_their_shape(ratio):
    figure, axs = _maps(2, 3, ratio)
    map_heights.fit_heights(figure, axs.ravel())
    for ax in axs.flat:
        drawn, cell = _inches(figure, ax)
        assert drawn == pytest.approx(cell, rel=0.05)
        assert drawn[1] == pytest.approx(ratio * drawn[0], rel=0.02)


@pytest.mark.parametrize(("again", "most"), [(False, map_heights.ROUNDS - 1), (True, map_heights.ROUNDS)])
def test_heights_before_labels_are_fitted_take_a_layout_less(again, most, monkeypatch):
    laid_out, lay_out = list[int](), map_heights.lay_out
    monkeypatch.setattr(map_heights, "lay_out", lambda figure: (laid_out.append(1), lay_out(figure)))
    monkeypatch.setattr(map_heights, "ENOUGH", 0.0)
    figure, axs = _maps(2, 3, 0.4)
    map_heights.fit_heights(figure, axs.ravel(), again=again)
    assert len(laid_out) == most


def test_high_maps_stay_on_a_page():
    figure, axs = _maps(6, 2, 3.0)
    map_heights.fit_heights(figure, axs.ravel())
    assert figure.get_figheight() <= map_heights.PAGE + 0.1


def test_rows_without_maps_keep_their_height():
    figure, axs = style.panels(1, 2, height=2.2)
    for ax in axs.flat:
        ax.plot([0, 1], [1, 3])
    map_heights.fit_heights(figure, axs.ravel())
    assert figure.get_figheight() == pytest.approx(2.2)


def test_images_without_axes_below_a_map_keep_their_height():
    figure, axs = style.panels(2, 1, height=6.0)
    axs[0, 0].contourf(np.arange(12.0).reshape(3, 4))
    axs[0, 0].set_aspect("equal")
    axs[1, 0].imshow(np.eye(3), aspect="auto")
    axs[1, 0].set_axis_off()
    before = _inches(figure, axs[1, 0])[0][1]
    map_heights.fit_heights(figure, axs.ravel())
    assert _inches(figure, axs[1, 0])[0][1] == pytest.approx(before, rel=0.05)
