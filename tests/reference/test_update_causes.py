"""Causes of an unequal mean on quadratic losses, where local training has a closed form; and of recorded rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from reference.registry import agree, reference
from torch import nn

import drift
from drift.config.method_values import Setting
from drift.record.recorder import Recorder
from drift.runs.client_of_round import recorded_client
from drift.simulation.one_round import run_round
from drift.training.data import Data
from drift.training.server import Server
from drift.training.unequal_clients import rounds_late, share_of_steps
from landscape.model.samples import Samples
from landscape.model.task import Task
from tests.drift import hand
from tests.oracles import half_squared_error

K, D, LR, EPOCHS, ROUNDS = 5, 4, 0.3, 6, 7

CAUSES = ["steps", "late", "stopped", "partial", "sent", "noise"]

SIZES = (6, 9, 14, 7, 11)


@dataclass(frozen=True)
class QuadraticRun(hand.HandRun):
    """Rounds of quadratic clients by the project, with what training them again needs."""

    data: Any = None
    setting: Any = None

    @property
    def dataset(self) -> Data:
        return self.data

    def parts_in(self, index: int) -> list[np.ndarray]:
        return self.data.parts

    def client(self, index: int, client: int, replicate: int = 0) -> Any:
        return recorded_client(self, index, client, replicate)


def quadratic_run(method: Any, local: dict[str, Any], **clients: Any) -> QuadraticRun:
    inputs = hand.random(sum(SIZES), D, seed=1)
    targets = hand.random(sum(SIZES), seed=2) + 2
    samples = {"train": Samples(inputs, targets), "test": Samples(inputs, targets)}
    model = nn.Linear(D, 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        model.weight.copy_(hand.random(1, D, seed=3))
    settings = {"lr": LR, "momentum": 0.0, "epochs": EPOCHS, "batch": 50, **local}
    experiment = hand.experiment(method, rounds=ROUNDS, number=K, local=settings, clients={"per_round": 4, **clients})
    setting = Setting(Task(model, samples, loss=half_squared_error, metrics={"error": half_squared_error}), experiment)
    parts = [torch.arange(sum(SIZES)).split(SIZES)[k].numpy() for k in range(K)]
    data = Data(samples, ("a",), (1,), "", parts, [np.zeros(0, np.int64)] * K)
    server, records = Server.fresh(setting), []
    for _ in range(ROUNDS):
        record, server = run_round(setting, data, server)
        records.append(record)
    return QuadraticRun(records, experiment, D, data=data, setting=setting)


def trained(run: QuadraticRun, client: int, start: np.ndarray, steps: int) -> np.ndarray:
    """c + (1 - lr A)^steps (start - c): gradient descent on a quadratic with Hessian A and minimum c."""
    rows = run.data.parts[client]
    samples = run.setting.task.samples["train"]
    x, y = samples.inputs.numpy()[rows], samples.targets.numpy()[rows]
    hessian = x.T @ x / len(rows)
    centre = np.linalg.solve(hessian, x.T @ y / len(rows))
    return centre + np.linalg.matrix_power(np.eye(D) - LR * hessian, steps) @ (start - centre)


def weighted(rows: dict[int, np.ndarray]) -> np.ndarray:
    sizes = np.array([SIZES[client] for client in rows], dtype=float)
    return sizes / sizes.sum() @ np.array(list(rows.values()))


def stages(run: QuadraticRun, index: int) -> list[np.ndarray]:
    """The mean with one more cause at a time, in closed form."""
    record, spec = run.round(index), run.experiment
    arrived = record.ids.tolist()
    cohort = sorted([*arrived, *record.extras.get("stopped", torch.zeros(0)).long().tolist()])
    start = record.start.numpy()
    equal, steps, late = {}, {}, {}
    for client in cohort:
        own = max(1, round(EPOCHS * share_of_steps(spec, index, client)))
        origin = run.round(index - rounds_late(spec, index, client)).start.numpy()
        equal[client] = trained(run, client, start, EPOCHS) - start
        steps[client] = trained(run, client, start, own) - start
        late[client] = trained(run, client, origin, own) - origin
    rest = {client: late[client] for client in arrived}
    return [weighted(equal), weighted(steps), weighted(late), weighted(rest), weighted(rest)]


def require_parts(found, index: int, means: list[np.ndarray]) -> None:
    """Norms, shares and totals are those of the differences between successive means."""
    parts, own = np.diff(means, axis=0), found.sel(round=index)
    total = parts.sum(0)
    agree("drift.update_causes", own.norm, np.linalg.norm(parts, axis=1), relative=1e-9, absolute=1e-12)
    agree("drift.update_causes", own.total, np.linalg.norm(total), relative=1e-9, absolute=1e-12)
    agree("drift.update_causes", own["mean"], np.linalg.norm(means[-1]), relative=1e-9)
    if np.linalg.norm(total) > 1e-9:
        agree("drift.update_causes", own.share, parts @ total / (total @ total), relative=1e-8, absolute=1e-10)
        assert float(own.share.sum()) == pytest.approx(1)
        np.testing.assert_allclose(own.relative, own.norm / own["mean"], rtol=1e-12)


@reference("drift.update_causes", by="quadratic clients in closed form, top-k by sorting, float64")
def test_steps_lateness_stops_and_compression():
    run = quadratic_run("fedavg", {"compress": "top-k", "topk": 0.5}, late=2, work=[0.2, 0.9], stops=0.35)
    found = drift.update_causes(run, rounds=list(range(ROUNDS)))
    assert found.cause.values.tolist() == CAUSES
    for index in range(ROUNDS):
        record, means = run.round(index), stages(run, index)
        kept = {}
        for client in record.ids.tolist():
            own = max(1, round(EPOCHS * share_of_steps(run.experiment, index, client)))
            origin = run.round(index - rounds_late(run.experiment, index, client)).start.numpy()
            update = trained(run, client, origin, own) - origin
            smallest = np.argsort(-np.abs(update))[2:]
            update[smallest] = 0
            kept[client] = update
        require_parts(found, index, [*means, weighted(kept), weighted(kept)])
    norms = found.norm.max("round")
    assert float(norms.sel(cause=["steps", "late", "stopped", "sent"]).min()) > 0.01
    assert float(norms.sel(cause=["partial", "noise"]).max()) == 0


@pytest.mark.parametrize("wrapped", [False, True])
def test_clipping_and_noise(wrapped):
    method = {"name": "dpfedavg", "clip": 0.7, "noise": 0.4}
    method = {"name": "ima", "base": method, "start": 0.99} if wrapped else method
    run = quadratic_run(method, {}, late=1, weighting="uniform", stops=0.2)
    found = drift.update_causes(run, rounds=[0, -2])
    for index in (0, ROUNDS - 2):
        record = run.round(index)
        every = sorted([*record.ids.tolist(), *record.extras.get("stopped", torch.zeros(0)).long().tolist()])
        start = record.start.numpy()
        equal, late = {}, {}
        for client in every:
            origin = run.round(index - rounds_late(run.experiment, index, client)).start.numpy()
            equal[client] = trained(run, client, start, EPOCHS) - start
            late[client] = trained(run, client, origin, EPOCHS) - origin
        arrived = [late[client] for client in record.ids.tolist()]
        clipped = [update * min(1, 0.7 / np.linalg.norm(update)) for update in arrived]
        means = [np.mean(list(equal.values()), 0)] * 2 + [np.mean(list(late.values()), 0)]
        means += [np.sum(arrived, 0) / 4] * 2 + [np.sum(clipped, 0) / 4]  # the server divides by the expected number
        means += [means[-1] + record.extras["noise"].numpy()]
        require_parts(found, index, means)
        np.testing.assert_allclose(means[-1], record.end.numpy() - start, rtol=1e-9)
    assert float(found.norm.sel(cause="noise").min()) > 0.01
    assert float(found.norm.sel(cause="sent").max()) > 0.01


def test_one_cause_alone_is_the_whole():
    settings: dict[str, dict[str, Any]] = {
        "steps": {"work": [0.2, 0.6]},
        "late": {"late": 3},
        "stopped": {"stops": 0.5},
    }
    for cause, clients in settings.items():
        found = drift.update_causes(quadratic_run("fedavg", {}, **clients), rounds=list(range(1, ROUNDS)))
        others = found.norm.drop_sel(cause=cause)
        assert float(others.max()) < 1e-12
        agree("drift.update_causes", found.norm.sel(cause=cause), found.total, relative=1e-12)
        assert float(found.total.max()) > 0.01


def state(seed: int) -> dict[str, torch.Tensor]:
    return {"a": hand.random(3, seed=seed), "b": hand.random(2, seed=100 + seed)}


def vector(model: dict[str, torch.Tensor]) -> np.ndarray:
    return torch.cat(list(model.values())).numpy()


def test_recorded_rounds_split_what_is_known_and_leave_out_what_needs_training(tmp_path):
    recorder, start = Recorder(tmp_path / "run"), state(0)
    part = {"a": state(3)["a"]}
    recorder.round(
        start=start,
        clients={0: (state(1), 3), 1: (state(2), 1), 2: (part, 4)},
        end=state(9),
        unequal={1: {"sent": state(5)}},
    )
    recorder.round(clients={0: (state(6), 3), 1: (state(7), 1)}, end=state(10), unequal={1: {"start_round": 0}})
    stopped = {4: {"stopped": True}, 0: {"steps": 3}, 1: {"steps": 9}}
    recorder.round(clients={0: (state(6), 3), 1: (state(7), 1)}, end=state(10), unequal=stopped)
    run = drift.open(tmp_path / "run")
    found = drift.update_causes(run, rounds=[0, 1, 2])

    begun = vector(start)
    updates = [vector(state(1)) - begun, vector(state(2)) - begun, vector(start | part) - begun]
    p = np.array([3, 1, 4]) / 8
    whole, received = p @ updates, p @ [updates[0], vector(state(5)) - begun, updates[2]]
    two = np.array([0.75, 0.25]) @ updates[:2]
    complete = np.concatenate([whole[:3], two[3:]])
    require_parts(found, 0, [complete, complete, complete, complete, whole, received, received])
    assert found.norm.sel(round=1).isnull().values.tolist() == [False, True, False, False, False, False]
    assert found.norm.sel(round=2).isnull().values.tolist() == [True, False, True, False, False, False]
    assert found.share.sel(round=[1, 2]).isnull().all()
    assert found.total.isnull().values.tolist() == [False, True, True]
    assert found.attrs["unequal"].startswith("late, partial, sent, steps, stopped: ")


def test_the_mean_of_a_recorded_round_has_the_weights_that_the_server_took(tmp_path):
    recorder, begun, share = Recorder(tmp_path / "run"), vector(state(0)), np.array([0.9, 0.1])
    clients, part = {0: (state(1), 5), 1: ({"a": state(2)["a"]}, 5)}, vector(state(0) | {"a": state(2)["a"]})
    recorder.round(
        start=state(0), clients=clients, end=state(9), weights={0: 0.9, 1: 0.1}, unequal={0: {"sent": state(3)}}
    )
    whole, received = share @ [vector(state(1)) - begun, part - begun], share @ [vector(state(3)) - begun, part - begun]
    complete = np.concatenate([whole[:3], (vector(state(1)) - begun)[3:]])
    found = drift.update_causes(drift.open(tmp_path / "run"), rounds=[0])
    require_parts(found, 0, [complete, complete, complete, complete, whole, received, received])


def test_equal_clients_change_nothing(tmp_path):
    recorder = Recorder(tmp_path / "run")
    recorder.round(start=state(0), clients={0: (state(1), 3), 2: (state(2), 4)}, end=state(9))
    learned = tiny.trained(tmp_path, "method=fedlaw", "rounds=2")
    for run in (drift.open(tmp_path / "run"), quadratic_run("fedavg", {}), learned):
        found = drift.update_causes(run, rounds=[0])
        assert found.norm.values.max() < 1e-15, "nothing but rounding"
        assert "unequal" not in found.attrs or run.unequal
