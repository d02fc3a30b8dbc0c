"""Datasets kept in zarr."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import xarray as xr

from landscape.geometry.planes import plane
from landscape.results import zarr_files
from landscape.results.zarr_files import Partial, load, save, sort_names
from landscape.surfaces.surface import surface
from tests.oracles import mlp_task, thetas


def _dataset() -> xr.Dataset:
    return xr.Dataset(
        {
            "loss": (("alpha", "beta"), np.array([[1.0, np.nan, 3], [4, 5, np.inf]]), {"units": "nats"}),
            "single": ("round", np.array([1, np.nan], dtype=np.float32)),
            "count": ("round", np.array([3, 2**40])),
            "kept": ("round", np.array([True, False])),
            "empty": ("rank", np.zeros(0)),
            "note": ((), "text"),
        },
        coords={"alpha": [0.0, 1], "beta": [0.0, 1, 2], "algorithm": ["FedAvg", "élan"], "round": [5, 9]},
        attrs={"analysis": "test", "seed": 8, "rate": 0.5},
    )


def test_a_saved_dataset_comes_back_identical(tmp_path):
    ds = _dataset()
    save(ds, tmp_path / "deep" / "x.zarr")
    found = load(tmp_path / "deep" / "x.zarr")
    assert found.identical(ds)
    assert {name: found[name].dtype for name in ds.variables} == {name: ds[name].dtype for name in ds.variables}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["x.zarr"]
    assert "digest" not in ds.attrs


def test_a_folder_as_one_file_comes_back_identical(tmp_path):
    ds = _dataset()
    for name in ("x.zarr.zip", "y.zarr.zip", "x.zarr.zip"):
        save(ds, tmp_path / name)
    assert load(tmp_path / "x.zarr.zip").identical(ds)
    assert (tmp_path / "x.zarr.zip").read_bytes() == (tmp_path / "y.zarr.zip").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.zarr.zip", "y.zarr.zip"]


def test_variables_come_back_in_the_order_of_their_names(tmp_path):
    save(_dataset().assign_coords(zone=1.0), tmp_path / "x.zarr")
    found = load(tmp_path / "x.zarr")
    assert list(found.variables) == [*sorted(found.coords), *sorted(found.data_vars)]
    assert list(found.attrs) == sorted(found.attrs)


def test_a_dataset_in_order_is_identical(tmp_path):
    ds = _dataset()
    names = list(ds.variables)
    assert sort_names(ds).identical(ds)
    assert list(ds.variables) == names
    assert list(sort_names(ds[["note", "loss"]]).variables) == ["alpha", "beta", "loss", "note"]


def test_saving_replaces(tmp_path):
    save(_dataset(), tmp_path / "x.zarr")
    changed = _dataset().drop_vars("count")
    save(changed, tmp_path / "x.zarr")
    assert load(tmp_path / "x.zarr").identical(changed)
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]


def test_a_failed_save_leaves_the_earlier_result(tmp_path, monkeypatch):
    save(_dataset(), tmp_path / "x.zarr")

    def full(*arguments, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr(xr.Dataset, "to_zarr", full)
    with pytest.raises(OSError, match="no space"):
        save(_dataset().drop_vars("count"), tmp_path / "x.zarr")
    assert load(tmp_path / "x.zarr").identical(_dataset())
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]


def test_a_save_stopped_between_its_renames_loses_nothing(tmp_path):
    save(_dataset(), tmp_path / "x.zarr")
    (tmp_path / "x.zarr").rename(tmp_path / ".x.zarr.old")
    assert load(tmp_path / "x.zarr").identical(_dataset())
    assert Partial(tmp_path / "x.zarr").known().identical(_dataset())


def test_absent_results_are_named(tmp_path):
    with pytest.raises(LookupError, match=r"no result at .*x\.zarr"):
        load(tmp_path / "x.zarr")


@pytest.mark.parametrize("damage", ["cut", "alter", "lose", "metadata", "foreign"])
def test_broken_results_are_named_and_never_used(tmp_path, damage):
    folder = tmp_path / "x.zarr"
    save(_dataset(), folder)
    chunk = next(path for path in sorted((folder / "loss").rglob("*")) if path.is_file() and path.name != "zarr.json")
    if damage == "cut":
        chunk.write_bytes(chunk.read_bytes()[:-5])
    elif damage == "alter":
        chunk.write_bytes((folder / "count" / "c" / "0").read_bytes())
    elif damage == "lose":
        chunk.unlink()
    elif damage == "metadata":
        (folder / "zarr.json").write_text("{")
    else:
        for path in folder.rglob("zarr.json"):
            path.unlink()
    with pytest.raises(LookupError, match=r"the result .*x\.zarr"):
        load(folder)


def test_altered_attributes_are_noticed(tmp_path):
    path = tmp_path / "a.zarr"
    save(_dataset(), path)
    for place, old, new in (("zarr.json", "test", "tent"), ("loss/zarr.json", "nats", "cats")):
        whole = (path / place).read_text()
        (path / place).write_text(whole.replace(f'"{old}"', f'"{new}"'))
        with pytest.raises(LookupError, match="not what was saved"):
            load(path)
        (path / place).write_text(whole)
    assert load(path).attrs["analysis"] == "test"


def test_attributes_are_text_or_numbers(tmp_path):
    with pytest.raises(ValueError, match="attribute 'ids' of the dataset is a list"):
        save(_dataset().assign_attrs(ids=[1, 2]), tmp_path / "x.zarr")
    ds = _dataset()
    ds.loss.attrs["range"] = (0, 1)
    with pytest.raises(ValueError, match="attribute 'range' of loss is a tuple"):
        save(ds, tmp_path / "x.zarr")
    assert list(tmp_path.iterdir()) == []


def test_a_partial_result_is_resumed_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["landscape.surfaces.surface"], "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr("landscape.sweep.threads.CHUNK_SECONDS", 0.0)
    task, partial = mlp_task(), Partial(tmp_path / "x.zarr")
    sweep = plane(*thetas(task, 3), points=(2, 3))
    assert partial.known() is None
    calls = []

    def stop(ds):
        partial.checkpoint(ds)
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        surface(task, sweep, checkpoint=stop)
    assert int(partial.known().loss.notnull().sum()) == 3
    assert surface(task, sweep, known=partial.known()).identical(surface(task, sweep))
    assert zarr_files.load(tmp_path / "x.zarr").identical(partial.known())


def test_missing_values_of_any_bits_are_read_again(tmp_path):
    odd = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)
    ds = xr.Dataset({"alone": ((), odd[0]), "loss": ("t", np.array([1.0, odd[0]]))}, coords={"t": [0.5, -odd[0]]})
    zarr_files.save(ds, tmp_path / "missing.zarr")
    found = zarr_files.load(tmp_path / "missing.zarr")
    assert np.isnan(found.alone)
    np.testing.assert_array_equal(found.loss, [1, np.nan])


def test_any_names_come_back(tmp_path):
    names = ["val/acc", "val", "a/b/c", "a/b", "/", ".", "..", "", "../../up", "zarr.json", "@0", "a b", "Ä/ü", "%2F"]
    names += ["A", "a", "x" * 300, "c/0"]
    ds = xr.Dataset({name: ("round", [float(place), np.nan]) for place, name in enumerate(names)}, attrs={"names": "a"})
    ds = sort_names(ds.assign_coords({"at/round": ("round", ["one", "two"]), "round": [5, 9]}))
    save(ds, tmp_path / "x.zarr")
    save(ds, tmp_path / "x.zip")
    assert load(tmp_path / "x.zarr").identical(ds)
    assert load(tmp_path / "x.zip").identical(ds)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.zarr", "x.zip"]
