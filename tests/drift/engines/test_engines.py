"""The batched engine against the serial one, and the choice between them."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch
from kinds import one_of_each
from torch import nn

import drift
from drift.config import method as methods
from drift.config.experiment import Local
from drift.engines import batched, choice, serial, train
from drift.training.client import Client, Update
from drift.training.correction import Correction, stack_corrections
from landscape.model.loss_weights import Counted
from landscape.model.losses import SampleLoss
from landscape.model.samples import Samples
from landscape.model.task import Task, cross_entropy
from landscape.models._blocks import Classifier
from tests.drift import hand
from tests.tiny import experiment

SIZES = (7, 2, 0, 13, 1)


def _model(normalised: bool) -> nn.Module:
    torch.manual_seed(3)
    layers = [nn.Flatten(), nn.Linear(6, 5), *([nn.GroupNorm(1, 5)] if normalised else []), nn.ReLU()]
    return Classifier(nn.Sequential(*layers), nn.Linear(5, 3)).double()


def _clients(
    local: Local, *, normalised: bool = False, server=None, states=None, sizes=SIZES, loss=cross_entropy, ignored=0
) -> list[Client]:
    task = Task(_model(normalised), {}, loss)
    source = torch.Generator().manual_seed(4)
    flat, start = task.flat(task.theta), task.theta
    return [
        Client(
            id=10 + place,
            index=2,
            seed=6,
            samples=Samples(
                torch.randn(size, 1, 2, 3, generator=source, dtype=torch.float64),
                torch.where(torch.arange(size) % 4 < ignored, -100, torch.randint(3, (size,), generator=source)),
            ),
            start=start,
            buffers=task.buffers,
            local=local,
            flat=flat,
            state=states[place] if states else {},
            server=server or {},
        )
        for place, size in enumerate(sizes)
    ]


def _same(found: list[Update], expected: list[Update]) -> None:
    for one, two in zip(found, expected, strict=True):
        assert (one.steps, set(one.state), set(one.report)) == (two.steps, set(two.state), set(two.report))
        torch.testing.assert_close(one.theta, two.theta)
        torch.testing.assert_close(torch.tensor(one.loss), torch.tensor(two.loss), equal_nan=True)
        for name in two.state:
            torch.testing.assert_close(one.state[name], two.state[name])
        for name in two.report:
            torch.testing.assert_close(one.report[name], two.report[name])


LOCALS = {
    "plain": {"momentum": 0.0},
    "momentum and decay": {"momentum": 0.9, "weight_decay": 0.1},
    "drop last": {"drop_last": True},
    "steps": {"steps": 5},
    "one batch": {"batch": 50},
    "batches of one": {"batch": 1, "epochs": 1},
    "adam": {"optimizer": "adam", "lr": 0.01, "weight_decay": 0.1},
    "persistent": {"persist_optimizer": True},
    "persistent adam": {"persist_optimizer": True, "optimizer": "adam", "lr": 0.01},
}


@pytest.mark.parametrize("name", LOCALS)
@pytest.mark.parametrize("normalised", [False, True])
def test_batched_equals_serial_for_clients_of_any_size(name, normalised):
    local = Local(**{"lr": 0.1, "epochs": 3, "batch": 4, **LOCALS[name]})
    clients = _clients(local, normalised=normalised)
    method = methods.load("fedavg")()
    expected = serial.train(method, clients)
    found, useful = batched.train(method, clients)
    _same(found, expected)
    assert 0 < useful <= 1
    later = [replace(client, state=update.state) for client, update in zip(clients, expected, strict=True)]
    _same(batched.train(method, later)[0], serial.train(method, later))


METHODS = {
    "fedprox": {"mu": 0.5},
    "scaffold": {},
    "feddyn": {"clip": 0.3},
    "feddyn plain": {"norm": "plain", "clip": None},
    "fedbabu": {},
    "fednova": {},
    "fedeve": {},
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_correct_a_cohort_as_they_correct_one_client(name):
    method = methods.load(name.split()[0])(**METHODS[name])
    local = method.schedule(Local(lr=0.1, lr_decay=0.5, momentum=0.0, weight_decay=0.1, epochs=3, batch=4), 2, 10)
    d = len(_clients(local)[0].start)
    server = {"control": hand.random(d, seed=8)}
    states = [{kind: 0.1 * hand.random(d, seed=place) for kind in ("control", "dual")} for place in range(len(SIZES))]
    clients = _clients(local, server=server, states=states)
    _same(batched.train(method, clients)[0], serial.train(method, clients))


def test_methods_with_layers_of_their_own_begin_and_finish_in_a_batch():
    method = methods.load("fedbn")()
    clients = _clients(Local(lr=0.1, epochs=2, batch=4), normalised=True)
    begun = serial.train(method, clients)
    later = [replace(client, state=update.state) for client, update in zip(clients, begun, strict=True)]
    _same(batched.train(method, later)[0], serial.train(method, later))


def test_ima_trains_as_its_base_does():
    base = methods.load("scaffold")()
    ima = methods.load("ima")(base=base)
    local = Local(lr=0.1, momentum=0.0, epochs=2, batch=4)
    control = hand.random(len(_clients(local)[0].start), seed=8)
    found = batched.train(ima, _clients(local, server={"base.control": control}))[0]
    _same(found, serial.train(base, _clients(local, server={"control": control})))
    assert methods.load("ima")(base=methods.load("fedsam")()).own_training and not ima.own_training


def test_a_cohort_too_large_for_the_memory_is_trained_in_parts(monkeypatch):
    local = Local(lr=0.1, epochs=2, batch=4)
    whole, useful = batched.train(methods.load("fedavg")(), _clients(local))
    monkeypatch.setattr(batched, "chunk", lambda client, made: 2)
    parts, more = batched.train(methods.load("fedavg")(), _clients(local))
    _same(parts, whole)
    assert more >= useful


def test_the_useful_fraction_counts_padding():
    local = Local(lr=0.1, epochs=1, batch=4)
    _, useful = batched.train(methods.load("fedavg")(), _clients(local, sizes=(7, 2)))
    assert useful == 9 / (2 * 4 + 3)  # steps of 4 and 2 in 2 x 4 places, then 3 in 3
    assert batched.train(methods.load("fedavg")(), _clients(local, sizes=(0,)))[1] != useful
    assert batched.train(methods.load("fedavg")(), [])[0] == []


def test_a_client_that_diverges_leaves_the_others_alone():
    local = Local(lr=0.1, epochs=2, batch=4)
    clients = _clients(local)
    sound = batched.train(methods.load("fedavg")(), clients)[0]
    spoiled = Samples(torch.full_like(clients[0].samples.inputs, torch.inf), clients[0].samples.targets)
    found = batched.train(methods.load("fedavg")(), [replace(clients[0], samples=spoiled), *clients[1:]])[0]
    assert not bool(torch.isfinite(found[0].theta).any())
    for one, two in zip(found[1:], sound[1:], strict=True):
        assert torch.equal(one.theta, two.theta)


def test_corrections_of_different_kinds_are_not_stacked():
    shift = torch.ones(2)
    assert stack_corrections([None, None]) is None
    for other in (None, Correction(clip=1.0, shift=shift), Correction(pull=1.0, anchor=shift)):
        with pytest.raises(ValueError, match="serial"):
            stack_corrections([Correction(shift=shift), other])


def test_engines_are_known_by_name():
    with pytest.raises(ValueError, match="serial, batched"):
        train("quantum", methods.load("fedavg")(), [])
    assert train("serial", methods.load("fedavg")(), []).useful is None


class Odd(nn.Module):
    """A model with an operation that vmap does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(6, 3, dtype=torch.float64))

    def forward(self, inputs):
        outputs = inputs.flatten(1) @ self.weight
        return outputs if float(outputs.sum().item()) > 1e9 else outputs * 1.0


