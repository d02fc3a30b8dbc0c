"""Bytes that methods state: those of the tensors that local training reads, and that the server needs of a client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import adapted
import pytest
import tiny
import torch
from torch import Tensor, nn

from drift.analyses.rounds.cost import training_cost
from drift.config import method as methods
from drift.config.method import Method
from drift.config.method_values import Cohort, State
from drift.simulation.one_round import run_round
from drift.training.client import Client, Update
from drift.training.server import Server, first_cohort
from tests.drift.by_hand import CLASSES, prepared
from tests.drift.methods.test_held_entries import CHEAP

HELD_OUT = ("fedfomo", "soups", "diwa", "swad")
OPTIONS = {**CHEAP, "fedfomo": {"choice": "affinity"}}  # which reports what it computes of each model that it received
BY_NAME = {name: {"name": name, **OPTIONS.get(name, {})} for name in methods.names()}
BY_NAME["ima over scaffold"] = {**BY_NAME["ima"], "base": {"name": "scaffold"}}
CHOSEN_BY_THE_SERVER = ("models_buffers", "models_ids", "affinity")


def normalised() -> nn.Module:
    model = nn.Sequential()
    model.add_module("body", nn.BatchNorm1d(2, dtype=torch.float64))
    model.add_module("head", nn.Linear(2, CLASSES, dtype=torch.float64))
    return model


def low_rank() -> nn.Module:
    return adapted.build((2,), CLASSES).double()


def moved(values: Tensor, part: Any = ...) -> Tensor:
    values = values.clone()
    values[part] = ~values[part] if values.dtype == torch.bool else values[part] * 1.25 + 1
    return values


def differ(first: State, second: State) -> bool:
    return any(not torch.equal(first[name], second[name]) for name in first)


def returned(method: Method, client: Client) -> State:
    update = method.local(client)
    return {"theta": update.theta, "buffers": update.buffers, **update.state, **update.report}


def of(server: Server, start: Tensor, updates: Sequence[Update]) -> Cohort:
    return Cohort(
        index=server.next,
        theta=server.theta,
        start=start,
        ids=torch.arange(2),
        sizes=torch.tensor([2, 7]),
        weights=torch.tensor([2.0, 7.0], dtype=torch.float64) / 9,
        clients=torch.stack([one.theta for one in updates]),
        steps=torch.tensor([one.steps for one in updates]),
        reports={key: torch.stack([one.report[key] for one in updates]) for key in updates[0].report},
        buffers=torch.stack([one.buffers for one in updates]),
    )


@pytest.mark.parametrize("name", BY_NAME)
def test_stated_bytes_are_those_that_clients_and_server_need(name):
    model = {"fedbn": normalised, "fedlora": low_rank}.get(name, lambda: None)()
    setting, data = prepared(BY_NAME[name], 4, held=name in HELD_OUT, model=model)
    method, server = setting.experiment.method, Server.fresh(setting)
    for _ in range(3):
        server = run_round(setting, data, server)[1]
    clients = first_cohort(setting, data, server)
    updates, client = [method.local(one) for one in clients], clients[1]
    usual, parts = returned(method, client), setting.task.layout.slices().values()

    def aggregated(*clients: Update) -> Any:
        return method.aggregate(setting, server.state, of(server, client.start, clients))

    elsewhere = aggregated(*[replace(one, theta=one.theta + 1) for one in updates]).end
    changing = [part for part in parts if not torch.equal(elsewhere[part], server.theta[part])]
    read = [
        part for part in changing if differ(usual, returned(method, replace(client, start=moved(client.start, part))))
    ]
    reads_buffers = differ(usual, returned(method, replace(client, buffers=moved(client.buffers))))
    down = sum(client.start[part].nbytes for part in read) + client.buffers.nbytes * reads_buffers
    for key in [key for key in client.server if key.removeprefix("base.") not in CHOSEN_BY_THE_SERVER]:
        values = client.server[key]
        for row in range(len(values)) if values.ndim > 1 else [...]:
            changed = replace(client, server={**client.server, key: moved(values, row)})
            down += values[row].nbytes * differ(usual, returned(method, changed))

    def needed(update: Update) -> State:
        outcome = aggregated(updates[0], update)
        return outcome.state | {str(part): outcome.end[part] for part in read}

    own = updates[1]
    up = sum(values.nbytes for values in own.report.values()) + client.buffers.nbytes * reads_buffers
    for part in parts:
        changed = replace(own, theta=moved(own.theta, part))
        up += own.theta[part].nbytes * differ(needed(own), needed(changed))
    assert method.transferred(setting, client, own) == (down, up)


class Keeper(Method):
    """A method from elsewhere that keeps something in clients."""

    stateful: ClassVar[bool] = True


class Sparse(Keeper):
    """Another one, which states what it sends."""

    def transferred(self, setting, client, update):
        return 8.0, 4.0


def test_a_method_that_does_not_say_has_no_bytes_and_one_that_says_has_them():
    setting, data = prepared("fedavg")
    client, nothing = first_cohort(setting, data, Server.fresh(setting))[0], torch.zeros(0)
    update = Update(client.start, nothing, 1, 0.0)
    assert all(value != value for value in Keeper().transferred(setting, client, update))
    assert Sparse().transferred(setting, client, update) == (8, 4)


def test_the_cost_of_a_run_has_the_bytes_of_its_method(tmp_path):
    changes = ["method=fedfomo", "method.models=1", "clients.valid_ratio=0.2"]
    over = ["method=ima", "method.base=fedrep", "method.window=2", "task.model=mlp", "task.model_options.hidden=[5]"]
    changed = {
        "scaffold": ["method=scaffold", "local.momentum=0.0"],
        "fedfomo": changes,
        "two": [*changes, "method.models=2"],
        "over fedrep": over,
    }
    sent = {name: training_cost(tiny.trained(tmp_path, *more), repeats=1) for name, more in changed.items()}
    model = 3 * 36 * 4
    assert [float(sent["scaffold"][key]) for key in ("bytes_up", "bytes_down")] == [2 * model] * 2
    assert [float(sent[name].bytes_down) for name in ("fedfomo", "two")] == [model, 2 * model]
    assert float(sent["fedfomo"].bytes_up) == model
    assert float(sent["over fedrep"].bytes_up) == 3 * (8 * 5 + 5) * 4
