import numpy as np
import pytest
import xarray as xr

from figures.axes import matrices, model_quality
from figures.axes.units import amount
from figures.looks import style


@pytest.fixture
def values():
    held = np.array([[[0.5, 0.1, 0.2], [0.7, 0.3, 0.2]], [[0.4, 0.2, 0.1], [np.nan] * 3]])
    coords = {"algorithm": ["fedavg", "ima"], "seed": [1, 2], "mark": ["a", "b", "c"]}
    about = {"long_name": "accuracy", "units": "fraction"}
    return xr.DataArray(held, dims=("algorithm", "seed", "mark"), coords=coords, attrs=about)


def test_bars_are_means_of_seeds_in_groups(values):
    ax = model_quality.bars(values, ax=style.panels()[1][0, 0], over="mark")
    heights = [[bar.get_height() for bar in group] for group in ax.containers if hasattr(group, "patches")]
    np.testing.assert_allclose(heights, [[0.6, 0.2, 0.2], [0.4, 0.2, 0.1]])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "c"]
    assert ax.get_ylabel() == "accuracy"
    spans = [bar.get_x() for group in ax.containers if hasattr(group, "patches") for bar in group]
    assert len(set(spans)) == 6


def test_histogram_steps_stand_on_the_bins():
    ds = xr.Dataset({"count": ("value", [4.0, 9.0, 1.0])}, coords={"value": [-0.2, 0.0, 0.2]})
    ax = model_quality.histogram(ds, ax=style.panels()[1][0, 0])
    (step,) = ax.patches
    np.testing.assert_allclose(step.get_data().edges, [-0.3, -0.1, 0.1, 0.3])
    assert step.get_data().values.tolist() == [4, 9, 1]
    assert ax.get_yscale() == "log"


def test_matrix_has_models_in_rows():
    held = xr.DataArray([[0.9, 0.2, 0.3], [0.1, 0.8, np.nan]], dims=("client", "holder"))
    ax = matrices.matrix(held.assign_coords(client=[3, 7], holder=[3, 7, 9]), ax=style.panels()[1][0, 0])
    assert ax.images[0].get_array().shape == (2, 3)
    assert [text.get_text() for text in ax.texts] == [".90", ".20", ".30", ".10", ".80"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["3", "7"]


@pytest.mark.parametrize(("size", "marked"), [(12, False), (13, True), (61, False)])
def test_cells_below_0_of_a_matrix_without_numbers_have_a_minus(size, marked):
    values = np.ones((size, size))
    values[1, 5] = values[7, 2] = -1
    pairs = xr.DataArray(values, {"a": range(size), "b": range(size)}, ["a", "b"])
    lines = matrices.matrix(pairs, ax=style.panels()[1][0, 0], low=-1, high=1).lines
    assert [line.get_xydata().tolist() for line in lines if line.get_visible()] == [[[5, 1], [2, 7]]] * marked


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.82e9, "MAC", "1.82 GMAC"),
        (0.0123, "s", "12.3 ms"),
        (20.4, "s", "20.4 s"),
        (432, "B", "432 B"),
        (np.nan, "B", "\u2013"),
    ],
)
def test_costs_are_written_in_three_digits(value, unit, text):
    assert amount(value, unit) == text
