"""Which format a checkpoint has, by its content; formats that are not read are named with what converts them."""

import json
import zipfile
from pathlib import Path

from landscape.model.torch_files import LEGACY

SUFFIXES = (".pt", ".pth", ".ckpt", ".bin", ".tar", ".safetensors", ".npz")
"""Ends of the names by which checkpoints are found in a folder; a file that is named may end in any way."""


def file_format(path: Path) -> str:
    """The format of a file: safetensors, npz, zip or legacy (of torch.save).

    Raises:
        ValueError: If it is another one; the message has the command that converts it.
    """
    with open(path, "rb") as file:
        start = file.read(512)
    if start.startswith(b"PK\x03\x04"):
        return _format_of_zip(path)
    if start[:1] == b"\x80" and LEGACY in start[:32]:
        return "legacy"
    if start[8:9] == b"{" or path.suffix == ".safetensors":
        return "safetensors"
    for sign, (what, command) in _SIGNS.items():
        if start.startswith(sign):
            raise ValueError(_message(path, what, command))
    if start[257:262] == b"ustar":
        raise ValueError(_message(path, "a tar archive", "tar -xf {name}"))
    if path.suffix in _ENDINGS:
        raise ValueError(_message(path, *_ENDINGS[path.suffix]))
    if start[:1] == b"\x80" and 2 <= start[1] <= 5:
        raise ValueError(_message(path, "a pickle of Python, which may run any code", _PICKLE))
    raise ValueError(
        f"{path} is in no format of checkpoints, or its start is lost ({path.stat().st_size} bytes); copy it again, or "
        "save it by torch.save(model.state_dict(), 'NEW.pt')."
    )


def refuse_folder(path: Path, expected: str) -> None:
    """Raise for a folder without weights of transformers: ValueError with the command if its format is known.

    Raises:
        LookupError: If the format is unknown.
    """
    names = {entry.name for entry in path.iterdir()}
    for folder in (path, *(path / name for name in sorted(names))):
        if (folder / "data.pkl").is_file() and (folder / "data").is_dir():
            command = f"cd {folder.resolve().parent} && zip -0 -r NEW.pt {folder.resolve().name}"
            raise ValueError(f"{folder} is an unzipped file of torch.save; zip it again: {command}")
    for sign, (what, command) in _FOLDERS.items():
        if sign in names:
            raise ValueError(f"{path} is {what}; convert it: {command.format(path=path)}")
    listed = [name for name in sorted(names) if name.endswith(SUFFIXES)]
    listed += sorted(f"{file.parent.name}/" for file in path.glob("*/adapter_config.json"))
    have = f"; it has {', '.join(listed[:5])}" if listed else ""
    raise LookupError(f"{path} has no {expected}{have}; give the checkpoint file itself, or its folder.")


def _format_of_zip(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, NotImplementedError) as reason:
        raise ValueError(f"{path} cannot be read ({reason}); it is truncated: copy it again.") from reason
    ends = {name.rpartition("/")[2] for name in names}
    if "constants.pkl" in ends:
        raise ValueError(
            _message(path, "TorchScript", _python("torch.save(torch.jit.load({name!r}).state_dict(), {new!r})"))
        )
    if {"archive_format", "serialized_exported_program.json"} & ends:
        command = _python("torch.save(torch.export.load({name!r}).state_dict, {new!r})")
        raise ValueError(_message(path, "a program of torch.export", command))
    if "model.weights.h5" in ends:
        raise ValueError(_message(path, *_KERAS))
    if "data.pkl" in ends:
        return "zip"
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    raise ValueError(_message(path, "a zip file without tensors", "unzip {name}"))


def _message(path: Path, what: str, command: str) -> str:
    new = str(path.with_name(f"{path.stem}-state.pt"))
    line = command.format(name=str(path), new=new)
    return f"{path} is {what}, which is not read; convert it where you trust it: {line}"


def _python(line: str, modules: str = "torch") -> str:
    return f'python -c "import {modules}; {line}"'


_KERAS = (
    "a model of Keras",
    "KERAS_BACKEND=torch "
    + _python("torch.save(keras.saving.load_model({name!r}).state_dict(), {new!r})", "keras, torch"),
)
_PICKLE = _python("torch.save(pickle.load(open({name!r}, 'rb')), {new!r})", "pickle, torch")

_SIGNS: dict[bytes, tuple[str, str]] = {
    b"\x93NUMPY": (
        "one array of numpy",
        _python("torch.save(torch.from_numpy(numpy.load({name!r})), {new!r})", "numpy, torch"),
    ),
    b"\x89HDF": _KERAS,
    b"GGUF": ("GGUF, weights of llama.cpp", "give the folder of transformers that it was made from"),
    b"version https://git-lfs": ("a pointer of Git LFS", "git lfs pull"),
    b"<": ("a web page", "download the file itself"),
    b"\x1f\x8b": ("packed by gzip", "gunzip {name}"),
}
"""Formats by their first bytes."""

_ENDINGS: dict[str, tuple[str, str]] = {
    ".json": ("a table of settings", "give the folder that it lies in"),
    ".onnx": ("ONNX, whose tensors have other names", "save the state dict of the module that it was exported from"),
    ".msgpack": ("a checkpoint of Flax", "transformers: from_pretrained(FOLDER, from_flax=True).save_pretrained(NEW)"),
    ".index": ("a checkpoint of TensorFlow", "load it in TensorFlow and save its arrays by numpy.savez"),
}

_FOLDERS: dict[str, tuple[str, str]] = {
    ".metadata": (
        "a distributed checkpoint of torch",
        "python -m torch.distributed.checkpoint.format_utils dcp_to_torch {path} NEW.pt",
    ),
    "zero_to_fp32.py": ("a checkpoint of DeepSpeed", "python {path}/zero_to_fp32.py {path} NEW"),
    "saved_model.pb": ("a SavedModel of TensorFlow", "load it in Keras and save its arrays by numpy.savez"),
}
"""Formats of folders by a name in them."""


def weight_map(path: Path) -> list[str]:
    """Names of the files of an index of transformers, `{"weight_map": {tensor: file}}`.

    Raises:
        ValueError: If it is none, or names files outside its folder.
    """
    try:
        names = sorted(set(json.loads(path.read_text(encoding="utf-8"))["weight_map"].values()))
        if any(Path(name).name != name for name in names):
            raise ValueError("it names files outside its folder")
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as reason:
        raise ValueError(f"{path} cannot be read ({reason}); save the model again.") from reason
    return names
