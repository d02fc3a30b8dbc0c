"""The loss at a checkpoint is that of the module which it came from, whatever the file holds beside it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from reference.registry import agree, reference
from safetensors.torch import save_file
from torch import nn

import landscape
from landscape import make_task

RANDOM = torch.Generator().manual_seed(1)
X = torch.randn(60, 5, generator=RANDOM, dtype=torch.float64)
Y = X[:, :3].argmax(1)
ENTROPY = nn.CrossEntropyLoss()


def net(seed: int = 3) -> nn.Sequential:
    """Two layers with batch normalisation that has seen data."""
    torch.manual_seed(seed)
    made = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)).double()
    made(X[:20] + seed)
    return made.eval()


def one_layer_wrapped(state: dict) -> dict:
    return {name.replace("0.", "0._orig_mod.", 1) if name.startswith("0.") else name: v for name, v in state.items()}


def averaged(path: Path) -> None:
    model = torch.optim.swa_utils.AveragedModel(net(), use_buffers=True)
    model.update_parameters(net())
    torch.save(model.state_dict(), path)


def in_parts(path: Path, name: str, save: Callable) -> None:
    state = net().state_dict()
    path.mkdir()
    table = {key: f"part-{place % 2}-{name}" for place, key in enumerate(state)}
    for file in set(table.values()):
        save({key: value for key, value in state.items() if table[key] == file}, path / file)
    (path / f"{name}.index.json").write_text(json.dumps({"weight_map": table}))


def optimiser() -> dict:
    made = torch.optim.Adam(net().parameters())
    ENTROPY(net()(X), Y).backward()
    made.step()
    return made.state_dict()


class Around(nn.Module):
    """A module with the model as a part, as a LightningModule."""

    def __init__(self) -> None:
        super().__init__()
        self.net = net()


def compiled(model: nn.Module) -> nn.Module:
    return torch.compile(model, backend="eager")


STATE = net().state_dict()
WRITERS: dict[str, Callable[[Path], object]] = {
    "state.pt": lambda path: torch.save(STATE, path),
    "model beside optimiser.pt": lambda path: torch.save({"model": STATE, "opt": optimiser(), "epoch": 3}, path),
    "params.pth": lambda path: torch.save({"round": 3, "content": {"params": STATE}}, path),
    "numbers.ckpt": lambda path: torch.save(
        {"state_dict": STATE, "best": np.float64(0.9), "curve": np.ones(3), "at": Path("x")}, path
    ),
    "arguments.ckpt": lambda path: torch.save({"state_dict": STATE, "hyper_parameters": argparse.Namespace(a=1)}, path),
    "class weights.pt": lambda path: torch.save({"net": STATE, "class_weights": torch.ones(3)}, path),
    "before 1.6.pth.tar": lambda path: torch.save(
        {"state_dict": STATE, "arch": "net", "best": np.float32(1)}, path, _use_new_zipfile_serialization=False
    ),
    "whole module.pt": lambda path: torch.save(net(), path),
    "parallel.pt": lambda path: torch.save(nn.DataParallel(net()).state_dict(), path),
    "compiled.pt": lambda path: torch.save({f"_orig_mod.{name}": value for name, value in STATE.items()}, path),
    "one layer compiled.pt": lambda path: torch.save(one_layer_wrapped(STATE), path),
    "private.bin": lambda path: torch.save({f"_module.{name}": value for name, value in STATE.items()}, path),
    "fsdp.pt": lambda path: torch.save({f"_fsdp_wrapped_module.{name}": v for name, v in STATE.items()}, path),
    "around.ckpt": lambda path: torch.save({"state_dict": Around().state_dict()}, path),
    "averaged.pt": averaged,
    "list.pt": lambda path: torch.save(list(STATE.values()), path),
    "no end": lambda path: torch.save(STATE, path),
    "state.safetensors": lambda path: save_file(STATE, path),
    "named.npz": lambda path: np.savez(path, **{name: value.numpy() for name, value in STATE.items()}),
    "arrays.npz": lambda path: np.savez(path, *[value.numpy() for value in STATE.values()]),
    "objects.npz": lambda path: np.savez(
        path, **{name: value.numpy() for name, value in STATE.items()}, about=np.array([{"a": 1}], object), text="x"
    ),
    "safetensors in parts": lambda path: in_parts(path, "model.safetensors", save_file),
    "bin in parts": lambda path: in_parts(path, "pytorch_model.bin", torch.save),
    "two.pt[ema]": lambda path: torch.save(
        {"model": net(5).state_dict(), "ema": STATE}, path.with_name(path.name.removesuffix("[ema]"))
    ),
    "parts.ckpt[teacher]": lambda path: torch.save(
        {"state_dict": {f"{part}.{name}": v for part, seed in (("student", 5), ("teacher", 3))
                        for name, v in net(seed).state_dict().items()}},
        path.with_name(path.name.removesuffix("[teacher]")),
    ),
}  # fmt: skip


@reference("landscape.evaluate", by="torch: the module's own loss over all samples, float64")
@pytest.mark.filterwarnings("ignore:.*AveragedModel")
@pytest.mark.parametrize("name", WRITERS)
def test_the_loss_at_a_file_is_the_loss_of_its_module(name, tmp_path):
    WRITERS[name](tmp_path / name)
    task = make_task(net(7), ENTROPY, (X, Y))
    found = landscape.evaluate(task, [tmp_path / name], torch.ones(1, 1, dtype=torch.float64))["loss"]
    agree("landscape.evaluate", found.item(), ENTROPY(net()(X), Y).item(), relative=1e-12)


@reference("landscape.evaluate", by="torch: the module's own loss over all samples, float64")
@pytest.mark.parametrize("wrap", [nn.DataParallel, pytest.param(compiled, marks=pytest.mark.slow), Around])
def test_a_wrapped_model_reads_its_own_checkpoint_and_that_of_the_plain_one(wrap, tmp_path):
    class Called(Around):
        def forward(self, inputs):
            return self.net(inputs)

    model = Called() if wrap is Around else wrap(net(7))
    task = make_task(model.eval(), ENTROPY, (X, Y))
    torch.save(STATE, tmp_path / "plain.pt")
    own = {name: value for (name, _), value in zip(model.state_dict().items(), STATE.values(), strict=True)}
    torch.save(own, tmp_path / "own.pt")
    for given in (tmp_path / "plain.pt", tmp_path / "own.pt", STATE, net()):
        found = landscape.evaluate(task, [given], torch.ones(1, 1, dtype=torch.float64))["loss"]
        agree("landscape.evaluate", found.item(), ENTROPY(net()(X), Y).item(), relative=1e-12)
