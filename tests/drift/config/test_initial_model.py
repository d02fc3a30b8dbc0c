"""Runs that start from a checkpoint: its values, its digest in the run's name, and every mismatch in one line."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
import tiny
import torch
from safetensors.torch import save_file

from drift.config.experiment import Experiment
from drift.config.load import read
from drift.runs.run import open as open_run
from drift.simulation.pretrain import pretrain
from drift.simulation.simulate import simulate
from drift.simulation.verify import verify
from drift.training.data import build_task, read_data


def task_of(experiment):
    return build_task(experiment, read_data(experiment, None))


def stop_after_one(record):
    if record.index == 0:
        raise KeyboardInterrupt


def saved(path, *, seed=77, model="linear", change=None):
    """A state dict of another seed's model."""
    task = task_of(tiny.experiment(f"seed={seed}", f"task.model={model}"))
    state = {name: tensor.clone() for name, tensor in task.model.state_dict().items()}
    if change is not None:
        change(state)
    if path.suffix == ".safetensors":
        save_file(state, path)
    else:
        torch.save(state, path)
    return path


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".safetensors"])
def test_a_run_starts_from_the_values_of_a_checkpoint(suffix, tmp_path):
    path = saved(tmp_path / f"start{suffix}")
    run = tiny.trained(tmp_path, f"init={path}")
    assert torch.equal(run.round(0).start, task_of(tiny.experiment("seed=77")).theta)
    assert torch.equal(run.task.theta, run.round(0).start)
    assert verify(run.folder) == []


def test_the_digest_is_part_of_the_identity_and_the_path_is_not(tmp_path):
    one = saved(tmp_path / "one.pt")
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / "copy.pt"
    copy.write_bytes(one.read_bytes())
    other = saved(tmp_path / "other.pt", seed=78)
    names = {name: tiny.experiment(f"init={path}").slug for name, path in {"a": one, "b": copy, "c": other}.items()}
    assert names["a"] == names["b"] != names["c"]
    assert tiny.experiment().slug not in names.values()
    assert tiny.experiment(f"init.path={one}", "init.head=new").slug not in names.values()
    assert tiny.experiment(f"init={saved(tmp_path / 'one.safetensors')}").slug == names["a"]


def test_runs_without_a_start_or_chosen_classes_keep_the_name_that_they_had():
    experiment = tiny.experiment()
    content = experiment.resolved()
    assert content.pop("init") is None
    assert content["task"].pop("classes") is None
    assert content["keep"].pop("compress") is False
    assert content["method"].pop("like") is None
    content.pop("engine", None)
    content.pop("device", None)
    assert [content["clients"].pop(name) for name in ("work", "stops", "late")] == [[1.0, 1.0], 0.0, 0]
    assert [content["local"].pop(name) for name in ("compress", "topk")] == ["none", 0.1]
    if not content["clients"]["corrupted"]:
        del content["clients"]["corrupted"]
    text = json.dumps(content, sort_keys=True)
    assert experiment.hash == hashlib.sha256(text.encode()).hexdigest()[:8]
    assert tiny.experiment("task.classes=[0, 1, 2]").hash != experiment.hash


def test_a_recorded_run_is_read_with_its_digest(tmp_path):
    path = saved(tmp_path / "start.pt")
    run = tiny.trained(tmp_path, f"init={path}")
    again = Experiment.model_validate(run.about["experiment"])
    assert again.hash == run.about["hash"]
    assert read(again) == again
    assert simulate(again, runs=tmp_path).folder == run.folder
    saved(path, seed=79)
    with pytest.raises(ValueError, match=r"start\.pt has digest \w+, the experiment starts from \w+; restore the file"):
        task_of(again)
    assert tiny.experiment(f"init={path}").init.digest != again.init.digest


def test_a_run_starts_where_another_one_ended(tmp_path):
    first = tiny.trained(tmp_path / "first")
    second = tiny.trained(tmp_path / "second", f"init={first.folder}", "rounds=1")
    assert torch.equal(second.round(0).start, first.round(-1).end)
    shutil.rmtree(first.folder)
    assert torch.equal(open_run(second.folder).task.theta, second.round(0).start)


def test_a_run_keeps_a_copy_of_its_start_and_goes_on_without_the_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "drift.simulation.background_writer.SHARE", 0.0
    )  # a round is on disk before the next one trains
    path = saved(tmp_path / "start.pt")
    whole = tiny.trained(tmp_path / "whole", f"init={path}")
    begun = read(tiny.experiment(f"init={path}"))
    with pytest.raises(KeyboardInterrupt):
        simulate(begun, runs=tmp_path / "part", progress=stop_after_one)
    part = open_run(tmp_path / "part" / begun.slug)
    assert part.committed == 1
    assert verify(part.folder) == []
    path.unlink()
    moved = open_run(part.folder.rename(tmp_path / "moved"))
    assert torch.equal(moved.task.theta, moved.round(0).start)
    (tmp_path / "again").mkdir()
    moved.folder.rename(tmp_path / "again" / begun.slug)
    assert torch.equal(simulate(begun, runs=tmp_path / "again").round(-1).end, whole.round(-1).end)
    with pytest.raises(LookupError, match="init: no checkpoint"):
        simulate(begun, runs=tmp_path / "new")
    with pytest.raises(LookupError, match="init: no checkpoint"):
        read(begun, f"init={path}")


