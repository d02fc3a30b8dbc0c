"""Files made to do harm: nothing in them is run, nothing large is made for them, nothing outside is read."""

import io
import json
import os
import pickle
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch

from drift.analyses.rounds.coherence import coherence
from drift.importers.checkpoint_files import find_checkpoints
from drift.importers.models import read_sizes
from drift.importers.path_patterns import Patterns
from drift.runs.export_model import state_file
from drift.runs.run import Run
from drift.simulation.verify import verify
from drift.store import files as store
from drift.store import locks
from landscape.model.checkpoint import read_tensors
from landscape.results.atomic_write import write_bytes


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def npy(shape, data=b"", descr="<f8"):
    held = io.BytesIO()
    np.lib.format.write_array_header_1_0(held, {"descr": descr, "fortran_order": False, "shape": shape})
    return held.getvalue() + data


def zipped(path, entries, how=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", how) as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return path


def test_code_in_checkpoints_is_never_run(tmp_path):
    mark = tmp_path / "ran"
    torch.save({"w": Evil(mark)}, tmp_path / "a.pt")
    torch.save({"w": Evil(mark)}, tmp_path / "b.pth", _use_new_zipfile_serialization=False)
    (tmp_path / "c.pt").write_bytes(pickle.dumps(Evil(mark)))
    np.savez(tmp_path / "d.npz", w=np.array([Evil(mark)], object))
    for name in ("a.pt", "b.pth", "c.pt", "d.npz"):
        with pytest.raises(ValueError, match=r"no tensors by name|is a pickle of Python") as told:
            read_tensors(tmp_path / name)
        assert name in str(told.value)
    assert not mark.exists()
    with pytest.raises(FileNotFoundError):  # the trap does work
        pickle.loads(pickle.dumps(Evil(tmp_path / "no" / "where")))


def test_zip_bombs_are_refused_by_what_they_state(tmp_path):
    zeros = bytes(30_000_000)
    torch.save({"w": torch.zeros(8)}, tmp_path / "plain.pt")
    with zipfile.ZipFile(tmp_path / "plain.pt") as file:
        parts = {name: file.read(name) for name in file.namelist()}
    bombs = [
        zipped(tmp_path / "a.npz", {"w.npy": npy((3_750_000,), zeros)}, zipfile.ZIP_DEFLATED),
        zipped(tmp_path / "b.pt", {**parts, "archive/data/1": zeros}, zipfile.ZIP_DEFLATED),
    ]
    for path in bombs:
        assert path.stat().st_size < 100_000
        with pytest.raises(ValueError, match="zip bomb"):
            read_tensors(path)


@pytest.mark.parametrize("shape", [(10**15,), (2**40, 2**40), (3,)])
def test_shapes_that_npz_does_not_hold_are_refused(tmp_path, shape):
    path = zipped(tmp_path / "a.npz", {"w.npy": npy(shape, bytes(16))})
    with pytest.raises(ValueError, match="states shape"):
        read_tensors(path)


def test_a_value_repeated_without_end_is_refused(tmp_path):
    torch.save({"w": torch.zeros(1).expand(10**12)}, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"states 4000000000000 bytes and stores 4"):
        read_tensors(tmp_path / "a.pt")


def test_absurd_headers_of_safetensors_are_refused(tmp_path):
    header = json.dumps({"w": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}}).encode()
    for name, content in {
        "a": len(header).to_bytes(8, "little") + header,
        "b": (1 << 62).to_bytes(8, "little"),
    }.items():
        (tmp_path / f"{name}.safetensors").write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read"):
            read_tensors(tmp_path / f"{name}.safetensors")


@pytest.mark.parametrize("suffix", [".pt", ".npz", ".safetensors"])
def test_files_larger_than_free_memory_are_refused(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(state_file({"w": torch.zeros(1000)}, suffix))
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=3999))
    with pytest.raises(ValueError, match=r"states \d{4} bytes, and 3999 bytes of memory are free"):
        read_tensors(path)
    monkeypatch.undo()
    assert read_tensors(path)["w"].shape == (1000,)