def test_what_cannot_be_batched_falls_back_and_says_why():
    clients = _clients(Local(batch=4))
    assert choice.unfit(methods.load("fedavg")(), clients) == ""
    assert "fedsam overrides local training" in choice.unfit(methods.load("fedsam")(), clients)
    assert "no client" in choice.unfit(methods.load("fedavg")(), [])
    odd = Task(Odd(), {})
    strange = [replace(client, start=odd.theta, flat=odd.flat(odd.theta)) for client in clients]
    assert "cannot be batched" in choice.unfit(methods.load("fedavg")(), strange)
    found = choice.choose_engine("auto", methods.load("fedsam")(), clients)
    assert found.name == "serial" and "auto was asked for" in found.reason


def test_wrong_batched_gradients_are_noticed(monkeypatch):
    clients = _clients(Local(batch=4))
    monkeypatch.setattr(
        choice, "single_model_gradient", lambda flat, theta, *rest: (theta.sum(), torch.ones_like(theta))
    )
    assert "differ" in choice.unfit(methods.load("fedavg")(), clients)


def test_auto_takes_the_faster_engine(monkeypatch):
    clients = _clients(Local(batch=4))
    for fast in ("serial", "batched"):
        for name in ("serial", "batched"):
            monkeypatch.setattr(choice, f"_{name}_seconds", lambda *given, name=name, fast=fast: 2.0 - (name == fast))
        found = choice.choose_engine("auto", methods.load("fedavg")(), clients)
        assert found.name == fast
        assert f"{fast} 1000.00 ms" in found.reason


