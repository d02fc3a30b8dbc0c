"""Clients that return NaN, Inf, huge or wrong-shaped updates, under every method."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torture.outcome import LOST, SURVIVED, Budget, Outcome
from torture.settings import of_method

from drift.config import method as methods
from drift.config.method import Method
from drift.runs.run import Run
from drift.simulation.simulate import Diverged, simulate
from drift.simulation.verify import verify
from drift.store import files
from drift.training.client import Client, Update

SHORT = ("fedavg", "ima", "fedlaw", "scaffold", "fedfa")
"""Methods of the short form: plain, a wrapper, one that learns on the server, one with a state, one with reports."""


def _one(value: float) -> Callable[[Update], Update]:
    def spoiled(update: Update) -> Update:
        theta = update.theta.clone()
        theta[len(theta) // 2] = value
        return replace(update, theta=theta)

    return spoiled


def _all(value: float) -> Callable[[Update], Update]:
    return lambda update: replace(update, theta=torch.full_like(update.theta, value))


def _report(value: float) -> Callable[[Update], Update]:
    """Everything beside the model."""

    def filled(state: dict[str, Tensor]) -> dict[str, Tensor]:
        return {
            name: torch.full_like(tensor, value) if tensor.is_floating_point() else tensor
            for name, tensor in state.items()
        }

    return lambda update: replace(update, report=filled(update.report), state=filled(update.state))


SPOILED: dict[str, Callable[[Update], Update]] = {
    "one NaN": _one(float("nan")),
    "one Inf": _one(float("inf")),
    "huge": _all(1e30),
    "one huge": _one(-3e38),
    "loss NaN": lambda update: replace(update, loss=float("nan")),
    "report and state NaN": _report(float("nan")),
    "one too long": lambda update: replace(update, theta=torch.cat([update.theta, update.theta[:1]])),
    "one too short": lambda update: replace(update, theta=update.theta[:-1]),
    "a matrix": lambda update: replace(update, theta=update.theta[None]),
    "buffers of another shape": lambda update: replace(update, buffers=torch.zeros(len(update.buffers) + 2)),
}
REFUSED = {"one too long", "one too short", "a matrix", "buffers of another shape"}


def clients(budget: Budget) -> list[Outcome]:
    """One client of round 1, then all of them, return such an update."""
    found: list[Outcome] = []
    names = methods.names() if budget.places > 4 else list(SHORT)
    for name in names:
        for kind, spoil in SPOILED.items():
            for everyone in (False, True):
                if budget.over:
                    return found
                fault = f"{'all clients' if everyone else 'a client'}: {kind}"
                found.append(Outcome(fault, *_tried(name, kind, spoil, everyone)))
    return found


def _tried(name: str, kind: str, spoil: Callable[[Update], Update], everyone: bool) -> tuple[str, str]:
    """What became of it under one method."""
    experiment = of_method(name)
    owner = type(experiment.method)
    real, own = owner.local, "local" in vars(owner)

    def local(self: Method, client: Client) -> Update:
        update = real(self, client)
        return spoil(update) if client.index == 1 and (everyone or client.id % 3 == 0) else update

    with tempfile.TemporaryDirectory() as place:
        owner.local = local  # type: ignore[method-assign]
        try:
            simulate(experiment, runs=place)
            told = ""
        except Diverged as error:
            told = str(error)
        except ValueError as error:
            told = str(error)
            if kind not in REFUSED or "returned" not in told:
                return LOST, f"{name}: {told}"
        except Exception as error:  # noqa: BLE001 - whatever else comes out is a finding
            return LOST, f"{name}: {type(error).__name__}: {error}"
        finally:
            if own:
                owner.local = real  # type: ignore[method-assign]
            else:
                del owner.local
        if kind in REFUSED and not told:
            return LOST, f"{name}: a wrong shape was accepted"
        return _whole(name, Run(Path(place) / experiment.slug), told)


def _whole(name: str, run: Run, told: str) -> tuple[str, str]:
    """A run is whole and its state finite, whatever its clients did."""
    if problems := verify(run.folder):
        return LOST, f"{name}: {problems[0]}"
    tensors, _ = files.read_state(run.folder)
    wrong = [key for key in ("theta", "buffers") if not bool(torch.isfinite(tensors[key]).all())]
    if wrong:
        return LOST, f"{name}: {wrong[0]} of the state is not finite"
    return SURVIVED, told