def test_links_out_of_an_imported_folder_are_not_followed(tmp_path):
    torch.save({"w": torch.zeros(2)}, tmp_path / "secret.pt")
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck" / "global_1.pt").symlink_to(tmp_path / "secret.pt")
    with pytest.raises(ValueError, match="leads out of"):
        find_checkpoints(tmp_path / "ck", Patterns(None, "global_{round}.pt"))
    (tmp_path / "ck" / "global_1.pt").unlink()
    torch.save({"w": torch.zeros(2)}, tmp_path / "ck" / "global_2.pt")
    (tmp_path / "ck" / "more").symlink_to(tmp_path)
    assert find_checkpoints(tmp_path / "ck", Patterns(None, "global_{round}.pt")).links == ["more"]


def _all_of(folder):
    run = Run(folder)
    return run.about, run.round(1)


@pytest.mark.parametrize("name", ["rounds/000001.safetensors", "state.safetensors", "run.json"])
def test_links_out_of_a_run_are_not_followed(tmp_path, name):
    run = tiny.trained(tmp_path / "runs")
    moved = tmp_path / "elsewhere"
    (run.folder / name).rename(moved)
    (run.folder / name).symlink_to(moved)
    with pytest.raises(LookupError, match="leads out of"):
        _all_of(run.folder)
    (tmp_path / "link").symlink_to(run.folder)  # the folder of a run may be a link itself
    (run.folder / name).unlink()
    moved.rename(run.folder / name)
    assert Run(tmp_path / "link").round(1).index == 1


def test_links_laid_where_fedscape_writes_are_not_followed(tmp_path):
    run = tiny.trained(tmp_path / "runs")
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (run.folder / ".lock").unlink()
    (run.folder / ".lock").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic link"), locks.locked(run.folder):
        pass
    run.cached(coherence)
    (result,) = (run.folder / "results").glob("[!.]*.nc")
    lock = result.with_name(f".{result.name}.lock")
    lock.unlink()
    lock.symlink_to(precious)
    with pytest.raises(OSError, match="symbolic link"), locks.lock_result(result):
        pass
    (tmp_path / f".a.json.{os.getpid()}.part").symlink_to(precious)
    write_bytes(tmp_path / "a.json", b"{}")
    assert precious.read_text() == "mine" and not precious.is_symlink()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 10_000, "{}", '"x"'])
def test_absurd_descriptions_are_refused(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(LookupError, match=r"cannot be read|not written by fedscape|names no format"):
        _ = Run(tmp_path).about
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck" / "sizes.json").write_text(text)
    torch.save({"w": torch.zeros(2)}, tmp_path / "ck" / "global_1.pt")
    files = find_checkpoints(tmp_path / "ck", Patterns(None, "global_{round}.pt"))
    if text != "{}":
        with pytest.raises(ValueError, match=r"sizes\.json cannot be read"):
            read_sizes(tmp_path / "ck", files)


def test_a_description_with_a_right_digest_and_no_experiment_is_told(tmp_path):
    run = tiny.trained(tmp_path)
    about = {name: value for name, value in run.about.items() if name not in ("experiment", "digest", "format")}
    store.write_json(run.folder / "run.json", about)
    with pytest.raises(LookupError, match="contains no experiment"):
        _ = Run(run.folder).experiment
    assert "its experiment is not accepted" in str(verify(run.folder)[0])


def test_more_clients_than_anybody_has_are_refused_before_they_are_counted(tmp_path):
    run = tiny.trained(tmp_path)
    about = {name: value for name, value in run.about.items() if name not in ("digest", "format")}
    about["experiment"]["clients"]["number"] = 10**15
    store.write_json(run.folder / "run.json", about)
    with pytest.raises((LookupError, ValueError), match=r"clients\.number is 1000000000000000; give 1000000 or less"):
        _ = Run(run.folder).experiment
