"""Files of a run: whole or not at all, and checked when read."""

import os
from dataclasses import replace

import pytest
import tiny
import torch
from safetensors import safe_open

from drift.store import file_layout, files, locks, numpy_files
from drift.store.files import Damaged
from drift.store.keep import Keep
from drift.store.round_record import Round


def record() -> Round:
    source = torch.Generator().manual_seed(1)
    return Round(
        index=3,
        ids=torch.tensor([1, 4]),
        sizes=torch.tensor([2, 7]),
        weights=torch.tensor([2 / 9, 7 / 9], dtype=torch.float64),
        gram=torch.eye(5, dtype=torch.float64),
        metrics={"loss": 0.1, "error": float("nan")},
        start=torch.randn(11, generator=source),
        end=torch.randn(11, generator=source),
        clients=torch.randn(2, 11, generator=source),
        client_buffers=torch.zeros(2, 0),
        extras={"gain": torch.tensor(0.5, dtype=torch.float64)},
    )


def test_a_round_comes_back_bit_for_bit(tmp_path):
    files.write_round(tmp_path, record(), Keep(), 5)
    found = files.read_round(tmp_path, 3)
    for name in ("ids", "sizes", "weights", "gram", "start", "end", "clients"):
        assert torch.equal(getattr(found, name), getattr(record(), name)), name
    assert found.metrics["loss"] == 0.1
    assert found.extras["gain"] == 0.5


def test_what_is_not_kept_is_absent_and_said(tmp_path):
    files.write_round(tmp_path, record(), Keep(clients="none", globals="none"), 5)
    found = files.read_round(tmp_path, 3)
    assert found.clients is None
    with pytest.raises(LookupError, match=r"round 3 kept no clients; train with --set keep\.clients=all"):
        found.kept("clients")
    with pytest.raises(LookupError, match=r"keep\.globals=all"):
        found.kept("end")


def test_bfloat16_deltas_are_close_and_halve_the_size(tmp_path):
    whole = replace(record(), start=torch.randn(4000), end=torch.randn(4000), clients=torch.randn(2, 4000))
    files.write_round(tmp_path / "a", whole, Keep(globals="none"), 5)
    files.write_round(tmp_path / "b", whole, Keep(globals="none", dtype="bfloat16 deltas"), 5)
    found = files.read_round(tmp_path / "b", 3)
    torch.testing.assert_close(found.deltas, whole.deltas, rtol=2**-7, atol=1e-5)
    sizes = [files.round_path(tmp_path / name, 3).stat().st_size for name in "ab"]
    assert sizes[0] - sizes[1] == pytest.approx(2 * 4000 * 2, abs=200)


def test_every_altered_byte_is_noticed(tmp_path):
    """One byte in each eighth of the file: length, header and data."""
    files.write_round(tmp_path, record(), Keep(), 5)
    path = files.round_path(tmp_path, 3)
    whole = path.read_bytes()
    places = [0, 3, 9, *range(40, len(whole), max(1, len(whole) // 60))]
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with pytest.raises(Damaged, match="000003"):
            files.read_round(tmp_path, 3)


def models(size: int = 3000) -> Round:
    """A round as training leaves it: clients near their start, one of them the start itself, odd numbers in others."""
    source = torch.Generator().manual_seed(2)
    start = torch.randn(size, generator=source)
    clients = start + 1e-3 * torch.randn(3, size, generator=source)
    clients[1] = start
    odd = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-45, -1e-45, 3.4e38, -3.4e38, 1.0]
    clients[2, : len(odd)] = torch.tensor(odd)
    weights = torch.full((3,), 1 / 3, dtype=torch.float64)
    ids, gram = torch.arange(3), torch.eye(6, dtype=torch.float64)
    carried = {"ids": ids, "control": torch.randn(3, size, generator=source).double()}
    return replace(
        record(), ids=ids, sizes=ids + 2, weights=weights, gram=gram, start=start, end=start + 1e-3, clients=clients,
        client_buffers=torch.zeros(3, 0), carried=carried,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_packed_models_come_back_bit_for_bit_and_are_smaller(tmp_path, dtype):
    whole = models()
    whole = replace(whole, **{name: getattr(whole, name).to(dtype) for name in ("start", "end", "clients")})
    for name, keep in (("raw", Keep()), ("packed", Keep(compress=True))):
        files.write_round(tmp_path / name, whole, keep, 5)
    found = files.read_round(tmp_path / "packed", 3)
    for name in ("start", "end", "clients"):
        bits = [getattr(part, name).view(torch.uint8) for part in (found, whole)]
        assert torch.equal(*bits), name
    assert torch.equal(found.carried["control"], whole.carried["control"])
    raw, packed = (files.round_path(tmp_path / name, 3).stat().st_size for name in ("raw", "packed"))
    assert packed < 0.85 * raw


def test_packed_rounded_differences_come_back_too(tmp_path):
    for name, compress in (("raw", False), ("packed", True)):
        files.write_round(tmp_path / name, models(), Keep(dtype="bfloat16 deltas", compress=compress), 5)
    raw, packed = (files.read_round(tmp_path / name, 3).clients for name in ("raw", "packed"))
    assert torch.equal(raw.view(torch.int32), packed.view(torch.int32))


def test_a_packed_round_that_was_altered_is_noticed(tmp_path):
    files.write_round(tmp_path, models(), Keep(compress=True), 5)
    path = files.round_path(tmp_path, 3)
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 60):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(Damaged, match="000003"):
            files.read_round(tmp_path, 3)


def test_runs_that_do_not_pack_have_a_name_and_files_without_it(tmp_path):
    assert tiny.experiment("keep.compress=false").hash == tiny.experiment().hash
    assert tiny.experiment("keep.compress=true").hash != tiny.experiment().hash
    files.write_round(tmp_path, models(), Keep(), 5)
    with safe_open(files.round_path(tmp_path, 3), framework="pt") as file:
        assert "packed" not in file.metadata()
        assert torch.equal(file.get_tensor("end"), models().end)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.99])
