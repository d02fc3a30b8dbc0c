"""What landscape reads, an import reads: files of every ending, folders, and one of several state dicts."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from drift.importers.bare import record_checkpoints
from drift.importers.path_patterns import Patterns
from landscape.model.make_task import make_task


def net(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))


def task():
    inputs = torch.randn(20, 5, generator=torch.Generator().manual_seed(0))
    return make_task(net(0), nn.CrossEntropyLoss(), (inputs, torch.arange(20) % 3))


def lightning(path: Path, state: dict) -> None:
    torch.save({"state_dict": state, "hyper_parameters": argparse.Namespace(lr=0.1), "best": np.float64(0.9)}, path)


def folder(path: Path, state: dict) -> None:
    path.mkdir()
    save_file(state, path / "model.safetensors")


WRITERS = {
    ".pt": torch.save,
    ".ckpt": lightning,
    ".pth.tar": lightning,
    ".bin": lambda path, state: torch.save({f"module.{name}": value for name, value in state.items()}, path),
    ".model": torch.save,
    "": folder,
}


def write(where: Path, ending: str) -> None:
    for index in range(3):
        (where / f"round{index}").mkdir(parents=True)
        for place, name in enumerate(("global", "client0", "client1")):
            state, path = net(10 * index + place).state_dict(), where / f"round{index}" / f"{name}{ending}"
            if ending in (".pt", ".model"):
                torch.save(state, path)
            else:
                WRITERS[ending](path, state)


@pytest.mark.parametrize("with_task", [True, False])
@pytest.mark.parametrize("ending", WRITERS)
def test_rounds_in_files_of_every_ending_are_imported(ending, with_task, tmp_path):
    write(tmp_path / "ck", ending)
    patterns = Patterns(f"round{{round}}/client{{client}}{ending}")
    run = record_checkpoints(tmp_path / "ck", patterns, task=task() if with_task else None, runs=tmp_path / "runs")
    assert run.rounds() == [1, 2]
    record = run.round(2)
    for theta, seed in ((record.end, 20), (record.clients[0], 21), (record.clients[1], 22)):
        tensors = net(seed).state_dict()  # without a task, the order is that of the files
        assert torch.equal(theta, torch.cat([tensors[name].reshape(-1) for name, _ in run.about["layout"]]))


def test_one_of_several_state_dicts_is_imported_by_its_key(tmp_path):
    for index in range(3):
        for name, seed in (("server", 5), ("client_0", 7)):
            content = {"model": net(seed + index).state_dict(), "ema": net(50 + seed + index).state_dict()}
            torch.save(content, tmp_path / f"{name}_{index}.pt")
    with pytest.raises(ValueError, match=r"_0\.pt has 2 state dicts.*\[model\].*\[ema\].*_0\.pt\[ema\]'"):
        record_checkpoints(
            tmp_path, Patterns("client_{client}_{round}.pt", "server_{round}.pt"), runs=tmp_path / "runs"
        )
    patterns = Patterns("client_{client}_{round}.pt[ema]", "server_{round}.pt[ema]")
    run = record_checkpoints(tmp_path, patterns, runs=tmp_path / "runs")
    assert torch.equal(run.round(2).clients[0], task().layout.theta(net(59)))
    assert torch.equal(run.round(2).end, task().layout.theta(net(57)))


def test_a_link_out_of_a_folder_with_weights_is_not_followed(tmp_path):
    write(tmp_path / "ck", "")
    target = tmp_path / "ck" / "round1" / "client0" / "model.safetensors"
    target.rename(tmp_path / "secret.safetensors")
    target.symlink_to(tmp_path / "secret.safetensors")
    with pytest.raises(ValueError, match="leads out of"):
        record_checkpoints(tmp_path / "ck", Patterns("round{round}/client{client}"), runs=tmp_path / "runs")


def test_files_beside_checkpoints_fit_no_pattern_with_a_star(tmp_path):
    write(tmp_path / "ck", ".ckpt")
    (tmp_path / "ck" / "round1" / "client_notes.txt").write_text("no model")
    patterns = Patterns("round{round}/client{client}.*", "round{round}/global.*")
    assert record_checkpoints(tmp_path / "ck", patterns, runs=tmp_path / "runs").rounds() == [1, 2]
