"""Datasets kept in netCDF files."""

from __future__ import annotations

import errno
import io
import sys

import h5py
import numpy as np
import pytest
import xarray as xr

from landscape.geometry.planes import plane
from landscape.results import atomic_write, netcdf_files
from landscape.results.netcdf_files import Partial, content, load, save, sort_names
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
            "large": (("alpha", "beta", "step"), np.arange(6.0 * 800).reshape(2, 3, 800)),
        },
        coords={"alpha": [0.0, 1], "beta": [0.0, 1, 2], "algorithm": ["FedAvg", "élan"], "round": [5, 9]},
        attrs={"analysis": "test", "seed": 8, "rate": 0.5, "nothing": "", "long": "x" * 100_000},
    )


def test_a_saved_dataset_comes_back_identical(tmp_path):
    ds = _dataset()
    save(ds, tmp_path / "deep" / "x.nc")
    found = load(tmp_path / "deep" / "x.nc")
    assert found.identical(ds)
    assert {name: found[name].dtype for name in ds.variables} == {name: ds[name].dtype for name in ds.variables}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["x.nc"]
    assert content(ds) == content(found) == (tmp_path / "deep" / "x.nc").read_bytes()


def test_other_programs_read_the_file(tmp_path):
    ds = _dataset().assign_coords(zone=1.0)
    save(ds, tmp_path / "x.nc")
    found = xr.load_dataset(tmp_path / "x.nc")
    assert found.algorithm.values.tolist() == ["FedAvg", "élan"] and str(found.note.values) == "text"
    assert found.drop_vars(["algorithm", "note"]).identical(ds.drop_vars(["algorithm", "note"]))
    with h5py.File(tmp_path / "x.nc") as file:
        assert file["loss"].attrs["units"] == "nats" and file["loss"].dims[1][0].name == "/beta"


def test_variables_come_back_in_the_order_of_their_names(tmp_path):
    save(_dataset().assign_coords(zone=1.0), tmp_path / "x.nc")
    found = load(tmp_path / "x.nc")
    assert list(found.variables) == [*sorted(found.coords), *sorted(found.data_vars)]
    assert list(found.attrs) == sorted(found.attrs)


def test_a_dataset_in_order_is_identical():
    ds = _dataset()
    names = list(ds.variables)
    assert sort_names(ds).identical(ds)
    assert list(ds.variables) == names
    assert list(sort_names(ds[["note", "loss"]]).variables) == ["alpha", "beta", "loss", "note"]


def test_a_selection_of_names_has_the_bytes_of_names_as_long_as_they_are():
    whole = xr.Dataset({"loss": ("mark", [1.0, 2.0])}, {"mark": ["client 1", "a far longer name"]})
    short = xr.Dataset({"loss": ("mark", [1.0])}, {"mark": ["client 1"]})
    assert whole.isel(mark=[0]).mark.dtype != short.mark.dtype
    assert netcdf_files.content(whole.isel(mark=[0])) == netcdf_files.content(short)


def test_saving_replaces(tmp_path):
    save(_dataset(), tmp_path / "x.nc")
    changed = _dataset().drop_vars("count")
    save(changed, tmp_path / "x.nc")
    assert load(tmp_path / "x.nc").identical(changed)
    assert [path.name for path in tmp_path.iterdir()] == ["x.nc"]


