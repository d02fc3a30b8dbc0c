"""Choice of the device: this machine's GPU if it has one that agrees with the CPU, else the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch

from drift.config.method import Method
from drift.engines import serial
from drift.engines.choice import Choice
from drift.training.client import Client
from drift.training.transfer import to_cpu, to_device
from landscape.model.task import Task

STEPS = 2
"""Minibatch steps of one client on each device before the first round."""

TOLERANCE = 1e-3
"""Largest norm of the difference of the two updates, relative to the norm of the update."""


def choose_device(
    asked: str, task: Task, method: Method, clients: Sequence[Client], *, gpu: str | None = None
) -> Choice:
    """The device for the setting "cpu", "cuda" or "auto", tested on one client of the first cohort.

    Args:
        clients: Of the first cohort, on the CPU.
        gpu: Name of the machine's GPU device; by default the one that torch reports.

    Raises:
        ValueError: If a GPU was asked for and there is none, or it does not agree with the CPU.
    """
    if asked == "cpu":
        return Choice("cpu", "asked for")
    gpu = gpu or ("cuda" if torch.cuda.is_available() else None)
    obstacle = "this machine has no GPU that torch can use" if gpu is None else _obstacle(gpu, task, method, clients)
    if gpu is not None and not obstacle:
        return Choice(gpu, "asked for" if asked == gpu else "auto: it agrees with the CPU")
    if asked != "auto":
        raise ValueError(f"device is {asked!r}, but {obstacle}; leave it out, or set device=cpu.")
    return Choice("cpu", f"auto: {obstacle}")


@contextmanager
def exact(device: torch.device) -> Iterator[None]:
    """Whole float32 products on a GPU in place of TF32, whose rounding shows in updates; nothing on a CPU."""
    if device.type != "cuda":
        yield
        return
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def _obstacle(name: str, task: Task, method: Method, clients: Sequence[Client]) -> str:
    """Why a device cannot be used; "" if it can."""
    busy = [client for client in clients if len(client.samples)]
    if not busy:
        return ""
    device = torch.device(name)
    short = replace(busy[0], local=busy[0].local.model_copy(update={"steps": STEPS}))
    expected = serial.train(method, [short])[0]
    try:
        with exact(device):
            there = to_device(short, device, task.flat(short.start.to(device)))
            update = to_cpu(serial.train(method, [there])[0])
    except RuntimeError as reason:  # what torch raises for an operation or a mix of devices that it cannot do
        return f"{method.name()} does not train on {name} ({str(reason).splitlines()[0].rstrip('.')})"
    moved, off = (expected.theta - short.start).norm(), (update.theta - expected.theta).norm()
    return "" if off <= TOLERANCE * moved else f"{STEPS} steps there differ by {float(off / moved):.0e} from the CPU's"
