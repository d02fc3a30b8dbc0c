"""Files of other formats: read as tensors, or refused by name with what converts them."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import tarfile
import zipfile

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
from torch import nn

from landscape import make_task
from landscape.model.foreign_tensors import found_in
from tests.landscape.model.test_checkpoint import ENTROPY, TASK, X, Y, loss, net, own


def test_quantised_weights_are_refused(tmp_path):
    state = net().state_dict()
    torch.save(state | {"0.weight": state["0.weight"].to(torch.int8)}, tmp_path / "a.pt")
    with pytest.raises(
        ValueError, match=r"'0\.weight' is torch\.int8, the model has torch\.float32; save it unquantised"
    ):
        loss(TASK, tmp_path / "a.pt")


def foreign(path):
    """Files of formats that are not read, and a part of the command that converts each."""
    (path / "keras.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(600))
    (path / "lfs.pt").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    (path / "page.pt").write_text("<!DOCTYPE html><html></html>")
    (path / "gguf.bin").write_bytes(b"GGUF" + bytes(100))
    (path / "packed.pt").write_bytes(gzip.compress(b"x" * 99))
    (path / "plain.pkl").write_bytes(pickle.dumps({"w": np.ones(3)}))
    (path / "empty.pt").write_bytes(b"")
    (path / "config.json").write_text("{}")
    np.save(path / "vector.npy", np.ones(3))
    np.savez(path / "objects.npz", w=np.array([1, None], dtype=object))
    optimiser = torch.optim.Adam(net().parameters())
    contents = {"number": torch.tensor(3.0), "matrix": torch.ones(2, 3), "nothing": {}, "text": "x"}
    contents |= {"adam": optimiser.state_dict(), "adam2": {"optimizer": optimiser.state_dict(), "epoch": 3}}
    for name, content in contents.items():
        torch.save(content, path / f"{name}.pt")
    (path / "net.onnx").write_bytes(b"\x08\x07\x12\x07pytorch" + bytes(99))
    with zipfile.ZipFile(path / "keras.keras", "w") as file:
        file.writestr("config.json", "{}")
        file.writestr("model.weights.h5", b"\x89HDF")
    with zipfile.ZipFile(path / "zip.pt", "w") as file:
        file.writestr("readme.txt", "no tensors")
    with tarfile.open(path / "tar.tar", "w") as file:
        file.add(path / "keras.h5", "keras.h5")
    return {
        "keras.h5": r"a model of Keras.*KERAS_BACKEND=torch",
        "keras.keras": r"a model of Keras.*keras\.saving\.load_model",
        "lfs.pt": "git lfs pull",
        "page.pt": "a web page",
        "gguf.bin": "GGUF",
        "packed.pt": "gunzip",
        "plain.pkl": r"pickle of Python, which may run any code.*pickle\.load",
        "empty.pt": "in no format of checkpoints",
        "config.json": "a table of settings.*give the folder that it lies in",
        "vector.npy": r"one array of numpy.*torch\.from_numpy\(numpy\.load\('.*vector\.npy'\)\)",
        "objects.npz": "holds a table of w and no tensors by name",
        "number.pt": r"holds one tensor of shape \(\) and no tensors by name",
        "matrix.pt": r"holds one tensor of shape \(2, 3\) and",
        "nothing.pt": "holds an empty table and",
        "text.pt": "holds a str and",
        "adam.pt": "holds the state of an optimiser and",
        "adam2.pt": "holds the state of an optimiser and",
        "net.onnx": "ONNX",
        "zip.pt": "zip file without tensors",
        "tar.tar": "tar -xf",
    }


def test_arrays_of_numpy_in_a_pickle_are_tensors_where_there_are_no_others(tmp_path):
    state = net().state_dict()
    arrays = {name: value.numpy() for name, value in state.items()}
    arrays["0.weight"] = np.asfortranarray(arrays["0.weight"].astype(">f8"))
    by_way = {"names": arrays, "table": {"model": arrays, "epoch": 3}, "order": list(arrays.values())}
    by_way["beside"] = {**state, "seen": np.ones(3), "accuracy": np.float64(0.9)}
    by_way["history"] = {"model": state, "curves": {"loss": np.ones(9)}}
    for name, content in by_way.items():
        for legacy in (False, True):
            torch.save(content, tmp_path / f"{name}.pt", _use_new_zipfile_serialization=not legacy)
            assert loss(TASK, tmp_path / f"{name}.pt") == pytest.approx(own(net()), rel=1e-6)
            assert len(found_in(tmp_path / f"{name}.pt")) == 1
    torch.save({"w": np.array([1, None], dtype=object), "t": np.array(["a"])}, tmp_path / "objects.pt")
    with pytest.raises(ValueError, match=r"objects\.pt holds a table of w, t and no tensors by name"):
        found_in(tmp_path / "objects.pt")


def test_foreign_formats_are_refused_by_name_with_what_converts_them(tmp_path):
    for name, message in foreign(tmp_path).items():
        with pytest.raises(ValueError, match=message) as refused:
            loss(TASK, tmp_path / name)
        assert name in str(refused.value) and "\n" not in str(refused.value)


def test_the_command_that_converts_an_array_makes_a_file_that_is_read(tmp_path):
    np.save(tmp_path / "v.npy", torch.cat([value.ravel() for value in net().state_dict().values()]).numpy())
    with pytest.raises(ValueError, match=r"v\.npy is one array") as refused:
        loss(TASK, tmp_path / "v.npy")
    (command,) = re.findall(r'python -c "(.*)"', str(refused.value))
    exec(command)
    assert loss(TASK, tmp_path / "v-state.pt") == pytest.approx(own(net()), rel=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_quantised_models_are_named_as_such(tmp_path):
    mixed = nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.Linear(8, 3))
    for model in (net(), mixed):
        small = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
        torch.save(small, tmp_path / "whole.pt")
        torch.save(small.state_dict(), tmp_path / "state.pt")
        task = make_task(model, ENTROPY, (X, Y))
        for given in (small, small.state_dict(), tmp_path / "state.pt", tmp_path / "whole.pt"):
            with pytest.raises(ValueError, match="a quantised model"):
                loss(task, given)


@pytest.mark.seconds
@pytest.mark.filterwarnings("ignore")
def test_torchscript_exports_and_unzipped_files_are_refused_by_name(tmp_path):
    torch.jit.script(net()).save(str(tmp_path / "script.pt"))
    torch.save(net().state_dict(), tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as file:
        file.extractall(tmp_path)
        file.extractall(tmp_path / "outer")
    dcp.save({"w": torch.ones(3)}, checkpoint_id=tmp_path / "many", no_dist=True)
    torch.export.save(torch.export.export(net(), (X,)), tmp_path / "program.pt2")
    for name, message in {
        "script.pt": r"is TorchScript.*torch\.jit\.load\('.*script\.pt'\)\.state_dict\(\)",
        "program.pt2": r"a program of torch\.export.*torch\.export\.load",
        "a": r"unzipped file of torch\.save.*zip -0 -r",
        "outer": r"outer.a is an unzipped file of torch\.save.*outer && zip -0 -r NEW\.pt a",
        "many": "dcp_to_torch",
    }.items():
        with pytest.raises(ValueError, match=message):
            loss(TASK, tmp_path / name)


def test_a_folder_names_what_it_has(tmp_path):
    (tmp_path / "f").mkdir()
    save_file(net().state_dict(), tmp_path / "f" / "last.safetensors")
    with pytest.raises(LookupError, match=r"has no model\.safetensors or .*; it has last\.safetensors; give the"):
        loss(TASK, tmp_path / "f")
    index = tmp_path / "f" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(net().state_dict(), "last.safetensors")}))
    assert loss(TASK, index) == loss(TASK, tmp_path / "f") == pytest.approx(own(net()), rel=1e-6)
    index.write_text('{"weight_map": {"0.weight": "absent.safetensors"}}')
    with pytest.raises(
        LookupError, match=r"has no absent\.safetensors, which its model\.safetensors\.index\.json names"
    ):
        loss(TASK, tmp_path / "f")
