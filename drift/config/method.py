"""The interface of federated methods: hooks whose defaults are FedAvg."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator
from torch import Tensor

from drift.config.method_values import Cohort, Combined, Outcome, Setting, State
from drift.plugins import tables, trust
from drift.plugins.bundles import Bundle, suffix, with_bundle
from drift.plugins.strict_numbers import StrictNumbers
from landscape import plugins
from landscape.model.task import Task
from landscape.plugins import outside

if TYPE_CHECKING:
    from drift.config.experiment import Experiment, Local
    from drift.training.client import Client, Update
    from drift.training.correction import Correction


class Method(StrictNumbers):
    """Hooks of a federated method; the defaults are FedAvg.

    Hooks are pure: they return new values and change nothing. State is explicit and stored for resuming.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    needs_proxy: ClassVar[bool] = False
    """Whether the server learns on a proxy set."""

    stateful: ClassVar[bool] = False
    """Whether clients keep state between rounds."""

    personal: ClassVar[bool | None] = None
    """Whether what clients keep is a part of their model, which they need neither receive nor send; None: not known."""

    sends: ClassVar[tuple[str, ...]] = ()
    """Names in the server state that clients also receive; recorded, so that a client can be retrained."""

    gaps: ClassVar[tuple[str, ...]] = ()
    """Report fields that may be NaN; NaN in any other field excludes the client."""

    extra_models: ClassVar[int] = 0
    """Models (d,) in the extras of a recorded round, for the estimate of a run's size."""

    changes_sent: ClassVar[bool] = False
    """Whether clients change their updates before they send them, as by clipping."""

    learns_weights: ClassVar[bool] = False
    """Whether the server learns the weights of the clients, or their sum."""

    pool_option: ClassVar[str] = ""
    """Option with the number of models that a client trains together in a pool and averages, as `pool` returns it."""

    requires: ClassVar[tuple[Callable[[Task, str], object], ...]] = ()
    """Checks of (task, name of the method) before round 0, as `drift.training.model_layers` has them."""

    moments: ClassVar[tuple[str, ...]] = ()
    """Names in the server state that are an optimiser's memory; a wrapper such as IMA may reset them."""

    corrections: ClassVar[tuple[str, ...]] = ()
    """Errors of earlier versions of the method that changed the bits of training, one clause per correction."""

    bundles: ClassVar[Mapping[str, Bundle]] = {}
    """Options as in "paper" and "code", where these differ."""

    like: str | None = Field(None, description="options as published: paper or code; others given beside it win")

    @classmethod
    def name(cls) -> str:
        """Public name: of the method's file, or of the class for code from outside."""
        return tables.name(cls)

    @model_validator(mode="before")
    @classmethod
    def _as_published(cls, values: Any) -> Any:
        return with_bundle(cls.name(), cls.bundles, values)

    @property
    def label(self) -> str:
        """Name in figures, with the variant: fedlaw-gws, fedprox+ima; in full if outside code shares a known name."""
        is_known = outside.is_outside(text := tables.recorded(self)) and self.name().lower() in names()
        return (outside.portable(text) if is_known else self.name()) + suffix(self)

    @property
    def unwrapped(self) -> Method:
        """The base where this method wraps another, else this method."""
        return base if isinstance(base := getattr(self, "base", None), Method) else self

    @property
    def pool_size(self) -> int:
        """Models of the pool of a client, by `pool_option`; 0 without one."""
        return int(getattr(self, self.pool_option)) if self.pool_option else 0

    @property
    def trainings(self) -> int:
        """Times that a client trains for the local epochs in a round; 1 here."""
        return 1

    def check(self, experiment: Experiment) -> None:
        """Raise ValueError if the method cannot run in this experiment."""

    def rounds_shared(self, other: Method, rounds: int) -> int:
        """Number of first rounds of a run that equal those of another method to the bit, all else equal."""
        return rounds if other == self else 0

    def state_from(self, state: State) -> State:
        """Server state of this method from that of the other method after the shared rounds."""
        return state

    def client_numbers(self, task: Task) -> int:
        """Numbers that a client keeps between rounds at most, for the estimate of a run's size: a model here."""
        return task.layout.size + task.layout.buffer_size if self.stateful else 0

    def transferred(self, setting: Setting, client: Client, update: Update) -> tuple[float, float]:
        """Bytes that a client receives and sends in a round after its first one; NaN if `personal` is not known.

        Here the model with its floating buffers, without entries that `holds` names and without what is personal,
        and beside it the tensors of `sends`, and those that the client reports.
        """
        if self.stateful and self.personal is None:
            return float("nan"), float("nan")
        fixed = self.holds(setting)
        left_out = (self.client_numbers(setting.task) if self.personal else 0) + (0 if fixed is None else fixed.sum())
        model = (client.start.numel() + client.buffers.numel() - int(left_out)) * client.start.element_size()
        down, up = (sum(tensor.nbytes for tensor in tensors.values()) for tensors in (client.server, update.report))
        return float(model + down), float(model + up)

    def initial(self, setting: Setting, theta: Tensor) -> State:
        """Server state before round 0; none here, once the task has passed the checks of `requires`."""
        for check in self.requires:
            check(setting.task, self.name())
        return {}

    def broadcast(self, state: State, theta: Tensor, index: int) -> Tensor:
        """The model that the clients of round `index` receive, shape (d,)."""
        return theta

    def schedule(self, local: Local, index: int, rounds: int) -> Local:
        """Local settings of round `index`: lr = lr_0 * lr_decay ** index."""
        return local.model_copy(update={"lr": local.lr * local.lr_decay**index})

    def local(self, client: Client) -> Update:
        """Local training of one client: prepared, trained with the corrected gradient, finished.

        If a method overrides this, its clients are trained one after the other by every engine.
        """
        ready = self.prepare(client)
        return self.finish(ready, ready.train(self.correction(ready)))

    def prepare(self, client: Client) -> Client:
        """The client at the start of local training, such as with personal layers; unchanged here."""
        return client

    def correction(self, client: Client) -> Correction | None:
        """Addition to every minibatch gradient of the prepared client; none here."""
        return None

    def finish(self, client: Client, update: Update) -> Update:
        """The update of the prepared client with its state and reports; unchanged here."""
        return update

    @property
    def own_training(self) -> bool:
        """Whether `local` is overridden: local training is more than minibatches with a corrected gradient."""
        return type(self).local is not Method.local

    @property
    def averages(self) -> bool:
        """Whether the new global model is the plain mean of the clients: no hook that computes it is overridden.

        Large rounds are then read once for the mean and for the record; wrong, it costs time, and changes no result.
        """
        hooks = ("aggregate", "combine", "step", "holds")
        return all(getattr(type(self), hook) is getattr(Method, hook) for hook in hooks)

    def holds(self, setting: Setting) -> Tensor | None:
        """Entries (d,), bool, that neither clients nor server change, not even by rounding; None here."""
        return None

    def mean_weights(self, experiment: Experiment, sizes: Tensor) -> Tensor:
        """Weights (m,) of the updates in the mean that the server takes, before it learns or changes any."""
        return experiment.cohort_weights(sizes)

    def combine(self, setting: Setting, state: State, cohort: Cohort) -> Combined:
        """The cohort's plain aggregate; FMA here."""
        return Combined(cohort.weighted_mean, cohort.weights)

    def step(self, setting: Setting, state: State, cohort: Cohort, combined: Combined) -> Outcome:
        """From the plain aggregate to the new global model; the aggregate itself here."""
        return Outcome(combined.theta, combined.weights, state, combined.extras)

    def aggregate(self, setting: Setting, state: State, cohort: Cohort) -> Outcome:
        """One server round: combine, then step; the entries of `holds` are restored after each."""
        combined, fixed = self.combine(setting, state, cohort), self.holds(setting)
        if fixed is None:
            return self.step(setting, state, cohort, combined)
        combined = replace(combined, theta=torch.where(fixed, cohort.theta, combined.theta))
        outcome = self.step(setting, state, cohort, combined)
        return replace(outcome, end=torch.where(fixed, cohort.theta, outcome.end))

    def buffers(self, setting: Setting, end: Tensor, averaged: Tensor) -> Tensor:
        """Floating buffers (b,) of the new global model (d,); the cohort's weighted mean `averaged` here."""
        return averaged

    def measured(
        self, setting: Setting, end: Tensor, clients: Mapping[int, State], held: Sequence[np.ndarray]
    ) -> dict[str, float]:
        """Further metrics of an evaluated round; none here.

        Args:
            setting: Constants of the run.
            end: The new global model, shape (d,).
            clients: State of each client after the round, by client.
            held: Held-out sample numbers (into train) of each of the K clients.
        """
        return {}

    def momentum(self, state: State) -> Tensor | None:
        """The update (d,) that the server expects next, client minus start; None: the previous mean update."""
        return None


def names() -> list[str]:
    """Names of all methods."""
    return plugins.names("drift.methods")


def load(name: str) -> type[Method]:
    """The method called `name`: one of this package, an entry point, FILE.py:CLASS or module:CLASS.

    Raises:
        ValueError: If there is none; the message lists all. Or if it is code that is not trusted
            (`drift.plugins.trust`).
    """
    if (method_class := trust.load("drift.methods", name, "method")) is not None:
        return plugins.require_derived(method_class, Method, name)
    return plugins.single_class(plugins.load("drift.methods", name, "method"), Method)


NamedMethod = Annotated[Method, BeforeValidator(lambda value: tables.build(value, load)), PlainSerializer(tables.dump)]
"""A method in settings: a name, or a table of name and options."""
