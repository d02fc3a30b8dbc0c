"""What a method holds does not move by a bit, for every method that holds something."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from kinds import one_of_each

from drift.config import method as methods
from drift.engines import batched
from drift.training.client import Client
from drift.training.correction import Correction
from tests.drift import hand
from tests.drift.by_hand import linear_model, played

CHEAP = {
    "ima": {"window": 2, "start": 1},
    **{name: {"server_epochs": 1} for name in ("fedlaw", "feddf", "fedbe")},
    **{name: {"candidates": 2} for name in ("soups", "diwa")},
}
HOLDING = ["fedbabu", "fedrep", "ima over fedbabu", "ima over fedrep"]
ENGINES = [
    (name, engine)
    for name in HOLDING
    for engine in ("serial", "batched")
    if engine == "serial" or not methods.load(name.removeprefix("ima over "))().own_training
]
"""FedRep overrides local training, which the batched engine leaves to the serial one."""

OPTIMISERS = {
    "sgd": {"optimizer": "sgd", "momentum": 0.9, "lr": 0.3},
    "adam": {"optimizer": "adam", "lr": 0.01},
    "kept moments": {"optimizer": "adam", "lr": 0.01, "persist_optimizer": True},
}


LOCAL = list(product(OPTIMISERS, (0.0, 1e-3, 0.05), (torch.float32, torch.float64)))
"""Optimisers, decays and precisions; by default one of each optimiser, with and without decay, in both precisions."""


def table(name: str) -> dict:
    """The method of a name in `HOLDING`, or any other."""
    over = name.removeprefix("ima over ")
    inner = {"name": over, **CHEAP.get(over, {})}
    return inner if over == name else {"name": "ima", "base": inner, **CHEAP["ima"]}


@pytest.fixture
def seen(monkeypatch):
    """(held entries, those before, those after) of every local training, by either engine."""
    found, single, group = [], Client.train, batched.train

    def one(self, correction=None, **options):
        update = single(self, correction, **options)
        note(correction, self.start, update)
        return update

    def several(method, clients, receive):
        clients = list(clients)
        ready = [method.prepare(client) for client in clients]

        def noted(place, update):
            note(method.correction(ready[place]), ready[place].start, update)
            return receive(place, update)

        return group(method, clients, noted)

    def note(correction, start, update):
        if isinstance(correction, Correction) and correction.hold is not None:
            found.append((start[correction.hold], update.theta[correction.hold]))

    monkeypatch.setattr(Client, "train", one)
    monkeypatch.setattr(batched, "train", several)
    return found


@pytest.mark.parametrize("name", sorted({*methods.names()} - {"fedbn", "fedlora"}))
def test_the_methods_that_hold_entries_are_those_tested_here(name, seen):
    """FedBN, which wants another model, keeps layers between rounds and holds none while it trains; test_fedlora.py
    has FedLoRA, which wants one with adapters."""
    played(table(name), rounds=2, held=True)
    assert bool(seen) == (name in HOLDING)


@pytest.mark.parametrize(("optimiser", "decay", "dtype"), one_of_each(LOCAL, [LOCAL[place] for place in (0, 10, 17)]))
@pytest.mark.parametrize(("name", "engine"), ENGINES)
def test_held_entries_do_not_move_by_a_bit(name, optimiser, decay, dtype, engine, seen):
    local = {**OPTIMISERS[optimiser], "weight_decay": decay, "batch": 3}
    run = played(table(name), rounds=6, model=linear_model().to(dtype), engine=engine, **local)
    assert len(seen) >= 12
    for before, after in seen:
        assert after.dtype == dtype
        assert torch.equal(before, after)
    if "fedbabu" in name:
        head = slice(4, None)
        assert all((end[head] == run.ends[0][head]).all() for end in run.ends)
        assert (run.ends[-1][:4] != run.ends[0][:4]).all()


def test_the_first_member_of_a_frozen_pool_is_the_received_model():
    task = hand.task()
    local = hand.experiment(local={"optimizer": "adam", "lr": 0.1, "weight_decay": 0.05, "epochs": 2, "batch": 3}).local
    for dtype in (torch.float32, torch.float64):
        start = task.theta.to(dtype)
        job = Client(0, 0, 7, task.samples["train"], start, torch.zeros(0), local, task.flat(start))
        members = methods.load("lss")().pool(replace(job)).members
        assert torch.equal(members[0], start)
        assert not torch.equal(members[1], start)
