"""Pre-trained starts: plain training in one place, the same bits again, and no sample that clients train on."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tiny
import torch
from safetensors.torch import load_file

from drift.config.load import read
from drift.simulation.pretrain import description_of, fit_images, pretrain
from drift.simulation.simulate import Diverged
from drift.training.data import build_task, read_data
from figures.cli import main
from landscape.datasets import open_dataset
from landscape.datasets._dataset import Groups
from landscape.model.samples import Samples
from landscape.sweep.evaluate import evaluate

OTHERS = ("task.classes=[3, 1]", "local.momentum=0.9", "clients.partition=iid")


def test_the_checkpoint_is_what_one_client_with_all_samples_learns(tmp_path):
    experiment = tiny.experiment(*OTHERS)
    path = tmp_path / "start.safetensors"
    seen = []
    about = pretrain(experiment, path, classes=[2, 0], epochs=3, progress=lambda *given: seen.append(given))
    assert [done for done, _, _ in seen] == [1, 2, 3]
    assert seen[-1][1] < seen[0][1]
    assert about["accuracy"] == seen[-1][2]
    here = tiny.experiment(*OTHERS, "task.classes=[2, 0]", f"init={path}")
    task = build_task(here, read_data(here, None))
    assert torch.equal(task.theta, task.layout.theta(load_file(path)))
    assert about["samples"] == len(read_data(here, None).samples["train"])


def test_metadata_tell_where_a_checkpoint_comes_from(tmp_path):
    path = tmp_path / "start.safetensors"
    made = pretrain(tiny.experiment(*OTHERS), path, classes=[2, 0], epochs=1)
    about = description_of(path)
    assert about == made
    wanted = {"dataset": "blobs", "model": "linear", "epochs": 1, "seed": 5, "numbers": [2, 0], "classes": ["2", "0"]}
    assert wanted.items() <= about.items()
    assert len(about["fingerprint"]) == 16
    assert 0 <= about["accuracy"] <= 1


def test_same_seed_same_bits_and_other_seed_others(tmp_path):
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        torch.rand(3)
        experiment = tiny.experiment(*OTHERS, f"seed={seed}")
        pretrain(experiment, tmp_path / f"{name}.safetensors", classes=[0, 2], epochs=2)
    one, two, other = (load_file(tmp_path / f"{name}.safetensors") for name in "abc")
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)
    digests = [tiny.experiment(f"init={tmp_path / name}.safetensors").init.digest for name in "abc"]
    assert digests[0] == digests[1] != digests[2]


def test_a_checkpoint_that_is_there_is_not_made_again_nor_overwritten(tmp_path):
    path, experiment, seen = tmp_path / "start.safetensors", tiny.experiment(*OTHERS), []
    made = pretrain(experiment, path, classes=[0, 2], epochs=1)
    before = path.stat().st_mtime_ns
    assert pretrain(experiment, path, classes=[0, 2], epochs=1, progress=lambda *given: seen.append(given)) == made
    assert not seen
    with pytest.raises(ValueError, match=r"start\.safetensors is another checkpoint"):
        pretrain(experiment, path, classes=[0, 2], epochs=2)
    assert path.stat().st_mtime_ns == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_start_that_diverges_leaves_no_file(tmp_path):
    with pytest.raises(Diverged, match=r"not finite after epoch 1; lower local\.lr"):
        pretrain(tiny.experiment(*OTHERS, "local.lr=1e38"), tmp_path / "start.safetensors", classes=[0, 2])
    assert list(tmp_path.iterdir()) == []


def test_samples_that_clients_train_on_are_refused(tmp_path):
    path = tmp_path / "start.safetensors"
    with pytest.raises(ValueError, match=r"train on classes \[1\] of blobs too; name another dataset"):
        pretrain(tiny.experiment(*OTHERS), path, classes=[0, 1])
    with pytest.raises(ValueError, match=r"train on classes \[1, 3\] of blobs too"):
        pretrain(tiny.experiment(*OTHERS), path)
    with pytest.raises(ValueError, match="epochs is 0"):
        pretrain(tiny.experiment(*OTHERS), path, classes=[0, 2], epochs=0)
    with pytest.raises(ValueError, match=r"start\.pt; give a name that ends in \.safetensors"):
        pretrain(tiny.experiment(*OTHERS), tmp_path / "start.pt", classes=[0, 2])
    with pytest.raises(ValueError, match="the experiment's have"):
        pretrain(tiny.experiment(), path, dataset="digits")


def test_a_domain_that_clients_train_on_is_refused(tmp_path, monkeypatch):
    own = replace(open_dataset("digits"), groups={"domain": Groups(("blobs", "usps"), torch.zeros(2), torch.zeros(2))})
    monkeypatch.setattr("drift.simulation.pretrain.open_dataset", lambda *_, **__: own)
    with pytest.raises(ValueError, match="blobs is a domain of digits, which the clients of the experiment train on"):
        pretrain(tiny.experiment("task.dataset=digits"), tmp_path / "start.safetensors", dataset="blobs")


def test_another_part_of_the_same_domains_is_not_the_clients_data(tmp_path, monkeypatch):
    def opened(name, *, domains=("mnist", "usps"), **_):
        digits = open_dataset("digits")
        group = Groups(tuple(domains), torch.zeros(len(digits.train)).long(), torch.zeros(len(digits.test)).long())
        return digits if name == "mnist" else replace(digits, name=name, groups={"domain": group})

    monkeypatch.setattr("drift.simulation.pretrain.open_dataset", opened)
    path, usps = tmp_path / "start.safetensors", "task.dataset_options={domains=['usps']}"
    experiment = tiny.experiment("task.dataset=digits3", usps, "local.steps=1")
    about = pretrain(experiment, path, dataset_options={"domains": ["mnist", "mnist_m"]}, epochs=1)
    assert about["dataset_options"] == {"domains": ["mnist", "mnist_m"]}
    with pytest.raises(ValueError, match=r"train on classes \[0, .*9\] of digits3 too"):
        pretrain(experiment, path, dataset_options={"domains": ["usps", "svhn"]})
    with pytest.raises(ValueError, match="usps is a domain of digits3, which the clients"):
        pretrain(experiment, path, dataset="digit5")
    with pytest.raises(
        ValueError, match=r"train on digits, which is a domain of digit5; .* --dataset-options domains="
    ):
        pretrain(
            tiny.experiment("task.dataset=mnist", "task.dataset_options={}"),
            path,
            dataset="digit5",
            dataset_options={"domains": ["digits", "svhn"]},
        )


def test_the_dataset_s_options_are_passed_on(tmp_path):
    path = tmp_path / "start.safetensors"
    about = pretrain(tiny.experiment(*OTHERS), path, classes=[2, 0], dataset_options={"samples": 50}, epochs=1)
    assert about["samples"] == 25
    with pytest.raises(ValueError, match=r"'scale' is not one of the dataset_options; it is the setting task\.scale"):
        pretrain(tiny.experiment(*OTHERS), path, classes=[2, 0], dataset_options={"scale": "unit"})
    with pytest.raises(ValueError, match=r"no option of dataset 'blobs' named 'sample'\. Did you mean 'samples'"):
        pretrain(tiny.experiment(*OTHERS), path, classes=[2, 0], dataset_options={"sample": 50})


def test_images_get_the_size_and_channels_of_the_experiment():
    targets = torch.arange(3)
    grey = Samples(torch.rand(3, 1, 6, 8), targets)
    colour = fit_images(grey, (3, 6, 8)).inputs
    assert colour.shape == (3, 3, 6, 8)
    assert torch.equal(colour[:, 2], grey.inputs[:, 0])
    torch.testing.assert_close(fit_images(Samples(colour, targets), (1, 6, 8)).inputs, grey.inputs)
    halved = fit_images(grey, (1, 3, 8)).inputs
    assert halved.shape == (3, 1, 3, 8)
    torch.testing.assert_close(halved.mean(), grey.inputs.mean(), rtol=0.1, atol=0.05)
    constant = Samples(torch.full((3, 1, 6, 8), 0.7), targets)
    torch.testing.assert_close(fit_images(constant, (3, 5, 4)).inputs, torch.full((3, 3, 5, 4), 0.7))
    assert fit_images(grey, (1, 6, 8)) is grey
    with pytest.raises(ValueError, match=r"\(2, 6, 8\), the experiment's have \(3, 6, 8\)"):
        fit_images(Samples(torch.rand(3, 2, 6, 8), targets), (3, 6, 8))


def test_accuracy_is_that_of_the_stored_model_with_its_buffers(tmp_path):
    others = ["task.dataset=digits", "task.dataset_options={}", "task.model=resnet8", "task.classes=[0, 1]"]
    experiment = tiny.experiment(*others, "local.batch=64")
    path = tmp_path / "start.safetensors"
    about = pretrain(experiment, path, classes=[7, 4], epochs=1)
    here = read(tiny.experiment(*others, "task.classes=[7, 4]"), f"init={path}")
    data = read_data(here, None)
    task = build_task(here, data)
    both = [data.samples[name] for name in ("test", "proxy")]  # the proxy set is taken out of the test set
    right = 0.0
    for part in both:
        error = evaluate(task, task.theta[None], torch.ones(1, 1), split=part, buffers=task.buffers[None])["error"]
        right += len(part) * (1 - float(error))
    assert right / sum(map(len, both)) == pytest.approx(about["accuracy"])
    assert int(load_file(path)["body.1.num_batches_tracked"]) >= 0


def test_the_command_prints_the_checkpoint_and_its_accuracy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiny.written(tmp_path)

    def called(*tokens):
        with pytest.raises(SystemExit) as end:
            main(list(tokens))
        out, err = capsys.readouterr()
        return end.value.code, out, err

    given = ["pretrain", "tiny.toml", "--set", "task.classes=[3, 1]", "--classes", "0", "2", "--epochs", "2"]
    given += ["--dataset-options", "samples=60", "spread=1.5"]
    code, out, err = called(*given)
    assert (code, out) == (0, "pretrained/blobs-linear-s5.safetensors\n")
    assert "epoch 2 of 2  loss" in err
    assert "test samples of blobs" in err
    assert "fedscape train tiny.toml --set init=pretrained/blobs-linear-s5.safetensors" in err
    begun = ["train", "tiny.toml", "--runs", "r", "--set", "task.classes=[3, 1]", "clients.partition=iid"]
    code, out, _ = called(*begun, "init=pretrained/blobs-linear-s5.safetensors", "init.head=new")
    assert code == 0
    code, out, err = called(*begun, "init=pretrained/absent.safetensors")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "no checkpoint" in err and "absent.safetensors" in err
