"""Choice of the engine, by two timed steps where it is "auto", and of the device: a GPU that agrees with the CPU."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from drift.config.method import Method
from drift.engines import batched, serial
from drift.training.client import Client, to_cpu, to_device
from landscape.batched_training.per_model_gradients import model_gradients, single_model_gradient
from landscape.model.input_format import alike
from landscape.model.losses import SampleLoss
from landscape.model.samples import map_leaves
from landscape.model.task import Task
from landscape.model.whole_products import whole_products

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
    if isinstance(loss := first.flat.loss, SampleLoss) and loss.kind != "mean":
        return f"{loss.name} is not a mean over samples"
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
    return "" if alike(out[1], gradient) else "its batched gradients differ from those of one client"


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


def _obstacle(name: str, task: Task, method: Method, clients: Sequence[Client]) -> str:
    """Why a device cannot be used; "" if it can."""
    busy = [client for client in clients if len(client.samples)]
    if not busy:
        return ""
    device = torch.device(name)
    short = replace(busy[0], local=busy[0].local.model_copy(update={"steps": STEPS}))
    expected = serial.train(method, [short])[0]
    try:
        with whole_products():
            there = to_device(short, device, task.flat(short.start.to(device)))
            update = to_cpu(serial.train(method, [there])[0])
    except RuntimeError as reason:  # what torch raises for an operation or a mix of devices that it cannot do
        return f"{method.name()} does not train on {name} ({str(reason).splitlines()[0].rstrip('.')})"
    moved, off = (expected.theta - short.start).norm(), (update.theta - expected.theta).norm()
    return "" if off <= TOLERANCE * moved else f"{STEPS} steps there differ by {float(off / moved):.0e} from the CPU's"
