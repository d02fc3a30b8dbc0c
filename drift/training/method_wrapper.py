"""Methods that wrap another method, their base: hooks delegate to the base; both states are stored together."""

from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor

from drift.config.method import Method, NamedMethod, load
from drift.config.method_values import Cohort, Combined, Setting, State
from drift.training.client import Client, Update

_BASE = "base."


def _of_base(name: str, text: str) -> Any:
    """An attribute of the base as one of its wrapper."""
    return property(lambda self: getattr(self.base, name), doc=text)


class Wrapper(Method):
    """Broadcasts, trains and combines as its base does, unless a subclass overrides it."""

    base: NamedMethod = Field(default_factory=lambda: load("fedavg")(), description="method that is averaged")

    needs_proxy: ClassVar[bool] = _of_base("needs_proxy", "Whether the base learns on a proxy set.")
    changes_sent: ClassVar[bool] = _of_base("changes_sent", "Whether clients of the base change what they send.")
    learns_weights: ClassVar[bool] = _of_base("learns_weights", "Whether the server learns weights for the base.")
    corrections: ClassVar[tuple[str, ...]] = _of_base("corrections", "What was wrong in earlier versions of the base.")
    stateful: ClassVar[bool] = _of_base("stateful", "Whether clients of the base keep something between rounds.")
    gaps: ClassVar[tuple[str, ...]] = _of_base("gaps", "Reports in which NaN means that there is none.")

    own_training: ClassVar[Any] = _of_base("own_training", "Whether the base overrides local training.")
    client_numbers: ClassVar[Any] = _of_base("client_numbers", "What a client of the base keeps.")
    correction: ClassVar[Any] = _of_base("correction", "The base's correction of every gradient.")
    finish: ClassVar[Any] = _of_base("finish", "The base's update with state and report.")
    holds: ClassVar[Any] = _of_base("holds", "Entries that the base keeps fixed.")
    buffers: ClassVar[Any] = _of_base("buffers", "The base's, of the last cohort; not averaged over the window.")
    measured: ClassVar[Any] = _of_base("measured", "The base's extra metrics, of the averaged model.")

    @property
    def sends(self) -> tuple[str, ...]:  # type: ignore[override]  # a wrapper sends what its base sends
        """Names in the server state that clients of the base receive."""
        return tuple(f"{_BASE}{name}" for name in self.base.sends)

    def transferred(self, setting: Setting, client: Client, update: Update) -> tuple[float, float]:
        """What a client of the base receives and sends."""
        return self.base.transferred(setting, at_base(client), update)

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """The base's state; the window appears when it is first filled."""
        return prefixed(self.base.initial(setting, theta))

    def local(self, client: Client) -> Update:
        """Local training of the base."""
        return self.base.local(at_base(client))

    def prepare(self, client: Client) -> Client:
        """The client as the base begins."""
        return self.base.prepare(at_base(client))

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The base's plain aggregate, not yet averaged."""
        return self.base.combine(setting, inner(state), cohort)

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
