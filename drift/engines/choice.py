"""Choice of the engine: the requested one if possible; with "auto" the faster one over two timed steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from drift.config.method import Method
from drift.engines import batched, serial
from drift.training.client import Client
from landscape.batched_training.per_model_gradients import model_gradients, single_model_gradient
from landscape.model.samples import map_leaves

STEPS = 2
"""Steps of each candidate that are timed."""


@dataclass(frozen=True)
class Choice:
    """The engine of a run, or its device.

    Args:
        name: "serial" or "batched"; "cpu" or "cuda".
        reason: Why, for the record.
    """

    name: str
    reason: str


def choose_engine(asked: str, method: Method, clients: Sequence[Client]) -> Choice:
    """The engine for the setting "serial", "batched" or "auto", chosen by the clients of one cohort.

    Models trained here are discarded. Timings differ between machines, so the choice is made once, when a
    run begins, and stays.
    """
    if asked == "serial":
        return Choice("serial", "asked for")
    busy = [client for client in clients if len(client.samples)]
    if obstacle := unfit(method, busy):
        return Choice("serial", f"{asked} was asked for, but {obstacle}")
    if asked == "batched":
        return Choice("batched", "asked for")
    seconds = {"serial": _serial_seconds(method, busy), "batched": _batched_seconds(method, busy)}
    times = ", ".join(f"{name} {1e3 * duration:.2f} ms" for name, duration in seconds.items())
    return Choice(min(seconds, key=lambda name: seconds[name]), f"auto: {STEPS} steps of {len(busy)} clients: {times}")


def unfit(method: Method, clients: Sequence[Client]) -> str:
    """Why the batched engine cannot train these clients; "" if it can."""
    if method.own_training:
        return f"{method.name()} overrides local training"
    if not clients:
        return "no client of the first cohort has samples"
    first = clients[0]
    try:
        gradients = model_gradients(first.flat)
    except ValueError as reason:
        return str(reason)
    thetas = torch.stack([first.start, first.start])
    few = first.samples[: min(3, len(first.samples))]
    weights = thetas.new_full((2, len(few)), 1 / len(few))
    first.flat.load(first.start, first.buffers)
    with first.randomness():
        _, gradient = single_model_gradient(first.flat, first.start, few.inputs, few.targets, weights[0])
    if first.flat.changed_buffers(first.buffers):
        return f"the buffers of {type(first.flat.module).__name__} change in training"
    both = map_leaves(lambda leaf: torch.stack([leaf, leaf]), few.inputs)
    out = torch.empty_like(thetas)
    try:
        gradients.gradient([thetas], both, torch.stack([few.targets] * 2), weights, [out])
    except RuntimeError as reason:  # what vmap raises for an operation that it does not know
        return f"its gradients cannot be batched ({str(reason).splitlines()[0].rstrip('.')})"
    return "" if _alike(out[1], gradient) else "its batched gradients differ from those of one client"


def _alike(actual: Tensor, expected: Tensor) -> bool:
    largest = float(expected.abs().max())
    return torch.allclose(actual, expected, rtol=0, atol=100 * torch.finfo(actual.dtype).eps ** 0.75 * largest + 1e-12)


def _serial_seconds(method: Method, clients: Sequence[Client]) -> float:
    """Seconds for two steps of all clients, extrapolated from one client."""
    first = [_short(clients[0])]
    serial.train(method, first)
    return len(clients) * _timed(lambda: serial.train(method, first), clients[0].start)


def _batched_seconds(method: Method, clients: Sequence[Client]) -> float:
    short = [_short(client) for client in clients]
    batched.train(method, short)
    return _timed(lambda: batched.train(method, short), clients[0].start)


def _short(client: Client) -> Client:
    return replace(client, local=client.local.model_copy(update={"steps": STEPS}))


def _timed(work: Callable[[], object], like: Tensor) -> float:
    wait = torch.cuda.synchronize if like.is_cuda else lambda: None
    wait()
    begin = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - begin