def test_a_truncated_file_is_named(tmp_path, share):
    files.write_round(tmp_path, record(), Keep(), 5)
    path = files.round_path(tmp_path, 3)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(Damaged, match="000003"):
        files.read_round(tmp_path, 3)


def test_a_renamed_round_is_noticed(tmp_path):
    files.write_round(tmp_path, record(), Keep(), 5)
    os.rename(files.round_path(tmp_path, 3), files.round_path(tmp_path, 2))
    with pytest.raises(Damaged, match="holds round 3, not 2"):
        files.read_round(tmp_path, 2)


def test_a_foreign_file_is_named(tmp_path):
    from safetensors.torch import save_file

    path = files.round_path(tmp_path, 0)
    path.parent.mkdir(parents=True)
    save_file({"theta": torch.zeros(3)}, path)
    with pytest.raises(Damaged, match="names no format of fedscape"):
        files.read_round(tmp_path, 0)


def test_an_altered_description_is_noticed(tmp_path):
    path = tmp_path / "run.json"
    files.write_json(path, {"seed": 1})
    assert files.read_json(path)["seed"] == 1
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(Damaged, match="altered"):
        files.read_json(path)


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    numpy_files.write_bytes(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        numpy_files.write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_a_second_writer_is_refused(tmp_path):
    with locks.locked(tmp_path), pytest.raises(RuntimeError, match="another process"), locks.locked(tmp_path):
        pass


def test_what_training_goes_on_with_begins_in_memory_as_torch_s_own_tensors_do(tmp_path):
    tensors = {
        "theta": torch.rand(7),
        "server.a": torch.rand(3),
        "server.b": torch.tensor(True),
        "server.c": torch.rand(5),
    }
    files.write_state(tmp_path, tensors, 1)
    read, _ = files.read_state(tmp_path)
    assert all(tensor.data_ptr() % numpy_files.ALIGNMENT == 0 for tensor in read.values())
    assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())


def test_a_header_is_padded_up_to_models_that_stand_in_the_file_where_it_can_be_read():
    forms = {"gram": ("float64", (3, 3)), "carried.x": ("float32", (2,)), "clients": ("float32", (2, 5))}
    for begin, padded in ((4096, True), (64, False), (file_layout.LONGEST_HEADER + 4096, False)):
        target = file_layout.layout(forms, {"about": "{}"}, begin)
        assert (target.spans["clients"].begin == begin) == padded
        assert len(target.head) % 8 == 0 and len(target.head) - 8 <= file_layout.LONGEST_HEADER
        assert int.from_bytes(target.head[:8], "little") == len(target.head) - 8
    assert target.spans["clients"].begin < target.spans["carried.x"].begin
