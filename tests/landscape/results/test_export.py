"""What other programs are given reads back to what was there."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import xarray as xr

from landscape.geometry.planes import plane
from landscape.results.export import RELIEF, csv_tidy, csv_wide, export_bytes, ply_mesh, vtk_grid
from landscape.surfaces.surface import surface
from tests.oracles import mlp_task, thetas


@pytest.fixture(scope="module")
def ds():
    task = mlp_task()
    return surface(task, plane(*thetas(task, 3), points=(3, 5), labels=("x", "y, z", "w")))


@pytest.fixture
def gap(ds):
    holed = ds.copy(deep=True)
    holed.loss.values[0, 0] = np.nan
    return holed.assign(each=(("group", "alpha", "beta"), np.arange(30.0).reshape(2, 3, 5))).assign_coords(
        group=["client 1", "client 7"]
    )


def read_vtk(data: bytes):
    """Points (n, 3), size of the grid and arrays of a legacy text file."""
    words = iter(data.decode("ascii").split("\n", 2)[2].split())
    assert [next(words) for _ in range(3)] == ["ASCII", "DATASET", "STRUCTURED_GRID"]
    assert next(words) == "DIMENSIONS"
    size = [int(next(words)) for _ in range(3)]
    assert next(words) == "POINTS"
    count = int(next(words))
    assert count == np.prod(size)
    assert next(words) == "double"
    points = np.array([float(next(words)) for _ in range(3 * count)]).reshape(count, 3)
    assert (next(words), int(next(words))) == ("POINT_DATA", count)
    arrays = {}
    for word in words:
        assert word == "SCALARS"
        name = next(words)
        assert [next(words) for _ in range(4)] == ["double", "1", "LOOKUP_TABLE", "default"]
        arrays[name] = np.array([float(next(words)) for _ in range(count)])
    return points, size, arrays


def read_ply(data: bytes):
    """Vertices by property, and faces of a text file."""
    header, _, body = data.decode("ascii").partition("end_header\n")
    lines = header.splitlines()
    assert lines[:2] == ["ply", "format ascii 1.0"]
    counts = {words[1]: int(words[2]) for words in map(str.split, lines) if words[0] == "element"}
    names = [line.split()[2] for line in lines if line.startswith("property double")]
    rows = body.splitlines()
    assert len(rows) == counts["vertex"] + counts["face"]
    vertices = np.array([row.split() for row in rows[: counts["vertex"]]], dtype=float)
    faces = np.array([row.split() for row in rows[counts["vertex"] :]], dtype=int)
    assert (faces[:, 0] == 3).all()
    return dict(zip(names, vertices.T, strict=True)), faces[:, 1:]


def test_vtk_holds_every_value_at_its_place(ds):
    points, size, arrays = read_vtk(vtk_grid(ds))
    assert size == [3, 5, 1]
    np.testing.assert_array_equal(points[:3, 0], ds.alpha)
    np.testing.assert_array_equal(points[::3, 1], ds.beta)
    assert set(arrays) == {"loss", "error"}
    for name, values in arrays.items():
        np.testing.assert_array_equal(values.reshape(5, 3).T, ds[name])


def test_infinite_values_lie_at_the_top_of_the_relief_and_missing_ones_at_its_bottom(ds):
    changed = ds.copy(deep=True)
    changed.loss.values[0, 0], changed.loss.values[1, 1] = np.inf, np.nan
    points, _, arrays = read_vtk(vtk_grid(changed))
    heights = points[:, 2].reshape(5, 3).T
    assert heights[0, 0] == heights.max() > 0 and heights[1, 1] == heights.min() == 0
    assert np.isinf(arrays["loss"].reshape(5, 3).T[0, 0])


def test_relief_is_in_proportion_to_the_loss(ds):
    points, _, arrays = read_vtk(vtk_grid(ds))
    longest = max(np.ptp(ds.alpha.values), np.ptp(ds.beta.values))
    assert (points[:, 2].min(), points[:, 2].max()) == pytest.approx((0, RELIEF * longest))
    assert np.corrcoef(points[:, 2], arrays["loss"])[0, 1] == pytest.approx(1)
    logged, _, _ = read_vtk(vtk_grid(ds, log=True))
    assert np.corrcoef(logged[:, 2], np.log(arrays["loss"]))[0, 1] == pytest.approx(1)


def test_ply_triangles_cover_the_plane_and_face_upwards(ds):
    vertices, faces = read_ply(ply_mesh(ds))
    np.testing.assert_array_equal(vertices["loss"].reshape(3, 5), ds.loss)
    np.testing.assert_array_equal(vertices["error"].reshape(3, 5), ds.error)
    assert len(faces) == 2 * 2 * 4
    corners = np.stack([vertices["x"], vertices["y"]], 1)[faces]
    one, two = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    areas = (one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0]) / 2
    assert (areas > 0).all()
    assert areas.sum() == pytest.approx(np.ptp(ds.alpha.values) * np.ptp(ds.beta.values))


def test_missing_points_are_nan_or_left_out_and_groups_are_layers(gap):
    _, _, arrays = read_vtk(vtk_grid(gap))
    assert np.isnan(arrays["loss"]).tolist() == [True] + [False] * 14
    np.testing.assert_array_equal(arrays["each_group_client_7"].reshape(5, 3).T, gap.each[1])
    vertices, faces = read_ply(ply_mesh(gap))
    assert len(vertices["x"]) == 14
    assert len(faces) == 14
    assert faces.max() == 13
    assert set(vertices) == {"x", "y", "z", "loss", "error", "each_group_client_1", "each_group_client_7"}


def test_names_become_ascii_and_stay_apart(ds):
    named = ds.assign({name: ds.loss + place for place, name in enumerate(("größe", "a b", "a_b", "x"))})
    _, _, arrays = read_vtk(vtk_grid(named))
    assert {"gro_e", "a_b", "a_b_", "x_"} <= set(arrays)
    assert (arrays["a_b_"] - arrays["a_b"]) == pytest.approx(1)
    assert {"gro_e", "a_b", "a_b_", "x_"} <= set(read_ply(ply_mesh(named))[0])


def test_csv_holds_every_number_to_the_bit(gap):
    rows = list(csv.DictReader(io.StringIO(csv_tidy(gap).decode())))
    assert list(rows[0]) == ["variable", *map(str, gap.dims), "value", "units"]
    assert len(rows) == sum(gap[name].size for name in gap.data_vars)
    for row in rows:
        held = gap[row["variable"]]
        place = {dim: row[dim] if dim in ("mark", "group") else float(row[dim]) for dim in held.dims}
        assert all(row[dim] == "" for dim in gap.dims if dim not in held.dims)
        value = held.sel(place).item()
        assert row["value"] == "" if np.isnan(value) else float(row["value"]) == value
        assert row["units"] == held.attrs.get("units", "")


def test_csv_takes_positions_whole_numbers_and_flags():
    plain = xr.Dataset({"count": ("round", [3, 2**53 + 1]), "flag": ((), True)}, attrs={"note": "a, b"})
    assert csv_tidy(plain).decode().splitlines() == [
        "variable,round,value,units",
        "count,0,3,",
        "count,1,9007199254740993,",
        "flag,,True,",
    ]


def test_a_wide_csv_has_a_column_per_number_and_no_row_of_attributes(gap):
    """Against a loop over places: loss (alpha, beta), each (group, alpha, beta), and the marks below them."""
    rows = list(csv.DictReader(io.StringIO(csv_wide(gap).decode())))
    assert set(rows[0]) == {*map(str, gap.dims), *map(str, set(gap.variables) - set(gap.dims))}
    grid, marks = [row for row in rows if row["alpha"]], [row for row in rows if not row["alpha"]]
    assert (len(grid), len(marks)) == (2 * 3 * 5, gap.sizes["mark"])
    for row in grid:
        at = {"group": row["group"], "alpha": float(row["alpha"]), "beta": float(row["beta"])}
        for name in ("loss", "error", "each"):
            value = gap[name].sel({dim: at[dim] for dim in gap[name].dims}).item()
            assert row[name] == "" if np.isnan(value) else float(row[name]) == value
        assert not row["mark"] and not row["mark_alpha"]
    assert [row["mark"] for row in marks] == gap.mark.values.tolist()
    assert [float(row["mark_alpha"]) for row in marks] == gap.mark_alpha.values.tolist()
    assert not any(row["loss"] for row in marks)


def test_a_wide_csv_repeats_scalars_and_takes_whole_numbers_and_nothing():
    plain = xr.Dataset({"count": ("round", [3, 2**53 + 1]), "flag": ((), True)}, attrs={"note": "a"})
    assert csv_wide(plain).decode().splitlines() == ["round,count,flag", "0,3,True", "1,9007199254740993,True"]
    assert csv_wide(xr.Dataset({"a": 1.5, "b": 2})).decode().splitlines() == ["a,b", "1.5,2"]
    assert csv_tidy(xr.Dataset()).decode().splitlines() == ["variable,value,units"]


def test_what_is_no_surface_is_refused(ds):
    with pytest.raises(ValueError, match="has loss over alpha; VTK and PLY take a surface"):
        export_bytes(ds.isel(beta=0), "vtk")
    with pytest.raises(ValueError, match="has no height; VTK"):
        ply_mesh(ds, height="height")
    with pytest.raises(ValueError, match="cannot export as 'obj'; the forms are csv, tidy, vtk, ply, nc"):
        export_bytes(ds, "obj")
    with pytest.raises(ValueError, match="only values above 0"):
        vtk_grid(ds.assign(loss=ds.loss - 10), log=True)
    assert export_bytes(ds, "ply") == ply_mesh(ds)


@pytest.mark.parametrize("text", ['=HYPERLINK("x")', "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "-", "-x"])
def test_text_of_a_csv_is_no_formula(text):
    ds = xr.Dataset({text: (("mark",), [1.0], {"units": text})}, {"mark": [text]}, {"note": text})
    rows = list(csv.reader(io.StringIO(csv_tidy(ds).decode())))
    assert rows[1:] == [[f"'{text}", f"'{text}", "1.0", f"'{text}"]]
    assert list(csv.reader(io.StringIO(csv_wide(ds).decode()))) == [["mark", f"'{text}"], [f"'{text}", "1.0"]]


def test_negative_numbers_of_a_csv_stay_numbers():
    ds = xr.Dataset({"slope": ("round", [-0.5, -1e-9])}, {"round": [-3, 4]})
    rows = list(csv.DictReader(io.StringIO(csv_tidy(ds).decode())))
    assert [(row["round"], row["value"]) for row in rows] == [("-3", "-0.5"), ("4", "-1e-09")]
