"""IMA: late in training, the mean of the last few aggregates is evaluated and sent to the clients."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import Field, field_serializer, field_validator, model_validator
from torch import Tensor

from drift import named
from drift.late_phase import Late, late_local
from drift.method import Cohort, Combined, Method, Outcome, Setting, State, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from drift.client import Client, Update
    from drift.correction import Correction
    from drift.experiment import Experiment, Local

_BASE = "base."


class IMA(Method):
    """w_{t+1} = v_t for t < t_s, the mean of v_t, .., v_{t-P+1} from t_s on, with v_t the plain aggregate of round t.

    The window holds aggregates, never averaged models; where fewer than P exist, the mean is over those. Unlike
    SWA, clients continue from the mean, so the first round t_s still starts at w = v_{t_s-1}. From t_s on
    clients also follow a late-phase schedule.

    Without `feedback` the mean is evaluated only, and clients continue from what the base makes of them, v_t; neither
    placement nor reset then matters. With late = "cyclic" and a window as long as the late phase the last model is that
    of SWA on the server, which FedSAM and FedASAM have in the original (methods.md 2.1).

    Any other method can be the base: it broadcasts, trains and steps, and its aggregate is what is averaged.

    Extras: aggregate, v_t, in every round whose end is a mean; elsewhere v_t is the end.

    Source: Zhou et al. 2024, section 6, equation 5, algorithm 1: window 5, start at 3/4 of the rounds, "Exp" with
    factor 0.97. Where the released code differs, see methods.md IMA-1..10.
    """

    base: Method = Field(default_factory=lambda: load("fedavg")(), description="method that is averaged")
    window: int = Field(5, ge=1, description="P, aggregates in the mean; 1 leaves only the late schedule")
    start: float = Field(0.75, ge=0, description="t_s: below 1 a fraction of the rounds, else the number of a round")
    late: Late = Field("exp", description="what changes for clients from t_s on")
    late_factor: float = Field(0.97, gt=0, le=1, description="exp: factor a round")
    const_lr: float = Field(5e-5, gt=0, description="const: the rate")
    cycle: int = Field(20, ge=2, description="cyclic: rounds in a cycle")
    cyclic: Literal["sawtooth", "triangular"] = Field(
        "sawtooth", description="as in the paper; triangular is the code's shape, mended, from the decayed rate (IMA-2)"
    )
    lr_max: float = Field(1e-2, gt=0, description="cyclic: rate at the top of a sawtooth")
    lr_min: float = Field(5e-5, gt=0, description="cyclic: rate at the bottom")
    epoch_every: int = Field(20, ge=1, description="epoch: rounds until one epoch fewer")
    restart_lr: bool = Field(False, description="epoch: the rate starts anew at t_s, as in the code (IMA-3)")
    halve_every: int = Field(20, ge=1, description="stage: rounds until the rate is halved")
    placement: Literal["inside", "post"] = Field(
        "inside", description="mean of what goes into the base's server step, or of what comes out of it (IMA-4)"
    )
    reset: bool = Field(True, description="the base's server moments return to their initial values at t_s, for good")
    feedback: bool = Field(True, description="clients continue from the mean; off: from the last aggregate, as in SWA")
    first: Literal["fma", "window"] = Field(
        "fma", description="what round t_s starts from; window is algorithm 1 as printed, one round early (IMA-1)"
    )

    @field_validator("base", mode="before")
    @classmethod
    def _named_base(cls, value: Any) -> Any:
        return named.build(value, load)

    @field_serializer("base")
    def _dump_base(self, value: Method) -> dict[str, Any]:
        return named.dump(value)

    @model_validator(mode="after")
    def _options_fit(self) -> IMA:
        if isinstance(self.base, IMA):
            raise ValueError("base is ima itself; give the method that ima averages, such as fedavg.")
        if self.start >= 1 and self.start != int(self.start):
            raise ValueError(f"start is {self.start}; give a fraction of the rounds below 1 or the number of a round.")
        if self.lr_min > self.lr_max:
            raise ValueError(f"lr_min is {self.lr_min} and lr_max {self.lr_max}; lr_min must not be larger.")
        return self

    @property
    def label(self) -> str:
        """ima over FedAvg; else the base's label and ima, as in fedprox+ima; ima-no_feedback where that is off."""
        base, own = self.base.label, self.name() if self.feedback else f"{self.name()}-no_feedback"
        return own if base == "fedavg" else f"{base}+{own}"

    @property
    def needs_proxy(self) -> bool:  # type: ignore[override]  # a wrapper needs what its base needs
        """Whether the base learns on a proxy set."""
        return self.base.needs_proxy

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

    def first_round(self, rounds: int) -> int:
        """t_s, the first round whose clients follow the late-phase schedule."""
        return int(self.start) if self.start >= 1 else int(self.start * rounds + 1e-9)

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError where the window or the start lies outside the rounds, or the base cannot run."""
        self.base.check(experiment)
        if self.window > experiment.rounds:
            raise ValueError(
                f"window is {self.window} and rounds is {experiment.rounds}; lower method.window or train longer."
            )
        if self.first_round(experiment.rounds) >= experiment.rounds:
            raise ValueError(
                f"start is {self.start:g} and the last round is {experiment.rounds - 1}; averaging would never begin. "
                "Give a fraction below 1 or an earlier round."
            )
        if self.late == "epoch" and experiment.local.steps is not None:
            raise ValueError("late = 'epoch' shortens local.epochs, and local.steps replaces them; leave one out.")

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """The base's state; the window appears when it is first filled."""
        return _prefixed(self.base.initial(setting, theta))

    def broadcast(self, state: State, theta: Tensor, index: int) -> Tensor:
        """What the base sends, from the last aggregate where there is no feedback."""
        return self.base.broadcast(_own(state), state.get("last", theta), index)

    def schedule(self, local: Local, index: int, rounds: int) -> Local:
        """The base's settings before t_s, the late-phase schedule from then on."""
        start = self.first_round(rounds)
        if index < start:
            return self.base.schedule(local, index, rounds)
        return late_local(self, lambda at: self.base.schedule(local, at, rounds), start, index - start)

    @property
    def own_training(self) -> bool:
        """Whether the base trains in a way of its own."""
        return self.base.own_training

    def local(self, client: Client) -> Update:
        """Local training of the base."""
        return self.base.local(_at_base(client))

    def prepare(self, client: Client) -> Client:
        """The client as the base begins."""
        return self.base.prepare(_at_base(client))

    def correction(self, client: Client) -> Correction | None:
        """What the base adds to every gradient."""
        return self.base.correction(client)

    def finish(self, client: Client, update: Update) -> Update:
        """What the base's client keeps and reports."""
        return self.base.finish(client, update)

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The base's plain aggregate, not yet averaged."""
        return self.base.combine(setting, _own(state), cohort)

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """The base's step with the mean of the window before or after it."""
        start = self.first_round(setting.experiment.rounds)
        begin = start - (self.first == "window")
        averages = cohort.index >= begin
        cohort = replace(cohort, theta=state.get("last", cohort.theta))
        if self.placement == "inside" and self.feedback:
            aggregate = combined.theta
            window = _pushed(state, aggregate, self.window)
            mean = window.mean(0) if averages else aggregate
            outcome = self.base.step(setting, _own(state), cohort, replace(combined, theta=mean))
            end = outcome.end
        else:
            outcome = self.base.step(setting, _own(state), cohort, combined)
            aggregate = outcome.end
            window = _pushed(state, aggregate, self.window)
            end = window.mean(0) if averages else aggregate
        after = _prefixed(outcome.state)
        if self.reset and self.feedback and cohort.index == start - 1:
            fresh = self.base.initial(setting, end)
            after |= _prefixed({name: fresh[name] for name in self.base.moments if name in fresh})
        if cohort.index > begin - self.window:  # earlier aggregates leave the window before it is used
            after["window"] = window
        if averages and not self.feedback:
            after["last"] = aggregate
        extras = {**outcome.extras, **({"aggregate": aggregate} if averages else {})}
        return Outcome(end, outcome.weights, after, extras)

    def buffers(self, setting: Setting, end: Tensor, averaged: Tensor) -> Tensor:
        """What the base makes of the last cohort's buffers; they are not averaged over the window."""
        return self.base.buffers(setting, end, averaged)

    def measured(
        self, setting: Setting, end: Tensor, clients: Mapping[int, State], held: Sequence[np.ndarray]
    ) -> dict[str, float]:
        """What the base measures, of the averaged model."""
        return self.base.measured(setting, end, clients, held)

    def momentum(self, state: State) -> Tensor | None:
        """The update that the base expects."""
        return self.base.momentum(_own(state))


def _pushed(state: State, model: Tensor, size: int) -> Tensor:
    """The last `size` models with one more (d,), oldest first."""
    held = [state["window"]] if "window" in state else []
    return torch.cat([*held, model[None]])[-size:].clone()


def _at_base(client: Client) -> Client:
    return replace(client, server=_own(client.server))


def _own(state: State) -> State:
    """The base's part of the state, under its own names."""
    return {name.removeprefix(_BASE): value for name, value in state.items() if name.startswith(_BASE)}


def _prefixed(state: State) -> State:
    return {f"{_BASE}{name}": value for name, value in state.items()}
