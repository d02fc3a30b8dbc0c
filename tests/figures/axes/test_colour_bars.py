from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from figures.axes import matrices, surfaces
from figures.looks import style

pytestmark = pytest.mark.seconds


def test_a_bar_keeps_its_width_where_the_layout_is_done():
    figure, axs = style.panels(1, 2)
    levels = np.geomspace(0.43, 2.4, 14)
    for ax in axs.flat:
        ax.contourf(np.linspace(0.5, 2, 9).reshape(3, 3))
        ax.set_aspect(0.5)
    surfaces.colorbar(figure, axs.flat, levels, "loss")
    bar = figure.axes[-1]
    figure.draw_without_rendering()
    before = bar.get_window_extent().width
    figure.set_layout_engine("none")
    for _ in range(3):
        figure.draw_without_rendering()
    assert bar.get_window_extent().width == pytest.approx(before, rel=0.05)


def test_a_bar_stands_beside_its_matrix_whatever_is_below():
    figure, axs = style.panels(2, 1, height=5)
    axs[1, 0].plot([0, 1], label="a long name of a line")
    axs[1, 0].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    values = xr.DataArray(np.eye(3), {"client": range(3), "client_other": range(3)}, ("client", "client_other"))
    matrix = matrices.matrix(values, ax=axs[0, 0])
    figure.draw_without_rendering()
    bar = figure.axes[-1]
    assert 0 < (bar.get_position().x0 - matrix.get_position().x1) * figure.get_figwidth() < 0.15
    assert bar.get_position().height == pytest.approx(matrix.get_position().height)
