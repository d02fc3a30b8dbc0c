"""Methods that wrap another method, their base: hooks delegate to the base; both states are stored together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_serializer, field_validator
from torch import Tensor

from drift.config.method import Cohort, Combined, Method, Setting, State, load
from drift.plugins import tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from drift.training.client import Client, Update
    from drift.training.correction import Correction

_BASE = "base."


class Wrapper(Method):
    """Broadcasts, trains and combines as its base does, unless a subclass overrides it."""

    base: Method = Field(default_factory=lambda: load("fedavg")(), description="method that is averaged")

    @field_validator("base", mode="before")
    @classmethod
    def _named_base(cls, value: Any) -> Any:
        return tables.build(value, load)

    @field_serializer("base")
    def _dump_base(self, value: Method) -> dict[str, Any]:
        return tables.dump(value)

    @property
    def needs_proxy(self) -> bool:  # type: ignore[override]  # a wrapper needs what its base needs
        """Whether the base learns on a proxy set."""
        return self.base.needs_proxy

    @property
    def corrections(self) -> tuple[str, ...]:  # type: ignore[override]  # a wrapper trains as its base does
        """What was wrong in earlier versions of the base."""
        return self.base.corrections

    @property
    def stateful(self) -> bool:  # type: ignore[override]  # a wrapper's clients are its base's
        """Whether clients of the base keep something between rounds."""
        return self.base.stateful

    @property
    def gaps(self) -> tuple[str, ...]:  # type: ignore[override]  # its clients report what the base's do
        """Reports in which NaN means that there is none."""
        return self.base.gaps

    @property
    def sends(self) -> tuple[str, ...]:  # type: ignore[override]  # a wrapper sends what its base sends
        """Names in the server state that clients of the base receive."""
        return tuple(f"{_BASE}{name}" for name in self.base.sends)

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """The base's state; the window appears when it is first filled."""
        return prefixed(self.base.initial(setting, theta))

    @property
    def own_training(self) -> bool:
        """Whether the base overrides local training."""
        return self.base.own_training

    def local(self, client: Client) -> Update:
        """Local training of the base."""
        return self.base.local(at_base(client))

    def prepare(self, client: Client) -> Client:
        """The client as the base begins."""
        return self.base.prepare(at_base(client))

    def correction(self, client: Client) -> Correction | None:
        """The base's correction of every gradient."""
        return self.base.correction(client)

    def finish(self, client: Client, update: Update) -> Update:
        """The base's update with state and report."""
        return self.base.finish(client, update)

    def holds(self, setting: Setting) -> Tensor | None:
        """Entries that the base keeps fixed."""
        return self.base.holds(setting)

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The base's plain aggregate, not yet averaged."""
        return self.base.combine(setting, inner(state), cohort)

    def buffers(self, setting: Setting, end: Tensor, averaged: Tensor) -> Tensor:
        """The base's buffers of the last cohort; they are not averaged over the window."""
        return self.base.buffers(setting, end, averaged)

    def measured(
        self, setting: Setting, end: Tensor, clients: Mapping[int, State], held: Sequence[np.ndarray]
    ) -> dict[str, float]:
        """The base's extra metrics, of the averaged model."""
        return self.base.measured(setting, end, clients, held)

    def momentum(self, state: State) -> Tensor | None:
        """The update that the base expects."""
        return self.base.momentum(inner(state))


def at_base(client: Client) -> Client:
    return replace(client, server=inner(client.server))


def inner(state: State) -> State:
    """The base's part of the state, under its own names."""
    return without_prefix(_BASE, state)


def without_prefix(prefix: str, state: State) -> State:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def prefixed(state: State) -> State:
    return {f"{_BASE}{name}": value for name, value in state.items()}