def test_buffers_of_a_checkpoint_and_of_a_run_come_along(tmp_path):
    overrides = ["task.dataset=digits", "task.dataset_options={}", "task.model=resnet8", "task.train_samples=40"]
    overrides += ["task.test_samples=30", "rounds=1", "proxy.per_class=1"]

    def moved(state):
        state["body.1.running_mean"] += 3

    plain = task_of(tiny.experiment(*overrides))
    state = {name: tensor.clone() for name, tensor in plain.model.state_dict().items()}
    moved(state)
    torch.save(state, tmp_path / "start.pt")
    first = tiny.trained(tmp_path / "first", *overrides, f"init={tmp_path / 'start.pt'}")
    buffers = first.task.layout.named_buffers(first.round(0).start_buffers)
    assert torch.equal(buffers["body.1.running_mean"], torch.full((16,), 3.0))
    second = tiny.trained(tmp_path / "second", *overrides, f"init={first.folder}")
    assert torch.equal(second.round(0).start_buffers, first.round(0).end_buffers)


def test_a_new_head_keeps_its_random_values(tmp_path):
    path = saved(tmp_path / "start.pt", model="mlp")
    fresh, old = (task_of(tiny.experiment("task.model=mlp", f"seed={seed}")).model for seed in (5, 77))
    found = task_of(tiny.experiment("task.model=mlp", f"init={path}", "init.head=new")).model
    assert torch.equal(found.head.weight, fresh.head.weight)
    assert torch.equal(found.body[1].weight, old.body[1].weight)


def test_a_frozen_backbone_holds_the_values_of_the_checkpoint(tmp_path):
    path = saved(tmp_path / "start.pt", model="mlp")
    task = task_of(tiny.experiment("task.model=mlp", f"init={path}", "task.freeze_backbone=true"))
    assert [name for name, _ in task.layout.parameters] == ["head.weight", "head.bias"]
    assert torch.equal(task.model.body[1].weight, torch.load(path)["body.1.weight"])


def test_every_mismatch_is_one_clear_line(tmp_path):
    def check(message, kind=ValueError, **saving):
        path = saved(tmp_path / "bad.safetensors", **saving)
        with pytest.raises(kind, match=message):
            task_of(tiny.experiment(f"init={path}"))

    def lacking(state):
        del state["head.bias"]

    def foreign(state):
        state["fc.weight"] = torch.zeros(3)

    def infinite(state):
        state["head.bias"][0] = torch.inf

    def wider(state):
        state["head.bias"] = torch.zeros(9)

    check(r"bad\.safetensors has no tensor 'head\.bias'; it has head\.weight\.", change=lacking)
    check("the model has no tensor 'fc.weight' of .*; it has head.weight, head.bias", change=foreign)
    check("tensor 'head.bias' of .* holds values that are not finite", change=infinite)
    check(r"'head\.bias' of .* has shape \(9,\), the model has \(\d,\)\. Set init\.head=new", change=wider)
    with pytest.raises(LookupError, match=r"init: no checkpoint .*absent\.pt; .*fedscape pretrain"):
        tiny.experiment(f"init={tmp_path / 'absent.pt'}")
    with pytest.raises(LookupError, match=r"init: .* has no model\.safetensors or .*fedscape pretrain"):
        tiny.experiment(f"init={tmp_path}")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ValueError, match=r"notes\.txt is in no format of checkpoints"):
        tiny.experiment(f"init={tmp_path / 'notes.txt'}")
    (tmp_path / "short.pt").write_text("hello")
    with pytest.raises(ValueError, match=r"short\.pt"):
        tiny.experiment(f"init={tmp_path / 'short.pt'}")
    with pytest.raises(ValueError, match=r"init\.head is 'old'"):
        tiny.experiment(f"init={tmp_path / 'short.pt'}", "init.head=old")
    with pytest.raises(ValueError, match="no setting in init named 'pth'"):
        tiny.experiment(f"init={tmp_path / 'short.pt'}", "init.pth=old")


def test_a_head_made_for_other_classes_is_refused(tmp_path):
    experiment = tiny.experiment("task.classes=[3, 1]", "local.steps=2", "clients.partition=iid")
    path = tmp_path / "start.safetensors"
    pretrain(experiment, path, classes=[0, 2], epochs=1)
    with pytest.raises(ValueError, match=r"the head of .* is for classes 0, 2, the task has 3, 1; set init\.head=new"):
        task_of(read(experiment, f"init={path}"))
    task_of(read(experiment, f"init={path}", "init.head=new"))


def test_classes_are_numbered_anew_in_their_order():
    whole = read_data(tiny.experiment(), None)
    some = read_data(tiny.experiment("task.classes=[2, 0]", "clients.partition=iid"), None)
    assert some.classes == (whole.classes[2], whole.classes[0])
    assert some.fingerprint == whole.fingerprint
    targets = whole.samples["train"].targets
    kept = (targets == 0) | (targets == 2)
    assert torch.equal(some.samples["train"].inputs, whole.samples["train"].inputs[kept])
    assert torch.equal(some.samples["train"].targets, (targets[kept] == 0).long())
    for wrong in ([0, 0], [0, 9], [-1, 0]):
        with pytest.raises(ValueError, match=r"classes is .*; give different numbers from 0 to \d"):
            read_data(tiny.experiment(f"task.classes={wrong}"), None)
