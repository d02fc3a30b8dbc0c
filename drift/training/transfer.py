"""Copies of clients and their updates on another device."""

from __future__ import annotations

from dataclasses import replace

import torch

from drift.config.method import State
from drift.training.client import Client, Update
from landscape.model.bound_model import Flat


def to_device(client: Client, device: torch.device, flat: Flat) -> Client:
    """The client with its data and models on a device; the same object if it is there already.

    Args:
        flat: Workspace on that device.
    """
    if client.start.device == device:
        return client
    held_out = client.held_out
    return replace(
        client,
        samples=client.samples.to(device=device),
        held_out=None if held_out is None else held_out.to(device=device),
        start=client.start.to(device),
        buffers=client.buffers.to(device),
        state=_moved(client.state, device),
        server=_moved(client.server, device),
        flat=flat,
    )


def to_cpu(update: Update) -> Update:
    """The update in the memory of the CPU, where rounds are aggregated and recorded."""
    cpu = torch.device("cpu")
    if update.theta.device == cpu and update.buffers.device == cpu:
        return update
    state, report = _moved(update.state, cpu), _moved(update.report, cpu)
    return replace(update, theta=update.theta.to(cpu), buffers=update.buffers.to(cpu), state=state, report=report)


def _moved(state: State, device: torch.device) -> State:
    return {name: value.to(device) for name, value in state.items()}
