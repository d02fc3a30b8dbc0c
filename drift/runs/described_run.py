"""What the description of a run says of it: settings, names, which rounds keep what, who takes part."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from drift.config.experiment import Experiment
from drift.config.external_run import complete_experiment, seed_of
from drift.config.load import validated
from drift.config.method import Method
from drift.config.random_keys import cohort
from drift.config.without_code import stand_ins
from drift.plugins.reserved_names import UNKNOWN, USER_TASK
from drift.plugins.trust import is_trusted, names_in, warn_changed
from landscape.model.layout import Layout


class DescribedRun(ABC):
    """A run of which the description and the rounds are known, in a folder or in one file."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the run."""

    @property
    @abstractmethod
    def source(self) -> Path:
        """The file with the description."""

    @property
    @abstractmethod
    def about(self) -> Mapping[str, Any]:
        """The description: experiment, versions, fingerprint of the data, layout."""

    @abstractmethod
    def rounds(self) -> list[int]:
        """Indices of the complete rounds, ascending."""

    @cached_property
    def experiment(self) -> Experiment:
        """The resolved experiment.

        A method or partition whose code is not trusted or cannot be loaded has its recorded name and options.

        Raises:
            ValueError: If a setting is not accepted, in one line.
        """
        experiment = validated(complete_experiment(self.about), str(self.source))
        absent = list(stand_ins(experiment.method, experiment.clients.partition))
        for plugin in absent:
            if is_trusted(plugin.public):
                warnings.warn(f"run {self.name} is read without its code: {plugin.why}", stacklevel=2)
        settings = self.about["experiment"]
        described = settings.get("method"), settings.get("clients", {}).get("partition")
        self._warn_changed(*described, without=[plugin.public for plugin in absent])
        return experiment

    def _warn_changed(self, *parts: Any, without: Sequence[str] = ()) -> None:
        names = [name for plugin in parts for name in names_in(plugin) if name not in without]
        warn_changed(self.about.get("sources", {}), names, self.name)

    def require_code(self) -> None:
        """Refuse what trains clients where the code of method or partition is not at hand.

        Raises:
            ValueError: With the reason, and how to give it.
        """
        for plugin in stand_ins(self.method, self.experiment.clients.partition):
            raise ValueError(f"run {self.name}: {plugin.why}")

    @property
    def method(self) -> Method:
        """The method that trained it."""
        return self.experiment.method

    @property
    def label(self) -> str:
        """Name of the run in figures: its method, with the variant or the base where it has one."""
        return str(self.about.get("label") or self.method.label)

    @property
    def seed(self) -> int | None:
        """The seed; None for a run of another program that does not state it."""
        return seed_of(self.about, self.experiment.seed)

    @property
    def data_name(self) -> str:
        """Name of the dataset; `reserved_names.UNKNOWN` where the run was recorded without one."""
        name = self.experiment.task.dataset
        return str(self.about.get("told", {}).get("data", UNKNOWN)) if name == USER_TASK else name

    @property
    def model_name(self) -> str:
        """Name of the model; `reserved_names.UNKNOWN` for a run of another program, which records no name."""
        name = self.experiment.task.model
        return UNKNOWN if name == USER_TASK else name

    @property
    def task_name(self) -> str:
        """Dataset and model, such as "digits, mlp"; those of them that are known, of MODULE:NAME the name."""
        known = [name for name in (self.data_name, self.model_name) if name != UNKNOWN]
        return ", ".join(name.rpartition(":")[2].replace("_", " ") for name in known) or f"data {UNKNOWN}"

    @property
    def layout(self) -> Layout:
        """Names and shapes of the parameters, and of the floating buffers where the description states them."""
        stated = (self.about.get(key, ()) for key in ("layout", "buffers"))
        return Layout(*(tuple((name, tuple(shape)) for name, shape in entries) for entries in stated))

    @property
    def loss_units(self) -> str:
        """Unit of the run's losses: nats for the cross-entropies of the named datasets, 1 where it is not known."""
        return "1" if self.experiment.task.dataset == USER_TASK else "nats"

    @property
    def unequal(self) -> str:
        """What is unequal of the clients of its rounds, as in "late, partial"; "" where nothing is."""
        clients, local = self.experiment.clients, self.experiment.local
        recorded = {*self.about.get("unequal", ()), *(["partial"] if self.about.get("kept") else [])}
        causes = {"late": clients.late, "stopped": clients.stops, "steps": clients.work != (1.0, 1.0)}
        causes["sent"] = local.compress != "none" or self.method.changes_sent
        return ", ".join(sorted(recorded | {name for name, applies in causes.items() if applies}))

    def kept(self, what: str = "clients", *, least: int = 1) -> list[int]:
        """Rounds whose settings store "clients" or "globals".

        Args:
            what: Which of them.
            least: Fewest clients of a round, for "clients".
        """
        return [index for index in self.rounds() if self.keeps(index, what, least=least)]

    def keeps(self, index: int, what: str = "clients", *, least: int = 1) -> bool:
        """Whether `kept` lists a round of the run; no other round is looked at."""
        rounds, keep = self.experiment.rounds, self.experiment.keep
        if what != "clients":
            return keep.keeps_globals(index, rounds)
        return self.experiment.clients.per_round >= least and keep.keeps_clients(index, rounds)

    def trained(self, index: int) -> np.ndarray:
        """Clients that trained in round `index`: the cohort, or all with `clients.train_all`, ascending."""
        clients = self.experiment.clients
        return np.arange(clients.number) if clients.train_all else self.cohort(index)

    def cohort(self, index: int) -> np.ndarray:
        """Clients of the cohort of round `index`, shape (m,)."""
        clients = self.experiment.clients
        return cohort(self.experiment.seed, index, clients.number, clients.per_round)
