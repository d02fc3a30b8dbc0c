"""The local training of one client of one round as a pure function of what was sent, wherever it runs."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.method_values import Setting, State
from drift.training.client import Update
from drift.training.data import Data, build_task, client_samples
from drift.training.server import Past, Server, clients, sent


@dataclass(frozen=True)
class Received:
    """What every client of round `index` receives: model (d,), buffers (b,), part of the server's state, and past."""

    index: int
    start: Tensor
    buffers: Tensor
    sent: State
    past: Past | None = None

    @classmethod
    def from_server(cls, setting: Setting, server: Server, start: Tensor) -> Self:
        """What the server sends to the clients of its next round."""
        return cls(server.next, start, server.buffers, sent(setting.experiment.method, server), server.past)


@dataclass(frozen=True)
class WorkerData:
    """What a worker stores during a run: the training data, and what the model is built from.

    Args:
        settings: The resolved experiment.
        data: The data; of the splits train alone.
        folder: The run's folder, which holds the copy of its start where it has one.
        deterministic: Whether torch may use deterministic operations only.
    """

    settings: dict[str, Any]
    data: Data
    folder: Path
    deterministic: bool

    @classmethod
    def of_run(cls, setting: Setting, data: Data, folder: Path) -> Self:
        """The data for the workers of a run."""
        only = replace(data, samples={"train": data.samples["train"]}, groups={})
        deterministic = torch.are_deterministic_algorithms_enabled()
        return cls(setting.experiment.resolved(), only, folder.absolute(), deterministic)

    @cached_property
    def setting(self) -> Setting:
        """The run's setting, with its model rebuilt."""
        experiment = Experiment.model_validate(self.settings)
        return Setting(build_task(experiment, self.data, self.folder), experiment)

    @cached_property
    def _dealt(self) -> dict[int, tuple[list[np.ndarray], list[np.ndarray]]]:
        return {}

    def client_samples(self, index: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Sample numbers of all clients in a round, see `drift.training.data.client_samples`."""
        if index not in self._dealt:
            self._dealt.clear()
            self._dealt[index] = client_samples(self.setting.experiment, self.data, index)
        return self._dealt[index]

    def trained(self, received: Received, client: int, state: State) -> Update:
        """The update of a client that kept `state`; the same bits as by the engine `serial`."""
        self.settle()
        start = received.start
        server = Server(start, received.buffers, start, received.sent, {client: state}, received.index, received.past)
        (ready,) = clients(self.setting, *self.client_samples(received.index), server, start, np.array([client]))
        return ready.sent(self.setting.experiment.method.local(ready))

    def settle(self) -> None:
        """Threads and operations as in the process that trains the run: bits depend on both."""
        torch.set_num_threads(self.setting.experiment.threads)
        torch.set_deterministic_debug_mode(2 if self.deterministic else 0)  # the other way imports the compiler