def test_a_failed_save_leaves_the_earlier_result(tmp_path, monkeypatch):
    save(_dataset(), tmp_path / "x.nc")

    def full(*paths):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(atomic_write.os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        save(_dataset().drop_vars("count"), tmp_path / "x.nc")
    assert load(tmp_path / "x.nc").identical(_dataset())
    assert [path.name for path in tmp_path.iterdir()] == ["x.nc"]


def test_absent_results_are_named(tmp_path):
    with pytest.raises(LookupError, match=r"no result at .*x\.nc"):
        load(tmp_path / "x.nc")
    assert Partial(tmp_path / "x.nc").known() is None


@pytest.mark.seconds
def test_no_altered_byte_reaches_the_reader_of_the_format(tmp_path, monkeypatch):
    path = tmp_path / "x.nc"
    save(_dataset(), path)
    whole = path.read_bytes()
    monkeypatch.setattr(h5py.File, "in_memory", lambda data: pytest.fail("it was read"))
    changes = [whole[:count] for count in (0, 7, 30, len(whole) // 2, len(whole) - 1)] + [whole + b"\0", b"foreign"]
    for place in (*range(0, len(whole), 397), *range(len(whole) - 40, len(whole), 3)):
        changes.append(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
    for changed in changes:
        path.write_bytes(changed)
        with pytest.raises(LookupError, match=r"the result .*x\.nc cannot be read \(it is not what was saved\)"):
            load(path)


def test_attributes_are_text_or_numbers(tmp_path):
    with pytest.raises(ValueError, match="attribute 'ids' of the dataset is a list"):
        save(_dataset().assign_attrs(ids=[1, 2]), tmp_path / "x.nc")
    ds = _dataset()
    ds.loss.attrs["range"] = (0, 1)
    with pytest.raises(ValueError, match="attribute 'range' of loss is a tuple"):
        save(ds, tmp_path / "x.nc")
    with pytest.raises(ValueError, match="note has a text with the character"):
        save(_dataset().assign(note="a\0b"), tmp_path / "x.nc")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[ns]", "S3", "object"])
def test_times_bytes_and_objects_are_refused(tmp_path, kind):
    values = np.array([None, 1.0], object) if kind == "object" else np.array([1, 2]).astype(kind)
    with pytest.raises(ValueError, match=r"v holds values of type .*numbers, booleans and text"):
        save(xr.Dataset({"v": ("t", values)}), tmp_path / "x.nc")


def test_another_program_finds_coordinates_types_and_scales(tmp_path):
    """xarray's own reader, which knows nothing of this writer; large, empty, scalar and text variables of odd names."""
    ds = xr.Dataset(
        {
            "is_large": ("x", np.arange(6000) % 2 == 0),
            "empty": (("x", "z"), np.zeros((6000, 0))),
            "complex": ((), 1 + 2j),
            "text": (("z2", "w"), [["a", "\u00e9"], ["", "b" * 300]]),
            "half": ("w", np.array([1, np.inf], np.float16)),
        },
        coords={"beside": ("x", np.arange(6000.0), {"units": "m"}), "seed": 5, "w": ["p", "q"], "y": [2**60, -1]},
        attrs={"count": 3, "share": 0.5, "text": "x" * 70_000},
    )
    save(ds, tmp_path / "x.nc")
    other = xr.load_dataset(tmp_path / "x.nc", engine="h5netcdf")
    assert other.coords.keys() == ds.coords.keys() and other.sizes == ds.sizes
    assert other.attrs == ds.attrs and other.beside.attrs == ds.beside.attrs
    for name, values in ds.variables.items():
        assert other[name].dtype.kind in "OU" or other[name].dtype == values.dtype, name
        assert (other[name].values == values.values).all(), name
    assert load(tmp_path / "x.nc").identical(ds)


def test_a_partial_result_is_resumed_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["landscape.surfaces.surface"], "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr("landscape.sweep.threads.CHUNK_SECONDS", 0.0)
    task, partial = mlp_task(), Partial(tmp_path / "x.nc")
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
    assert load(tmp_path / "x.nc").identical(partial.known())


def test_missing_values_of_any_bits_are_read_again(tmp_path):
    odd = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)
    ds = xr.Dataset({"alone": ((), odd[0]), "loss": ("t", np.array([1.0, odd[0]]))}, coords={"t": [0.5, -odd[0]]})
    save(ds, tmp_path / "missing.nc")
    found = load(tmp_path / "missing.nc")
    assert np.isnan(found.alone)
    assert found.loss.values.tobytes() == ds.loss.values.tobytes()


def test_any_names_come_back(tmp_path):
    names = ["val/acc", "val", "a/b/c", "a/b", "/", ".", "..", "", "../../up", "x.nc", "@0", "_3", "a b", "Ä/ü", "%2F"]
    names += ["A", "a", "x" * 300, "c/0"]
    ds = xr.Dataset({name: ("round", [float(place), np.nan]) for place, name in enumerate(names)}, attrs={"names": "a"})
    ds = sort_names(ds.assign_coords({"at/round": ("round", ["one", "two"]), "round": [5, 9]}))
    ds["over"] = ("no/coordinate", [1.0, 2.0, 3.0])
    save(ds, tmp_path / "x.nc")
    assert load(tmp_path / "x.nc").identical(ds)
    assert [path.name for path in tmp_path.iterdir()] == ["x.nc"]


def forged(path, change):
    """A file with right digest and description, whose netCDF part `change` (of an open h5py.File) has altered."""
    ds = xr.Dataset({"loss": ("t", [0.5, 2.0])})
    whole = content(ds)
    text = whole[: -len(netcdf_files._MARK) - netcdf_files._DIGEST]
    length = int.from_bytes(text[-8:], "little")
    file = io.BytesIO(text[: -8 - length])
    with h5py.File(file, "r+") as opened:
        change(opened)
    data = file.getvalue() + text[-8 - length :]
    path.write_bytes(data + netcdf_files._digest(data) + netcdf_files._MARK)


def test_values_in_other_files_are_not_read(tmp_path):
    """A forged file may name any file of the machine as the place of its numbers."""
    other, path = tmp_path / "other.h5", tmp_path / "x.nc"
    with h5py.File(other, "w") as file:
        file["loss"] = [1.0, 2.0]

    def external(file):
        del file["loss"]
        file.create_dataset("loss", (2,), "f8", external=[(str(other), 0, 16)])

    def virtual(file):
        del file["loss"]
        layout = h5py.VirtualLayout(shape=(2,), dtype="f8")
        layout[:] = h5py.VirtualSource(str(other), "loss", shape=(2,))
        file.create_virtual_dataset("loss", layout)

    def linked(file):
        del file["loss"]
        file["loss"] = h5py.ExternalLink(str(other), "loss")

    def renamed(file):
        file["values"] = file["loss"]
        del file["loss"]
        file["loss"] = h5py.SoftLink("/values")

    for change in (external, virtual, linked, renamed):
        forged(path, change)
        with pytest.raises(LookupError, match="is a link, which is not followed"):
            load(path)
    forged(path, lambda file: None)
    assert load(path).loss.values.tolist() == [0.5, 2.0]


def test_results_larger_than_memory_are_refused(tmp_path):
    def large(file):
        del file["loss"]
        file.create_dataset("loss", (10**14,), "f8", chunks=(10**6,))

    forged(tmp_path / "x.nc", large)
    with pytest.raises(LookupError, match="states 800000000000000 bytes"):
        load(tmp_path / "x.nc")