def test_a_run_by_either_engine_is_the_same_but_for_rounding(tmp_path):
    plain, other = (drift.simulate(experiment(f"engine={name}"), runs=tmp_path) for name in ("serial", "batched"))
    assert plain.name != other.name
    assert (plain.about["engine"], other.about["engine"]) == ("serial", "batched")
    for index in plain.rounds():
        one, two = plain.round(index), other.round(index)
        torch.testing.assert_close(one.clients, two.clients, rtol=1e-5, atol=1e-6)
        assert 0 < two.metrics["useful_fraction"] <= 1 and "useful_fraction" not in one.metrics


def test_a_resumed_run_keeps_its_engine_and_its_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "drift.simulation.background_writer.SHARE", 0.0
    )  # a round is on disk before the next one trains
    whole = drift.simulate(experiment("engine=batched"), runs=tmp_path / "whole")

    class Stop(Exception):
        pass

    def stop(record) -> None:
        raise Stop

    with pytest.raises(Stop):
        drift.simulate(experiment("engine=batched"), runs=tmp_path / "parts", progress=stop)
    loop = sys.modules["drift.simulation.simulate"]  # the name drift.simulate is the function
    monkeypatch.setattr(loop, "choose_engine", None)  # a begun run does not choose again
    parts = drift.simulate(experiment("engine=batched"), runs=tmp_path / "parts")
    for index in whole.rounds():
        assert torch.equal(whole.round(index).clients, parts.round(index).clients)


def test_the_serial_engine_leaves_the_name_of_a_run_as_it_was():
    assert experiment("engine=serial").hash == experiment().hash
    assert len({experiment(f"engine={name}").hash for name in ("serial", "batched", "auto")}) == 3


WEIGHTS = torch.tensor([1.0, 0.2, 6.0]).double()
WEIGHED = SampleLoss(nn.CrossEntropyLoss(weight=WEIGHTS, reduction="none"), Counted(-100, WEIGHTS))


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("loss", [cross_entropy, WEIGHED], ids=["ignored", "weighed"])
def test_samples_have_their_weights_in_every_minibatch_of_a_batch(loss, normalised):
    local = Local(lr=0.2, epochs=2, batch=3, momentum=0.0, weight_decay=0.0)
    sets = [_clients(local, normalised=normalised, loss=loss, ignored=1) for _ in range(3)]
    found, expected = batched.train(methods.load("fedavg")(), sets[0]), serial.train(methods.load("fedavg")(), sets[1])
    _same(found[0], expected)
    for update, client in zip(expected, sets[2], strict=True):
        model = _model(normalised)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        for batch in client.batches():
            optimizer.zero_grad()
            own = nn.functional.cross_entropy(
                model(batch.inputs), batch.targets, weight=WEIGHTS if loss is WEIGHED else None
            )
            if own.isfinite():  # something in the batch counts
                own.backward()
                optimizer.step()
        torch.testing.assert_close(update.theta, torch.nn.utils.parameters_to_vector(model.parameters()).detach())


@pytest.mark.parametrize("name", one_of_each(sorted(set(methods.names()) - {"fedbn"})))  # fedbn is above
def test_every_method_runs_when_asked_to_batch(name, tmp_path):
    settings = ["engine=batched", "rounds=2", "clients.valid_ratio=0.2", "local.momentum=0.0"]
    own = {"ima": ["method.window=1"], "fedlora": ["task.model=adapted:build"]}.get(name, [])
    run = drift.simulate(experiment(f"method={name}", *settings, *own), runs=tmp_path)
    assert run.about["engine"] == ("serial" if run.method.own_training else "batched")
    assert ("overrides local training" in run.about["engine_reason"]) == run.method.own_training
