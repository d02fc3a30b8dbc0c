"""Datasets with further labels or without a test set, on tiny files in the hub's layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch

from landscape.datasets import _images, _source, _split, _union, open_dataset
from landscape.datasets._dataset import merge_splits, select_samples
from landscape.datasets._split import select_classes
from tests import hub

DIGITS = tuple("0123456789")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Iterator:
    """A data folder and a cache of its own."""
    monkeypatch.setenv("FEDSCAPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FEDSCAPE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def shrunk(monkeypatch, name, **changes):
    """A dataset's source with the counts of the tiny files."""
    module = import_module(f"landscape.datasets.{name}")
    source = replace(module.SOURCE, **{"labels_digest": "", "digest": "", **changes})
    monkeypatch.setattr(module, "SOURCE", source)
    if module.load.__module__ == _images.__name__:  # made by `loader`
        monkeypatch.setattr(module, "load", _images.loader(source))


def test_cifar100_has_fine_labels_as_classes_and_coarse_ones_as_groups(folder, monkeypatch):
    fine, coarse = [f"fine {n}" for n in range(100)], [f"coarse {n}" for n in range(20)]
    for split, count in (("train", 7), ("test", 3)):
        labels = np.arange(count) * 3
        columns = {"fine_label": (labels.tolist(), fine), "coarse_label": ((labels // 5).tolist(), coarse)}
        hub.write(folder / "cifar100", split, (3, 32, 32), columns, image="img", seed=count)
    shrunk(monkeypatch, "cifar100", train=7, test=3)
    for _ in range(2):  # decoded, then from the cache
        dataset = open_dataset("cifar100")
        assert dataset.train.targets.tolist() == [0, 3, 6, 9, 12, 15, 18]
        assert dataset.classes == tuple(fine)
        group = dataset.groups["coarse"]
        assert (group.names, group.train.tolist(), group.test.tolist()) == (
            tuple(coarse),
            [0, 0, 1, 1, 2, 3, 3],
            [0, 0, 1],
        )
    shrunk(monkeypatch, "cifar100", train=8, test=3)
    with pytest.raises(ValueError, match=r"7 train images, expected are 8 \(8 \+ 3 or 10000 \+ 2000\)"):
        open_dataset("cifar100")


def test_svhn_reads_the_cropped_digits_only(folder, monkeypatch):
    shrunk(monkeypatch, "svhn", train=4, test=2)
    for inside, seed in (("full_numbers", 9), ("cropped_digits", 0)):
        for split, count in (("train", 4), ("test", 2)):
            pixels = hub.write(folder / "svhn" / inside, split, (3, 32, 32), {"label": range(count)}, seed=seed + count)
    assert torch.equal(open_dataset("svhn", scale="unit").test.inputs, torch.from_numpy(pixels).float() / 255)


def test_the_hub_is_asked_for_the_folder_of_the_cropped_digits(tmp_path, monkeypatch):
    client = pytest.importorskip("huggingface_hub", reason="needs the extra `data`")
    shrunk(monkeypatch, "svhn", train=4, test=2)
    monkeypatch.delenv("FEDSCAPE_DATA")
    asked = []

    def download(repository, allow_patterns, **_):
        asked.append((repository, allow_patterns))
        for split, count in (("train", 4), ("test", 2)):
            hub.write(tmp_path / "hub" / "cropped_digits", split, (3, 32, 32), {"label": range(count)})
        return str(tmp_path / "hub")

    monkeypatch.setattr(client, "snapshot_download", download)
    assert len(open_dataset("svhn").train) == 4
    assert asked == [("ufldl-stanford/svhn", ["cropped_digits/train*.parquet", "cropped_digits/test*.parquet"])]


def test_synthdigits_are_not_on_the_hub_and_the_error_says_how_to_make_them(monkeypatch, folder):
    folder.mkdir()
    with pytest.raises(LookupError, match=r"no train\*\.parquet of synthdigits in .*synth_train_32x32\.mat"):
        open_dataset("synthdigits")
    monkeypatch.delenv("FEDSCAPE_DATA")
    with pytest.raises(LookupError, match=r"synthdigits is not on the Hugging Face hub\. Write .*FEDSCAPE_DATA=DIR"):
        open_dataset("synthdigits")


def test_standard_takes_the_training_images_own_moments_where_none_are_stated(folder, monkeypatch):
    _write_digits(folder, monkeypatch, synthdigits=(5, 2))
    unit, done = (open_dataset("synthdigits", data=folder, scale=scale) for scale in ("unit", "standard"))
    raw = unit.train.inputs.double()
    mean, std = raw.mean((0, 2, 3)), raw.transpose(0, 1).flatten(1).std(1, correction=0)
    torch.testing.assert_close(torch.tensor([done.mean, done.std]).double(), torch.stack([mean, std]))
    expected = (unit.test.inputs.double() - mean.view(3, 1, 1)) / std.view(3, 1, 1)
    torch.testing.assert_close(done.test.inputs, expected.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["fashion_mnist", "mnist", "usps", "cifar10"])
def test_published_digests_are_known(name):
    source = import_module(f"landscape.datasets.{name}").SOURCE
    assert all(len(digest) == 16 and int(digest, 16) for digest in (source.labels_digest, source.digest or "1" * 16))


@pytest.mark.parametrize(("text", "message"), [("", "missing"), ("pixels = 1", "pixels"), ("shape = [", "no TOML")])
def test_a_wrong_file_of_a_source_is_refused_in_one_line(tmp_path, monkeypatch, text, message):
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "toy.toml").write_text(text)
    monkeypatch.setattr(_source, "__file__", str(tmp_path / "_source.py"))
    with pytest.raises(ValueError, match=rf"toy\.toml: .*{message}"):
        _source.read_source("toy")


@pytest.mark.parametrize(("labels", "whole"), [("other", ""), ("own", "other")])
def test_a_copy_that_differs_from_the_published_set_is_told(folder, monkeypatch, labels, whole):
    _write_digits(folder, monkeypatch, mnist=(5, 2))
    plain = open_dataset("mnist")  # of another size than the published one: not compared
    own = _source.labels_digest(plain.train, plain.test)
    what = "other pixels" if whole else "other labels"
    shrunk(monkeypatch, "mnist", labels_digest=own if labels == "own" else labels, digest=whole)
    with pytest.warns(UserWarning, match=f"this copy of mnist has {what}.*cannot be compared"):
        open_dataset("mnist")
    shrunk(monkeypatch, "mnist", labels_digest=own, digest=plain.fingerprint)
    open_dataset("mnist")  # a warning would be an error


def test_femnist_is_split_by_writer_and_inverted_where_its_background_is_white(folder, monkeypatch):
    module = import_module("landscape.datasets.femnist")
    writers = ["f2"] * 13 + ["f1"] * 10 + ["f3"] * 2
    columns = {"writer_id": writers, "character": ([n % 62 for n in range(25)], module.SOURCE.classes)}
    pixels = hub.write(folder / "femnist", "train", (1, 28, 28), columns)
    shrunk(monkeypatch, "femnist", train=25)
    dark = torch.from_numpy(pixels if pixels.mean() < 127.5 else 255 - pixels)
    dataset = open_dataset("femnist", scale="unit", test_share=0.2)
    group = dataset.groups["user"]
    assert group.names == ("f1", "f2", "f3")
    assert group.train.bincount().tolist() == [8, 11, 2]
    assert group.test.bincount(minlength=3).tolist() == [2, 2, 0]
    numbers = torch.cat([dataset.train.targets, dataset.test.targets])  # the label is the row
    assert sorted(numbers.tolist()) == list(range(25))
    assert torch.equal(torch.cat([dataset.train.inputs, dataset.test.inputs]), dark[numbers].float() / 255)
    two = open_dataset("femnist", writers=2)
    assert two.groups["user"].names == ("f1", "f2")
    assert len(two.train) + len(two.test) == 23
    assert two.fingerprint != dataset.fingerprint
    with pytest.raises(ValueError, match="writers is 4; femnist has 3"):
        open_dataset("femnist", writers=4)
    with pytest.raises(ValueError, match="test_share is 1; femnist takes a fraction"):
        open_dataset("femnist", test_share=1)


def test_pacs_takes_a_tenth_of_each_domain_and_crops_the_centre(folder, monkeypatch):
    module = import_module("landscape.datasets.pacs")
    domains = np.repeat(["art_painting", "cartoon", "photo", "sketch"], [20, 31, 10, 12]).tolist()
    columns = {"domain": domains, "label": ([n % 7 for n in range(73)], module.SOURCE.classes)}
    hub.write(folder / "pacs", "train", (3, 10, 12), columns)
    shrunk(monkeypatch, "pacs", train=73)
    dataset = open_dataset("pacs", size=8)
    group = dataset.groups["domain"]
    assert group.names == ("photo", "art_painting", "cartoon", "sketch")
    assert group.test.bincount().tolist() == [1, 2, 3, 1]
    assert group.train.bincount().tolist() == [9, 18, 28, 11]
    assert dataset.train.inputs.shape[1:] == (3, 8, 8)
    few = open_dataset("pacs", size=8, domains=["sketch", "photo"])
    assert few.groups["domain"].names == ("sketch", "photo")
    assert few.groups["domain"].train.bincount().tolist() == [11, 9]
    order = torch.cat([dataset.train.inputs[group.train == number] for number in (3, 0)])
    assert torch.equal(few.train.inputs.flatten(1).sum(1).sort().values, order.flatten(1).sum(1).sort().values)
    with pytest.raises(ValueError, match=r"domains is \['clipart'\]; pacs takes a list of different ones of photo"):
        open_dataset("pacs", size=8, domains=["clipart"])
    with pytest.raises(ValueError, match="size is 2"):
        open_dataset("pacs", size=2)


def test_an_unknown_domain_in_the_files_is_named(folder, monkeypatch):
    columns = {"domain": ["photo", "drawing"], "label": [0, 1]}
    hub.write(folder / "pacs", "train", (3, 10, 12), columns)
    shrunk(monkeypatch, "pacs", train=2)
    with pytest.raises(ValueError, match="column domain of pacs holds 'drawing'; expected are photo, art_painting"):
        open_dataset("pacs", size=8)


def test_domainnet_names_its_classes_after_the_files_and_takes_few_of_each_domain(folder, monkeypatch):
    names = [f"thing {n}" for n in range(5)]
    known = import_module("landscape.datasets.domainnet").SOURCE.group_names["domain"]
    for split, count in (("train", 24), ("test", 12)):
        numbers = [n % 6 for n in range(count)]
        columns = {"domain": (numbers, known), "label": ([n % 5 for n in range(count)], names)}
        hub.write(folder / "domainnet", split, (3, 9, 11), columns)
    shrunk(monkeypatch, "domainnet", train=24, test=12, classes=5)
    dataset = open_dataset("domainnet", size=8, train_per_domain=3, domains=list(known[:5]))
    assert dataset.classes == tuple(names)
    assert dataset.groups["domain"].train.bincount().tolist() == [3] * 5
    assert dataset.groups["domain"].test.bincount().tolist() == [2] * 5
    shrunk(monkeypatch, "domainnet", train=24, test=12, classes=345)
    with pytest.raises(ValueError, match="names of 5 classes, expected are 345"):
        open_dataset("domainnet", size=8)


def _write_digits(folder, monkeypatch, **counts):
    for name, (train, test) in counts.items():
        source = import_module(f"landscape.datasets.{name}").SOURCE
        for split, count in (("train", train), ("test", test)):
            columns = {"label": ([n % 10 for n in range(count)], DIGITS)}
            hub.write(folder / name, split, source.shape, columns, seed=count)
        shrunk(monkeypatch, name, train=train, test=test)


def test_digit5_is_five_domains_of_one_size(folder, monkeypatch):
    _write_digits(folder, monkeypatch, mnist=(21, 12), svhn=(5, 2), usps=(6, 3), synthdigits=(7, 4), mnist_m=(8, 13))
    dataset = open_dataset("digit5", scale="unit", test_per_class=1)
    group = dataset.groups["domain"]
    assert group.names == ("mnist", "svhn", "usps", "synthdigits", "mnist_m")
    assert group.train.bincount().tolist() == [21, 5, 6, 7, 8]
    assert group.test.bincount().tolist() == [10, 2, 3, 4, 10]
    assert dataset.shape == (3, 28, 28)
    mnist = open_dataset("mnist")
    assert torch.equal(dataset.train.inputs[group.train == 0], mnist.train.inputs.expand(-1, 3, -1, -1))
    capped = open_dataset("digit5", size=32, train_per_domain=6, test_per_domain=3)
    assert capped.groups["domain"].train.bincount().tolist() == [6, 5, 6, 6, 6]
    assert capped.groups["domain"].test.bincount().tolist() == [3, 2, 3, 3, 3]
    svhn = open_dataset("svhn")
    assert torch.equal(capped.train.inputs[capped.groups["domain"].train == 1], svhn.train.inputs)
    with pytest.raises(ValueError, match=r"domains is 'mnist'; dataset 'digit5' takes a list of texts"):
        open_dataset("digit5", domains="mnist")
    with pytest.raises(ValueError, match="train_per_domain is 0"):
        open_dataset("digit5", train_per_domain=0)


def test_digits3_names_the_domain_whose_files_are_absent(folder, monkeypatch):
    _write_digits(folder, monkeypatch, mnist=(3, 2), usps=(3, 2))
    with pytest.raises(LookupError, match="of mnist_m in"):
        open_dataset("digits3")
    assert open_dataset("digits3", domains=["usps", "mnist"]).groups["domain"].names == ("usps", "mnist")


def test_resizing_keeps_means_and_constants():
    constant = _union._fit(_samples(torch.full((2, 1, 16, 16), 77, dtype=torch.uint8)), 28)
    assert constant.inputs.shape == (2, 3, 28, 28)
    assert (constant.inputs == 77).all()
    pixels = torch.randint(0, 256, (3, 1, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    found = _union._fit(_samples(pixels), 16).inputs.float().mean((1, 2, 3))
    assert found.tolist() == pytest.approx(pixels.float().mean((1, 2, 3)).tolist(), abs=4)


def _samples(pixels):
    from landscape.model.samples import Samples

    return Samples(pixels, torch.zeros(len(pixels), dtype=torch.int64))


def test_first_takes_the_first_of_each_group_in_order():
    groups = torch.tensor([2, 0, 2, 2, 0, 5, 2])
    assert _split.first(groups, 2).tolist() == [0, 1, 2, 4, 5]
    assert _split.first(groups, None).tolist() == list(range(7))


def test_apart_divides_every_group_and_one_group_does_not_change_another():
    groups = torch.tensor([0] * 10 + [1] * 7 + [3] * 3)
    train, test = _split.split_by_group(groups, 0.3, 1)
    assert sorted(torch.cat([train, test]).tolist()) == list(range(20))
    assert groups[test].bincount().tolist() == [3, 2]
    fewer = _split.split_by_group(groups[:17], 0.3, 1)[1]
    assert torch.equal(fewer, test)
    assert not torch.equal(_split.split_by_group(groups, 0.3, 2)[1], test)


def test_chosen_classes_and_merged_splits_keep_samples_and_groups_together(folder, monkeypatch):
    _write_digits(folder, monkeypatch, mnist=(21, 12), usps=(6, 3))
    dataset = open_dataset("digits3", domains=["mnist", "usps"])
    some = select_classes(dataset, [4, 2])
    assert some.train.targets.tolist() == [1, 0, 1, 0, 1, 0]  # labels 2 4 2 4 of mnist, 2 4 of usps
    assert some.groups["domain"].train.tolist() == [0, 0, 0, 0, 1, 1]
    assert some.fingerprint == dataset.fingerprint
    both = merge_splits(dataset)
    assert len(both.train) == 42
    assert both.groups["domain"].train.bincount().tolist() == [33, 9]
    assert torch.equal(both.train.inputs[27:], dataset.test.inputs)
    assert select_samples(dataset, None, None) is dataset


def test_images_without_bytes_are_refused(folder, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    (folder / "tiny").mkdir(parents=True)
    image = pa.array([{"bytes": None, "path": "a.png"}], pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    for split in ("train", "test"):
        parquet.write_table(pa.table({"image": image, "label": [0]}), folder / "tiny" / f"{split}.parquet")
    source = _source.Source("tiny", "nobody/tiny", (1, 4, 4), ("a",), 1, 1)
    with pytest.raises(ValueError, match="image 0 of tiny is not in the Parquet file"):
        _images.load(source)
