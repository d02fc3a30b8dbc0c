"""Every dataset file: what it says it is, its options, listings and names that do not exist."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest
import torch
from kinds import one_of_each

from landscape import datasets
from landscape.datasets import open_dataset

pytestmark = pytest.mark.usefixtures("cache")


def folders(name):
    """Sub-folders of a data folder that a dataset is made of."""
    module = import_module(f"landscape.datasets.{name}")
    if hasattr(module, "_movielens"):
        return [name]
    return [name] if hasattr(module, "SOURCE") else list(getattr(module, "DOMAINS", ()))


EMBEDDED = [name for name in datasets.names() if not folders(name)]
DATA = os.environ.get("FEDSCAPE_DATA")
SMALLER = {"pacs": {"size": 48}, "digits3": {"domains": ["usps", "mnist_m"]}}
OTHERS_STATISTICS = ("cifar100", "domainnet", "femnist", "pacs")  # of CIFAR-10, of ImageNet, of other copies


def test_digits_are_those_that_scikit_learn_distributes():
    assert open_dataset("digits").fingerprint == "c3a6bab7bca71257"  # of sklearn.datasets.load_digits


LARGE = {"cifar10": "cifar100", "mnist": "fashion_mnist"}
"""Images that take long to unpack, and others of the same kind of file, which are read by default."""


@pytest.mark.parametrize("name", one_of_each(datasets.names(), set(datasets.names()) - set(LARGE)))
def test_every_dataset_is_what_it_says(name, monkeypatch, cache):
    if name not in EMBEDDED:
        if absent := [folder for folder in folders(name) if not DATA or not (Path(DATA) / folder).is_dir()]:
            pytest.skip(f"FEDSCAPE_DATA names no folder that holds {', '.join(absent)}")
        monkeypatch.setenv("FEDSCAPE_DATA", DATA)
    dataset = open_dataset(name, **SMALLER.get(name, {}))
    assert dataset.name == name
    assert len(dataset.fingerprint) == 16
    assert len(list(cache.glob("*"))) == len(SMALLER.get(name, {}).get("domains", folders(name)))
    for samples in (dataset.train, dataset.test):
        assert samples.inputs.dtype == torch.float32
        assert tuple(samples.inputs.shape[1:]) == dataset.shape
        assert samples.targets.dtype == torch.int64
        assert sorted(samples.targets.unique().tolist()) == list(range(len(dataset.classes)))
        assert samples.inputs.isfinite().all()
    for group in dataset.groups.values():
        assert [len(group.train), len(group.test)] == [len(dataset.train), len(dataset.test)]
        assert group.train.unique().tolist() == list(range(len(group.names)))
    if dataset.mean and name not in OTHERS_STATISTICS:
        standard = open_dataset(name, scale="standard").train.inputs
        assert standard.mean((0, 2, 3)).abs().max() < 2e-3
        assert (standard.std((0, 2, 3)) - 1).abs().max() < 3e-3


@pytest.mark.parametrize("name", datasets.names())
def test_every_dataset_has_one_line_that_describes_it(name):
    assert 10 < len(datasets.describe(name)) <= 120


def test_listings_import_no_torch():
    code = (
        "import sys; from landscape import datasets, models\n"
        "[p.describe(n) for p in (datasets, models) for n in p.names()]\n"
        "print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_digits_split_is_fixed_and_stratified():
    digits = open_dataset("digits")
    assert (len(digits.train), len(digits.test), digits.shape) == (1437, 360, (1, 8, 8))
    per_class = torch.stack([digits.train.targets.bincount(), digits.test.targets.bincount()])
    assert ((per_class[1] - per_class.sum(0) / 5).abs() < 1).all()
    both = torch.cat([digits.train.inputs, digits.test.inputs]).flatten(1)
    assert len(both.unique(dim=0)) == 1797
    assert (both.min(), both.max()) == (0, 1)
    assert torch.equal(both * 16, (both * 16).round())
    assert open_dataset("digits").fingerprint == digits.fingerprint


def test_blobs_follow_their_options_and_seed():
    options = {"classes": 3, "features": 5, "samples": 31, "spread": 0.25}
    blobs = open_dataset("blobs", **options, seed=4)
    assert blobs.train.inputs.shape == (31, 5)
    assert len(blobs.test) == 7
    assert blobs.train.targets.bincount().tolist() == [11, 10, 10]
    again, other = open_dataset("blobs", **options, seed=4), open_dataset("blobs", **options, seed=5)
    assert torch.equal(blobs.train.inputs, again.train.inputs)
    assert blobs.fingerprint == again.fingerprint != other.fingerprint
    narrow = open_dataset("blobs", **options | {"spread": 1e-6}, seed=4)
    centres = torch.stack([narrow.train.inputs[narrow.train.targets == c].mean(0) for c in range(3)])
    scatter = (blobs.train.inputs - centres[blobs.train.targets]).std()
    assert abs(scatter / 0.25 - 1) < 0.2


def test_bad_names_options_and_scales_are_named():
    with pytest.raises(ValueError, match="Did you mean 'fashion_mnist'"):
        open_dataset("fasion_mnist")
    with pytest.raises(ValueError, match=r"'blobs' named 'sed'\. Did you mean 'seed'\? Known: classes, .*, seed"):
        open_dataset("blobs", sed=3)
    with pytest.raises(ValueError, match="named 'seed'; there is no option of dataset 'digits'"):
        open_dataset("digits", seed=3)
    with pytest.raises(ValueError, match="no scale named 'unti'; accepted: default, unit, half, standard"):
        open_dataset("digits", scale="unti")
    with pytest.raises(ValueError, match="blobs holds real numbers"):
        open_dataset("blobs", scale="unit")
    with pytest.raises(ValueError, match="features is 'x'; dataset 'blobs' takes a whole number"):
        open_dataset("blobs", features="x")
    with pytest.raises(ValueError, match="spread is nan"):
        open_dataset("blobs", spread=float("nan"))
    with pytest.raises(ValueError, match="samples is 2; blobs takes a whole number, samples >= 3"):
        open_dataset("blobs", classes=3, samples=2)
    with pytest.raises(ValueError, match="spread is 0"):
        open_dataset("blobs", spread=0)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_datasets_warn_of_nothing(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_dataset(name)
