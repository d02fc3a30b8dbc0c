"""IMA: late in training, the mean of the last few aggregates is evaluated and sent to the clients."""

from dataclasses import replace
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from drift.config.experiment import Experiment, Local
from drift.config.method import Method
from drift.config.method_values import Cohort, Combined, Outcome, Setting, State
from drift.methods._late_phase import late_local
from drift.plugins.bundles import shipped_bundles
from drift.training.method_wrapper import Wrapper, inner, prefixed, without_prefix

Late = Literal["exp", "const", "cyclic", "epoch", "na", "stage"]
"""What changes for clients in the late phase, as `late_local` says."""

_RETURNING = "returning."


class IMA(Wrapper):
    """w_{t+1} = v_t for t < t_s, the mean of v_t, .., v_{t-P+1} from t_s on, with v_t the plain aggregate of round t.

    The window contains aggregates, never averaged models; where fewer than P exist, the mean is over those. Unlike
    SWA, clients continue from the mean. From t_s on they also follow a late-phase schedule.

    Without `feedback` the mean is evaluated only, and clients continue from v_t. With late = "cyclic" and a window as
    long as the late phase the last model is that of SWA on the server, which FedSAM and FedASAM have in the original.

    Inside FedEve the mean lags behind the prediction: with a window of 5 the step grows from round to round while the
    gain is above 10/11; with placement = "post" it does not.

    Extras: aggregate, in every round whose end is a mean: the model that the base alone makes of the cohort, which
    `what_if` averages. Over a base whose server takes its own step (FedDyn, FedAdam) it is v_t only with records =
    "averaged".

    Unlike the paper: round t_s starts from v_{t_s-1}, as in the code; the server's moments are reset at t_s (reset),
    about which the paper is silent.

    Source: Zhou et al. 2024, section 6, equation 5, algorithm 1: window 5, start at 3/4 of the rounds, "Exp" with
    factor 0.97. Differences of its code: papers.md IMA-1..10.
    """

    extra_models: ClassVar[int] = 1
    bundles = shipped_bundles("ima")

    window: int = Field(5, ge=1, description="P, aggregates in the mean; 1 leaves only the late schedule")
    start: float = Field(
        0.75,
        ge=0,
        description="t_s: below 1 a fraction of the rounds, else the number of a round",
        json_schema_extra={"fraction": True},
    )
    late: Late = Field("exp", description="what changes for clients from t_s on")
    late_factor: float = Field(0.97, gt=0, le=1, description="exp: factor per round")
    const_lr: float = Field(5e-5, gt=0, description="const: the rate")
    cycle: int = Field(20, ge=2, description="cyclic: rounds in a cycle")
    cyclic: Literal["sawtooth", "triangular"] = Field(
        "sawtooth", description="as in the paper; triangular is the code's shape, mended, from the decayed rate (IMA-2)"
    )
    lr_max: float = Field(1e-2, gt=0, description="cyclic: rate at the top of a sawtooth")
    lr_min: float = Field(5e-5, gt=0, description="cyclic: rate at the bottom")
    epoch_every: int = Field(20, ge=1, description="epoch: rounds until one epoch fewer")
    restart_lr: bool = Field(False, description="epoch: the rate restarts at t_s, as in the code (IMA-3)")
    halve_every: int = Field(20, ge=1, description="stage: rounds until the rate is halved")
    placement: Literal["inside", "post"] = Field(
        "inside", description="mean of what goes into the base's server step, or of what comes out of it (IMA-4)"
    )
    reset: bool | Literal["one_round"] = Field(
        True, description="the base's server moments are reset at t_s: for good, or one_round as in the code (IMA-4)"
    )
    records: Literal["model", "averaged"] = Field(
        "model", description="extra `aggregate`: the base's model of the round, or what the mean is of"
    )
    feedback: bool = Field(True, description="clients continue from the mean; off: from the last aggregate, as in SWA")
    first: Literal["fma", "window"] = Field(
        "fma", description="what round t_s starts from; window is algorithm 1 as printed, one round early (IMA-1)"
    )

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
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
        base, name = self.base.label, super().label if self.feedback else f"{super().label}-no_feedback"
        return name if base == "fedavg" else f"{base}+{name}"

    def first_round(self, rounds: int) -> int:
        """t_s, the first round whose clients follow the late-phase schedule."""
        return int(self.start) if self.start >= 1 else int(self.start * rounds + 1e-9)

    def rounds_shared(self, other: Method, rounds: int) -> int:
        """Rounds before the first aggregate of the window: until then every bit is that of the base."""
        if other != self.base:
            return 0
        begin = self.first_round(rounds) - (self.first == "window")
        return max(0, min(begin - self.window + 1, self.first_round(rounds) - 1))

    def state_from(self, state: State) -> State:
        """The base's state under the names that it has here."""
        return prefixed(state)

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

    def broadcast(self, state: State, theta: Tensor, index: int) -> Tensor:
        """What the base sends, from the last aggregate where there is no feedback."""
        return self.base.broadcast(inner(state), state.get("last", theta), index)

    def schedule(self, local: Local, index: int, rounds: int) -> Local:
        """The base's settings before t_s, the late-phase schedule from then on."""
        start = self.first_round(rounds)
        if index < start:
            return self.base.schedule(local, index, rounds)
        return late_local(self, lambda at: self.base.schedule(local, at, rounds), start, index - start)

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """The base's step with the mean of the window before or after it."""
        start = self.first_round(setting.experiment.rounds)
        begin = start - (self.first == "window")
        averages = cohort.index >= begin
        cohort = replace(cohort, theta=state.get("last", cohort.theta))
        if self.placement == "inside" and self.feedback:
            window = _pushed(state, combined.theta, self.window)
            mean = window.mean(0) if averages else combined.theta
            outcome = self.base.step(setting, inner(state), cohort, replace(combined, theta=mean))
            end, aggregate = outcome.end, combined.theta
            if averages and self.records == "model":
                aggregate = self.base.step(setting, inner(state), cohort, combined).end
        else:
            outcome = self.base.step(setting, inner(state), cohort, combined)
            aggregate = outcome.end
            window = _pushed(state, aggregate, self.window)
            end = window.mean(0) if averages else aggregate
        after = prefixed(outcome.state)
        if self.reset and self.feedback:
            after |= self._reset(setting, state, outcome, cohort.index - start)
        if cohort.index > begin - self.window:  # earlier aggregates leave the window before it is used
            after["window"] = window
        if averages and not self.feedback:
            after["last"] = aggregate
        extras = {**outcome.extras, **({"aggregate": aggregate} if averages else {})}
        return Outcome(end, outcome.weights, after, extras)

    def _reset(self, setting: Setting, state: State, outcome: Outcome, since: int) -> State:
        """Moments as the round after finds them, where they change; `since` counts rounds from t_s."""
        if since == -1:
            fresh = self.base.initial(setting, outcome.end)
            changed = {name: fresh[name] for name in self.base.moments if name in fresh}
            returning = {f"{_RETURNING}{name}": outcome.state[name] for name in changed}
            return prefixed(changed) | (returning if self.reset == "one_round" else {})
        if since == 0 and self.reset == "one_round":
            moments = {name: value for name, value in inner(state).items() if name in self.base.moments}
            return prefixed(without_prefix(_RETURNING, state) or moments)
        return {}


def _pushed(state: State, model: Tensor, size: int) -> Tensor:
    """The last `size` models with one more (d,), oldest first."""
    before = [state["window"]] if "window" in state else []
    return torch.cat([*before, model[None]])[-size:].clone()
