"""Pickles made to do harm: nothing is imported or called, and nothing large is made, whatever their operations say."""

from __future__ import annotations

import builtins
import collections
import io
import os
import pickle
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from landscape.model.checkpoint import read_tensors
from landscape.model.inert_pickle import OPERATIONS, Inert, read_pickle
from landscape.model.numpy_pickles import unpickled_array
from landscape.model.torch_files import REBUILD

MARK = "fedscape-ran-code"


def archive(path: Path, content: bytes, parts: dict[str, bytes] | None = None) -> Path:
    """A file as torch.save writes it, with any pickle."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a/data.pkl", content)
        for key, data in (parts or {}).items():
            file.writestr(f"a/data/{key}", data)
    return path


def read(content: bytes) -> object:
    return read_pickle(io.BytesIO(content), REBUILD, lambda identifier: Inert("a storage"))


class Reduced:
    """Pickled as a call, with a state and entries if given."""

    def __init__(self, *parts):
        self.parts = parts

    def __reduce__(self):
        return self.parts


def touch(text: str = MARK) -> str:
    return f"open({text!r}, 'w').close()"


HOSTILE = {
    "system": lambda: Reduced(os.system, (f"touch {MARK}",)),
    "eval": lambda: Reduced(builtins.eval, (touch(),)),
    "exec": lambda: Reduced(builtins.exec, (touch(),)),
    "popen": lambda: Reduced(subprocess.Popen, (["touch", MARK],)),
    "mkdir": lambda: Reduced(os.mkdir, (MARK,)),
    "open": lambda: Reduced(builtins.open, (MARK, "w")),
    "getattr": lambda: Reduced(builtins.getattr, (Path, "touch")),
    "import": lambda: Reduced(builtins.__import__, ("antigravity",)),
    "path": lambda: Reduced(Path.touch, (Path(MARK),)),
    "iterator": lambda: Reduced(list, (), None, iter([Reduced(builtins.eval, (touch(),))])),
    "entries": lambda: Reduced(dict, (), None, None, iter([("a", Reduced(builtins.eval, (touch(),)))])),
    "state": lambda: Reduced(SimpleNamespace, (), {"__class__": Reduced(builtins.eval, (touch(),))}),
    "setstate": lambda: Reduced(collections.OrderedDict, (), {"__setstate__": Reduced(builtins.eval, (touch(),))}),
    "dotted": lambda: Reduced(torch.hub.load, ("owner/repository", "model")),
}


@pytest.fixture(autouse=True)
def nothing_may_run(tmp_path, monkeypatch):
    """Modules and files are as before: a pickle that runs anything is found."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield
    assert not (tmp_path / MARK).exists()
    assert not {"antigravity"} & (set(sys.modules) - before)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("name", HOSTILE)
