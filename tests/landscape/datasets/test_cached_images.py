"""Images in Parquet files: decoded bit for bit, scaled, and kept in a cache that is checked when it is read."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from warm import printed

from landscape.datasets import _cache, _images, _source, open_dataset
from tests import hub

pytestmark = pytest.mark.usefixtures("cache")


TINY = _source.Source(
    name="tiny",
    repository="nobody/tiny",
    shape=(3, 4, 6),
    classes=("T-shirt/top", "dog", "cat"),
    train=7,
    test=3,
    mean=(0.5, 0.25, 0.125),
    std=(0.5, 0.2, 0.1),
)


GREY = replace(TINY, shape=(1, 4, 6), mean=(0.5,), std=(0.25,))


def parquet_folder(folder, source, *, column="image", names=None, seed=0, label="label"):
    """Data folder with a random dataset in Parquet; returns the pixels (n, C, H, W) and labels of each split."""
    written = {}
    for number, (split, count) in enumerate((("train", source.train), ("test", source.test))):
        labels = np.arange(count) % len(source.classes)
        columns = {label: (labels.tolist(), names or source.classes)}
        pixels = hub.write(folder / source.name, split, source.shape, columns, image=column, seed=(seed, number))
        written[split] = torch.from_numpy(pixels), torch.from_numpy(labels)
    return written


def test_scales_follow_their_formulas(tmp_path):
    from landscape.datasets._dataset import scale_inputs

    pixels, labels = parquet_folder(tmp_path, TINY)["train"]
    raw = _images.load(TINY, tmp_path)
    assert raw.train.inputs.dtype == torch.uint8
    unit = pixels.double() / 255
    mean, std = (torch.tensor(v, dtype=torch.float64).view(3, 1, 1) for v in (TINY.mean, TINY.std))
    expected = {"unit": unit, "half": (unit - 0.5) / 0.5, "standard": (unit - mean) / std, "default": unit}
    for scale, values in expected.items():
        done = scale_inputs(raw, scale)
        torch.testing.assert_close(done.train.inputs, values.float(), rtol=1e-6, atol=1e-6)
        assert torch.equal(done.train.targets, labels)
        assert done.fingerprint == raw.fingerprint
        assert (done.scale, done.levels) == ("unit" if scale == "default" else scale, None)
    assert torch.equal(raw.train.inputs, pixels)


@pytest.mark.parametrize(("source", "column"), [(TINY, "image"), (TINY, "img"), (GREY, "img")])
def test_parquet_images_survive_bit_for_bit_and_the_cache_repeats_them(tmp_path, cache, source, column):
    written = parquet_folder(tmp_path, source, column=column)
    first = _images.load(source, tmp_path)
    (kept,) = cache.iterdir()
    again = _images.load(source, tmp_path)
    for dataset in (first, again):
        for split, (pixels, labels) in written.items():
            assert torch.equal(getattr(dataset, split).inputs, pixels)
            assert torch.equal(getattr(dataset, split).targets, labels)
    assert first.fingerprint == again.fingerprint
    assert set(load_file(kept)) == {"train.inputs", "train.targets", "test.inputs", "test.targets"}


def test_the_folder_of_the_environment_is_used(tmp_path, monkeypatch):
    pixels, _ = parquet_folder(tmp_path, TINY)["test"]
    monkeypatch.setenv("FEDSCAPE_DATA", str(tmp_path))
    assert torch.equal(_images.load(TINY).test.inputs, pixels)


def test_a_cache_hit_decodes_nothing_and_imports_no_decoder(tmp_path):
    parquet_folder(tmp_path, TINY)
    _images.load(TINY, tmp_path)
    code = (
        "import sys; from pathlib import Path; from landscape.datasets import _images\n"
        f"_images.load(_images.{TINY!r}, Path({str(tmp_path)!r}))\n"
        "print([m for m in ('datasets', 'pyarrow', 'huggingface_hub', 'PIL') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_changed_files_are_decoded_anew(tmp_path, cache):
    parquet_folder(tmp_path, TINY)
    first = _images.load(TINY, tmp_path)
    pixels, _ = parquet_folder(tmp_path, TINY, seed=1)["train"]
    second = _images.load(TINY, tmp_path)
    assert torch.equal(second.train.inputs, pixels)
    assert first.fingerprint != second.fingerprint
    assert len(list(cache.iterdir())) == 2


def truncate(path):
    path.write_bytes(path.read_bytes()[:-5])


def cut_header(path):
    path.write_bytes(path.read_bytes()[:6])


def empty(path):
    path.write_bytes(b"")


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)


def drop_a_tensor(path):
    tensors = load_file(path)
    del tensors["test.targets"]
    save_file(tensors, path)


@pytest.mark.parametrize("damage", [truncate, cut_header, empty, flip_a_bit, drop_a_tensor])
def test_a_damaged_cache_file_is_noticed_and_rebuilt(tmp_path, cache, damage):
    written = parquet_folder(tmp_path, TINY)
    sound = _images.load(TINY, tmp_path)
    (kept,) = cache.iterdir()
    damage(kept)
    with pytest.warns(UserWarning, match=r"cache file .* is damaged \(.*\); it is decoded again"):
        rebuilt = _images.load(TINY, tmp_path)
    assert torch.equal(rebuilt.train.inputs, written["train"][0])
    assert rebuilt.fingerprint == sound.fingerprint
    assert list(cache.iterdir()) == [kept]
    assert _images.load(TINY, tmp_path).fingerprint == sound.fingerprint  # no warning: the file is sound again


def test_a_sound_cache_file_of_another_dataset_is_not_used(tmp_path, cache):
    parquet_folder(tmp_path, TINY)
    sound = _images.load(TINY, tmp_path)
    (kept,) = cache.iterdir()
    _cache.write(kept, _cache.CachedContent(sound.test, sound.train))
    assert _images.load(TINY, tmp_path).fingerprint == sound.fingerprint


def test_without_a_writable_cache_it_works_and_warns(tmp_path, monkeypatch):
    pixels, _ = parquet_folder(tmp_path, TINY)["train"]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEDSCAPE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="cannot be stored in .*FEDSCAPE_CACHE names another folder"):
        dataset = _images.load(TINY, tmp_path)
    assert torch.equal(dataset.train.inputs, pixels)


def test_a_write_that_fails_leaves_nothing(tmp_path, cache, monkeypatch):
    def full(tensors, path, metadata):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    parquet_folder(tmp_path, TINY)
    monkeypatch.setattr(_cache, "save_file", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        _images.load(TINY, tmp_path)
    assert list(cache.iterdir()) == []


def test_an_absent_folder_says_where_and_what_to_do(tmp_path):
    with pytest.raises(LookupError, match=rf"no train\*\.parquet of mnist in {tmp_path}/mnist\. .*FEDSCAPE_DATA=DIR"):
        open_dataset("mnist", data=tmp_path)


def test_a_hub_out_of_reach_is_one_clear_error():
    pytest.importorskip("huggingface_hub", reason="needs the extra `data`")
    code = (
        "from landscape.datasets import open_dataset\n"
        "try: open_dataset('mnist')\n"
        "except LookupError as error: print(error)"
    )
    closed = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": os.environ["FEDSCAPE_CACHE"]}
    for refused in ({"HF_HUB_OFFLINE": "1"}, {"HF_HUB_OFFLINE": "0"}):
        environment = closed | refused | {"no_proxy": "*", "NO_PROXY": "*"}
        said = printed(code, **environment)
        assert said.startswith("mnist was looked for on the Hugging Face hub (ylecun/mnist)")
        assert "FEDSCAPE_DATA=DIR" in said


def test_the_hub_is_asked_once(tmp_path, monkeypatch):
    client = pytest.importorskip("huggingface_hub", reason="needs the extra `data`")
    pixels, _ = parquet_folder(tmp_path, TINY)["train"]
    asked = []

    def download(repository, **_):
        asked.append(repository)
        return str(tmp_path)

    monkeypatch.setattr(client, "snapshot_download", download)
    assert torch.equal(_images.load(TINY).train.inputs, pixels)
    assert torch.equal(_images.load(TINY).train.inputs, pixels)
    assert asked == ["nobody/tiny"]


def test_without_the_decoder_the_extra_is_named(tmp_path, monkeypatch):
    parquet_folder(tmp_path, TINY)
    for name in ("pyarrow", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)
    for folder in (tmp_path, None):
        with pytest.raises(LookupError, match=r'pip install "fedscape\[data\]"'):
            _images.load(TINY, folder)


def test_a_folder_that_holds_something_else_is_refused(tmp_path, cache):
    parquet_folder(tmp_path, TINY)
    wrong = {
        "does not hold tiny: 7 train images, expected are 8": replace(TINY, train=8),
        "have the classes T-shirt/top, dog, cat; expected are a, b, c": replace(TINY, classes=("a", "b", "c")),
        "image 0 of tiny is 6x4 pixels; expected is 4x6": replace(TINY, shape=(3, 6, 4)),
    }
    for complaint, source in wrong.items():
        with pytest.raises(ValueError, match=complaint):
            _images.load(source, tmp_path)
    assert not cache.exists()


def test_class_names_may_be_spelt_differently(tmp_path):
    parquet_folder(tmp_path, TINY, names=("T - shirt / top", "Dog", "cat"))
    assert _images.load(TINY, tmp_path).classes == TINY.classes


def test_other_columns_and_broken_files_are_refused(tmp_path):
    parquet_folder(tmp_path, TINY, label="fine_label")
    with pytest.raises(ValueError, match="columns image, fine_label; image or img and label are needed"):
        _images.load(TINY, tmp_path)
    truncate(tmp_path / "tiny" / "train-00000-of-00001.parquet")
    with pytest.raises(ValueError, match="cannot be read"):
        _images.load(TINY, tmp_path)
