"""What the benchmark of training measures: a cohort's local training, and every contestant on it."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

from benchmarks._planes import has_compiler
from drift import engines
from drift.config import method as methods
from drift.config.experiment import Local
from drift.engines.choice import Choice, choose_engine
from drift.training.client import Client
from landscape import models
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.model.task import Task

LR, MOMENTUM = 0.01, 0.9
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Setting:
    """A cohort: model, shape of an input, clients, their samples, epochs and batch size."""

    model: str
    options: dict[str, Any]
    shape: tuple[int, ...]
    clients: int
    samples: int
    epochs: int
    batch: int


SETTINGS = {
    "cnn_fmnist": Setting("cnn_fmnist", {}, (1, 28, 28), 10, 600, 1, 50),
    "cnn_cifar10": Setting("cnn_cifar10", {}, (3, 32, 32), 10, 500, 1, 50),
    "mlp_digits": Setting("mlp", {"hidden": [64]}, (1, 8, 8), 100, 18, 5, 5),
    "mlp_digits_batch10": Setting("mlp", {"hidden": [64]}, (1, 8, 8), 100, 18, 5, 10),
    "cnn_fmnist_100": Setting("cnn_fmnist", {}, (1, 28, 28), 100, 600, 1, 50),
}


class Case:
    """A setting on random images: the values do not change the work."""

    def __init__(self, setting: Setting, device: str = "cpu") -> None:
        torch.manual_seed(0)
        self.setting, self.device = setting, torch.device(device)
        self.module = models.build_model(setting.model, setting.shape, 10, seed=0, **setting.options)
        count = setting.clients * setting.samples
        self.inputs = torch.randn(count, *setting.shape, device=self.device)
        self.targets = torch.randint(10, (count,)).to(self.device)
        self.parts = torch.arange(count, device=self.device).split(setting.samples)
        self.task = Task(self.module, {})
        self.local = Local(lr=LR, momentum=MOMENTUM, epochs=setting.epochs, batch=setting.batch)
        self.method = methods.load("fedavg")()

    def clients(self) -> list[Client]:
        """The cohort as a round makes it: each client's samples taken by number out of all."""
        start = self.task.theta.to(self.device)
        buffers, every = self.task.buffers, Samples(self.inputs, self.targets)
        return [
            Client(
                id=client,
                index=0,
                seed=0,
                samples=every[part],
                start=start,
                buffers=buffers,
                local=self.local,
                flat=self.flat,
            )
            for client, part in enumerate(self.parts)
        ]

    @cached_property
    def flat(self) -> Flat:
        """The workspace of all clients, which a run keeps from round to round too."""
        return self.task.flat(self.task.theta.to(self.device))

    @cached_property
    def choice(self) -> Choice:
        """The engine that "auto" takes here."""
        return choose_engine("auto", self.method, self.clients())

    @property
    def flops(self) -> float:
        """Forward and backward of every sample of the cohort in every epoch."""
        module = copy.deepcopy(self.module).to(self.device)
        with FlopCounterMode(display=False) as counter:
            F.cross_entropy(module(self.inputs[:2]), self.targets[:2]).backward()
        return counter.get_total_flops() / 2 * len(self.targets) * self.setting.epochs

    def contestants(self) -> dict[str, Callable[[], Tensor]]:
        """By name, what trains the cohort; each returns the models (m, d)."""
        runs = {"naive": self.naive, "expert": self.expert(), "ours": lambda: self.ours(self.choice.name)}
        if self.choice.name != "serial":
            runs["ours, serial"] = lambda: self.ours("serial")
        if self.device.type == "cpu" and has_compiler():
            runs["compiled"] = self.expert(compiled=True)
        return runs

    def ours(self, engine: str) -> Tensor:
        """The cohort by one of this project's engines."""
        updates = engines.train(engine, self.method, self.clients()).updates
        return torch.stack([update.theta for update in updates])

    def naive(self) -> Tensor:
        """The usual way: copy the model, a DataLoader over the client's data, a step of SGD for each batch."""
        n, found = self.setting.samples, []
        for client in range(self.setting.clients):
            model = copy.deepcopy(self.module).to(self.device).train()
            part = slice(client * n, (client + 1) * n)
            loader = DataLoader(
                TensorDataset(self.inputs[part], self.targets[part]), batch_size=self.setting.batch, shuffle=True
            )
            optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
            for _ in range(self.setting.epochs):
                for inputs, targets in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(inputs), targets).backward()
                    optimizer.step()
            found.append(nn.utils.parameters_to_vector(model.parameters()).detach())
        return torch.stack(found)

    def expert(self, *, compiled: bool = False) -> Callable[[], Tensor]:
        """The loop of somebody who knows torch: one model and the images in channels_last, indices of batches at hand.

        Args:
            compiled: Forward and backward pass under `torch.compile`, which compiles in the first round.
        """
        setting = self.setting
        module = copy.deepcopy(self.module).to(self.device, memory_format=torch.channels_last).train()
        inputs = self.inputs.contiguous(memory_format=torch.channels_last)
        forward = torch.compile(module, dynamic=False) if compiled else module
        start = [parameter.detach().clone() for parameter in module.parameters()]

        def train() -> Tensor:
            found = []
            for part in self.parts:
                with torch.no_grad():
                    for parameter, value in zip(module.parameters(), start, strict=True):
                        parameter.copy_(value)
                optimizer = torch.optim.SGD(module.parameters(), lr=LR, momentum=MOMENTUM, foreach=True)
                for _ in range(setting.epochs):
                    for batch in part[torch.randperm(setting.samples).to(self.device)].split(setting.batch):
                        optimizer.zero_grad(set_to_none=True)
                        F.cross_entropy(forward(inputs[batch]), self.targets[batch]).backward()
                        optimizer.step()
                found.append(torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()]))
            return torch.stack(found)

        return train


def peer(script: str, python: str | None, name: str, timeout: float) -> tuple[list[float], str]:
    """Seconds of each round of a peer in the interpreter of its own virtual environment, or why there are none."""
    if python is None:
        return [], "not installed"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [python, "-m", f"benchmarks.{script}", name]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env=environment, cwd=ROOT, check=False
        )
    except subprocess.TimeoutExpired:
        return [], f"took more than {timeout:.0f} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return [], (done.stderr.strip().splitlines() or ["no output"])[-1][:200]
    return json.loads(lines[-1])["seconds"], ""