def test_calls_in_a_pickle_are_never_made_and_the_weights_beside_are_read(name, protocol, tmp_path):
    content = {"state_dict": {"w": torch.arange(3.0)}, "more": HOSTILE[name]()}
    if protocol < 2:  # torch.save writes protocol 2 or later
        assert isinstance(read(pickle.dumps(HOSTILE[name](), protocol)), Inert | list | dict)
        return
    torch.save(content, tmp_path / "a.pt", pickle_protocol=protocol)
    assert read_tensors(tmp_path / "a.pt")["w"].tolist() == [0, 1, 2]
    torch.save(content, tmp_path / "b.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    assert read_tensors(tmp_path / "b.pt")["w"].tolist() == [0, 1, 2]


def test_the_trap_works(tmp_path):
    pickle.loads(pickle.dumps(HOSTILE["eval"]()))
    assert (tmp_path / MARK).exists()
    (tmp_path / MARK).unlink()


def op(*parts: bytes) -> bytes:
    return b"\x80\x04" + b"".join(parts) + b"."


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def class_(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


CALL = class_("builtins", "eval") + b"(" + text(touch()) + b"tR"

BY_HAND = {
    "build on a class": op(class_("collections", "OrderedDict"), b"}", text("update"), CALL, b"sb"),
    "build with slots": op(class_("builtins", "object"), b")R", b"N}", text("__class__"), CALL, b"s\x86b"),
    "build on a table": op(b"}", b"}", text("__setstate__"), CALL, b"sb"),
    "call of a call": op(
        class_("builtins", "getattr"), b"(", class_("os", "x"), text("system"), b"tR", b"(", text("x"), b"tR"
    ),
    "call of a text": op(text("eval"), b"(", text(touch()), b"tR"),
    "stack global": op(text("os"), text("system"), b"\x93", text("touch"), b"\x85R"),
    "dotted name": op(text("torch"), text("serialization.os.system"), b"\x93", text(f"touch {MARK}"), b"\x85R"),
    "old instance": op(b"(", text(touch()), b"ibuiltins\neval\n"),
    "old object": op(b"(", class_("builtins", "eval"), text(touch()), b"o"),
    "new object": op(class_("builtins", "eval"), text(touch()), b"\x85\x81"),
    "new object with names": op(class_("builtins", "eval"), text(touch()), b"\x85}\x92"),
    "persistent text": b"Pos.system\n.",
    "persistent call": op(CALL, b"Q"),
    "rebuild by another": op(
        class_("torch._tensor", "_rebuild_from_type_v2"), b"(", class_("os", "system"), b"N(", text("touch"), b"tNtR"
    ),
    "key that is a call": op(b"}", CALL, b"K\x01s"),
    "default of a table": op(
        class_("collections", "defaultdict"), class_("builtins", "eval"), b"\x85R", text(touch()), b"K\x01s"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_operations_written_by_hand_make_inert_data(name):
    found = read(BY_HAND[name])
    assert found is None or isinstance(found, Inert | dict | list | tuple | str)


BROKEN = {
    "nothing": b"",
    "no end": b"\x80\x02}",
    "empty stack": b"\x80\x02R.",
    "no mark": b"\x80\x02t.",
    "below the mark": b"\x80\x02K\x01(0000t.",
    "unknown memo": b"\x80\x02h\x05.",
    "extension": b"\x80\x02\x82\x01.",
    "buffer": b"\x80\x05\x97.",
    "odd table": b"\x80\x02(K\x01d.",
    "no name": b"\x80\x04K\x01K\x02\x93.",
    "no bytes": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "more bytes than there are": b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0fabc.",
    "a frame without end": b"\x80\x04\x95" + b"\xff" * 7 + b"\x7fN",
    "a number without end": b"I" + b"9" * 100_000 + b"\n.",
    "no operation": b"\x80\x02\xff.",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_pickles_are_refused_in_one_line(name, tmp_path):
    with pytest.raises(ValueError, match=r".") as refused:
        read_tensors(archive(tmp_path / "a.pt", BROKEN[name]))
    assert "a.pt" in str(refused.value) and "\n" not in str(refused.value) and len(str(refused.value)) < 500


def nested(depth: int) -> bytes:
    """A tuple of a tuple twice, twice, ...: 2^depth parts in some bytes, by the memo."""
    return b"\x80\x02)" + b"".join(b"q%c" % 1 + b"h%c" % 1 + b"\x86" for _ in range(depth))


@pytest.mark.seconds
@pytest.mark.parametrize("end", [b".", b"}" + b"q\x02h\x01K\x01s.", b"(lq\x02h\x01a.", b"R."])
def test_a_bomb_of_shared_parts_costs_nothing(end, tmp_path):
    begun = time.process_time()
    with pytest.raises(ValueError, match=r"a\.pt"):
        read_tensors(archive(tmp_path / "a.pt", nested(200) + end))
    deep = b"\x80\x02" + b"(" * 50_000 + b"t" * 50_000 + b"."
    with pytest.raises(ValueError, match=r"a\.pt"):
        read_tensors(archive(tmp_path / "a.pt", deep))
    assert time.process_time() - begun < 5


def test_tables_that_contain_themselves_end(tmp_path):
    content: dict = {"epoch": 1}
    content["again"] = content
    content["list"] = [content, [content]]
    torch.save(content | {"net": {"w": torch.ones(2)}}, tmp_path / "a.pt")
    assert read_tensors(tmp_path / "a.pt")["w"].tolist() == [1, 1]
    model = nn.Linear(2, 2)
    object.__setattr__(model, "_modules", {"self": model})
    torch.save(model, tmp_path / "b.pt")
    with pytest.raises(ValueError, match="contains itself"):
        read_tensors(tmp_path / "b.pt")


def test_a_pickle_of_absurd_length_is_refused(tmp_path, monkeypatch):
    assert OPERATIONS == 3_000_000
    monkeypatch.setattr("landscape.model.inert_pickle.OPERATIONS", 3_000)
    with pytest.raises(ValueError, match="more than 3000 operations"):
        read_tensors(archive(tmp_path / "a.pt", b"\x80\x02" + b"N0" * 1_509 + b"N."))


def stored(shape: bytes, stride: bytes, offset: bytes = b"K\x00", number: bytes = b"K\x04", kind: str = "FloatStorage"):
    """A table with one tensor, as torch.save writes it."""
    storage = b"(" + text("storage") + class_("torch", kind) + text("0") + text("cpu") + number + b"tQ"
    return op(
        b"}", text("w"), class_("torch._utils", "_rebuild_tensor_v2"), b"(", storage, offset, shape, stride, b"\x89",
        class_("collections", "OrderedDict"), b")RtRs",
    )  # fmt: skip


BIG = b"\x8a\x08" + (1 << 61).to_bytes(8, "little")
ABSURD = {
    "shape beyond the storage": stored(b"K\x05\x85", b"K\x01\x85"),
    "offset beyond the storage": stored(b"K\x02\x85", b"K\x01\x85", b"K\x03"),
    "stride beyond the storage": stored(b"K\x02\x85", BIG + b"\x85"),
    "negative stride": stored(b"K\x02\x85", b"J\xff\xff\xff\xff\x85"),
    "negative offset": stored(b"K\x02\x85", b"K\x01\x85", b"J\xff\xff\xff\xff"),
    "value repeated": stored(BIG + b"\x85", b"K\x00\x85"),
    "storage larger than its part": stored(b"K\x02\x85", b"K\x01\x85", number=BIG),
    "no shape": stored(b"N", b"N"),
    "shape of texts": stored(text("x") + b"\x85", b"K\x01\x85"),
    "other type": stored(b"K\x04\x85", b"K\x01\x85", kind="DoubleStorage"),
}


@pytest.mark.parametrize("name", ABSURD)
def test_tensors_that_the_file_does_not_hold_are_refused_before_memory_is_taken(name, tmp_path):
    values = np.arange(4, dtype=np.float32).tobytes()
    whole = archive(tmp_path / "good.pt", stored(b"K\x04\x85", b"K\x01\x85"), {"0": values})
    assert read_tensors(whole)["w"].tolist() == [0, 1, 2, 3]
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"a\.pt"):
        read_tensors(archive(tmp_path / "a.pt", ABSURD[name], {"0": values}))
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


@pytest.mark.seconds
@pytest.mark.parametrize("legacy", [False, True])
def test_a_file_cut_anywhere_or_with_flipped_bits_is_refused_or_right(legacy, tmp_path):
    values = {"a.weight": torch.arange(12.0).view(3, 4), "b": torch.arange(5), "c": torch.ones(2).half()}
    path, bad = tmp_path / "a.pt", tmp_path / "bad.pt"
    torch.save({"state_dict": values, "epoch": 3}, path, _use_new_zipfile_serialization=not legacy)
    whole = path.read_bytes()
    expected = read_tensors(path)
    assert all(torch.equal(expected[name], values[name]) for name in values)
    for length in range(0, len(whole) - 1, max(1, len(whole) // 60)):
        bad.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"bad\.pt"):
            read_tensors(bad)
    if not legacy:  # its values carry no checksum
        for place in range(0, len(whole), max(1, len(whole) // 120)):
            bad.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
            with suppress(ValueError):
                found = read_tensors(bad)
                assert {name: value.tolist() for name, value in found.items()} == {
                    name: value.tolist() for name, value in values.items()
                }


@pytest.mark.parametrize("legacy", [False, True])
def test_tensors_of_every_type_and_form_are_those_of_torch(legacy, tmp_path):
    base = torch.arange(24.0).view(2, 3, 4)
    held = {
        "view": base[:, 1:, ::2],
        "transposed": base.permute(2, 0, 1),
        "parameter": nn.Parameter(base[0]),
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0, 3),
        "shared": base,
        **{
            str(dtype): torch.ones(3).to(dtype)
            for dtype in (
                *(torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool),
                *(torch.complex64, torch.int8, torch.int16, torch.int32),
            )
        },
    }
    if not legacy:
        held |= {"small": torch.ones(3).to(torch.float8_e4m3fn), "unsigned": torch.ones(3).to(torch.uint16)}
    torch.save(held, tmp_path / "a.pt", _use_new_zipfile_serialization=not legacy)
    found = read_tensors(tmp_path / "a.pt")
    assert found.keys() == held.keys()
    for name, value in held.items():
        assert found[name].dtype == value.dtype and found[name].shape == value.shape
        assert torch.equal(found[name].double() if "float8" in str(value.dtype) else found[name].detach(),
                           value.double() if "float8" in str(value.dtype) else value.detach()), name  # fmt: skip


def stated_array(shape, code, content, order="<") -> Inert:
    """An array of numpy as a pickle states it."""
    kind = Inert("numpy.dtype", (code, False, True))
    kind.state = (3, order, None)
    array = Inert("numpy._core.multiarray._reconstruct", ())
    array.state = (1, shape, kind, False, content)
    return array


def test_an_array_of_numpy_has_the_bytes_that_it_states_or_is_none():
    assert unpickled_array(stated_array((2,), "f4", np.ones(2, "<f4").tobytes())).tolist() == [1, 1]
    swapped = stated_array((1, 2), "i4", np.array([3, 4], ">i4").tobytes(), ">")
    assert unpickled_array(swapped).tolist() == [[3, 4]]
    for shape, code, content in (
        *(
            ((10**12,), "u1", 10**12),
            ((10**15,), "f8", b"1"),
            ((-1,), "f8", b"1"),
            ((-1, -1), "f8", b"1"),
        ),
        *(
            ((2,), "f4", Inert("a storage")),
            (None, "f4", b""),
            (("2",), "f4", b""),
            ((1,), "f4,(99,99)f8", b"1234"),
        ),
    ):
        with pytest.raises((ValueError, TypeError)):
            unpickled_array(stated_array(shape, code, content))
    objects = stated_array((1,), "O8", b"x")
    assert unpickled_array(objects) is objects
