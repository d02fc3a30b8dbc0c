"""The round loop: what is recorded, the same bits again, and what breaks cleanly."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from drift.config.experiment import Local
from drift.config.load import read, validated
from drift.config.method import Method
from drift.runs.run import Run
from drift.simulation import background_writer
from drift.simulation.simulate import Diverged, simulate
from drift.store import files
from drift.store.round_record import CLIENTS, PREVIOUS, START, STEP
from drift.training.client import Client
from drift.training.data import build_task, read_data
from landscape.sweep.evaluate import evaluate

TINY = {
    "rounds": 4,
    "seed": 5,
    "task": {"dataset": "digits", "model": "mlp", "model_options": {"hidden": [12]}, "train_samples": 200},
    "clients": {"number": 6, "per_round": 3, "partition": "dirichlet", "concentration": 0.5, "variant": "plain"},
    "local": {"lr": 0.1, "epochs": 3, "batch": 8, "momentum": 0.5},
}


def same(first: Run, second: Run) -> None:
    """Both runs have the same bits in every round and in the state."""
    assert first.rounds() == second.rounds()
    for index in first.rounds():
        one, two = first.round(index), second.round(index)
        for name in ("ids", "sizes", "weights", "gram", "start", "end", "clients"):
            assert torch.equal(getattr(one, name), getattr(two, name)), (index, name)
        assert one.extras.keys() == two.extras.keys()
        assert all(torch.equal(one.extras[name], two.extras[name]) for name in one.extras)
        for name in one.metrics.keys() - {"seconds"}:
            assert one.metrics[name] == two.metrics[name] or np.isnan(one.metrics[name])
    one, two = first.state()[0], second.state()[0]
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_round_records_what_happened(tmp_path):
    run = simulate(validated(TINY), runs=tmp_path)
    assert run.rounds() == [0, 1, 2, 3]
    before = run.task.theta
    for index in run.rounds():
        record = run.round(index)
        assert record.ids.tolist() == run.cohort(index).tolist()
        assert record.sizes.tolist() == [len(run.parts[client]) for client in record.ids]
        assert torch.equal(record.start, before)
        torch.testing.assert_close(record.end, record.fma)
        torch.testing.assert_close(record.weights, record.shares)
        loss = evaluate(run.task, record.end[None], torch.ones(1, 1))["loss"]
        assert record.metrics["loss"] == pytest.approx(float(loss))
        before = record.end
    assert run.metrics().accuracy[-1] > run.metrics().accuracy[0]


def test_the_gram_matrix_holds_start_previous_step_and_updates(tmp_path):
    run = simulate(validated(TINY), runs=tmp_path)
    first, second = run.round(0), run.round(1)
    previous = first.shares.to(first.deltas) @ first.deltas
    rows = torch.stack([second.start, previous, second.end - second.start, *second.deltas]).double()
    torch.testing.assert_close(second.gram, rows @ rows.T)
    assert first.gram[PREVIOUS, PREVIOUS] == 0
    assert first.gram[START, START] > 0
    assert first.gram[STEP, CLIENTS] != 0


def test_training_again_returns_the_run_and_trains_nothing(tmp_path):
    seen: list[int] = []
    first = simulate(validated(TINY), runs=tmp_path, progress=lambda record: seen.append(record.index))
    simulate(validated(TINY), runs=tmp_path, progress=lambda record: seen.append(record.index))
    assert seen == [0, 1, 2, 3]
    assert len(list(tmp_path.glob("fedavg-*"))) == 1
    assert first.experiment == validated(TINY)


@pytest.mark.parametrize(
    "changes", [[], ["local.persist_optimizer=true"], ["method.name=ima", "method.start=0.5", "method.window=2"]]
)
def test_a_run_stopped_between_rounds_goes_on_with_the_same_bits(tmp_path, changes, monkeypatch):
    monkeypatch.setattr(background_writer, "SHARE", 0.0)  # a round is on disk before the next one trains
    experiment = read(validated(TINY), *changes)
    whole = simulate(experiment, runs=tmp_path / "whole")

    def stop(record):
        if record.index == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(experiment, runs=tmp_path / "parts", progress=stop)
    same(simulate(experiment, runs=tmp_path / "parts"), whole)


def test_a_round_written_without_its_commit_is_played_again(tmp_path, monkeypatch):
    """A kill between the round's file and the state leaves a file that does not count yet."""
    whole = simulate(validated(TINY), runs=tmp_path / "whole")
    real, calls = files.write_tensors, []

    def dies_before_third_commit(path, tensors, about, **options):
        if path.name == "state.safetensors":
            calls.append(path)
            if len(calls) == 3:
                raise KeyboardInterrupt
        real(path, tensors, about, **options)

    monkeypatch.setattr(files, "write_tensors", dies_before_third_commit)
    with pytest.raises(KeyboardInterrupt):
        simulate(validated(TINY), runs=tmp_path / "parts")
    monkeypatch.undo()
    stopped = Run(tmp_path / "parts" / whole.name)
    assert stopped.rounds() == [0, 1]
    assert files.round_path(stopped.folder, 2).exists()
    same(simulate(validated(TINY), runs=tmp_path / "parts"), whole)


CHILD = """
import sys
from drift.read import validated
from drift.simulate import simulate
import json
simulate(validated(json.loads(sys.argv[1])), runs=sys.argv[2], progress=lambda record: print(record.index, flush=True))
"""


def test_kill_9_at_random_moments_then_resume_gives_the_same_bits(tmp_path):
    """The process is killed at random moments until it gets through; another process never was."""
    settings = {**TINY, "rounds": 12, "local": {"lr": 0.1, "epochs": 3, "batch": 4}}
    arguments = [sys.executable, "-c", CHILD, json.dumps(settings)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole = simulate(validated(settings), runs=tmp_path / "whole")
    moments = np.random.default_rng(0).uniform(0, 0.25, size=4)
    kills = 0
    for moment in moments:
        child = subprocess.Popen([*arguments, str(tmp_path / "parts")], stdout=subprocess.PIPE, env=environment)
        child.stdout.readline()  # at least one round of this life is written
        time.sleep(moment)
        kills += child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert kills, "every child finished before it was killed; make the run longer"
    same(simulate(validated(settings), runs=tmp_path / "parts"), whole)


def test_two_processes_give_the_same_bits(tmp_path):
    here = simulate(validated(TINY), runs=tmp_path / "here")
    subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(TINY), str(tmp_path / "there")],
        check=True,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "77"},
    )
    same(Run(tmp_path / "there" / here.name), here)


def test_one_client_of_one_round_trained_alone_gives_the_recorded_bits(tmp_path):
    run = simulate(validated(TINY), runs=tmp_path)
    record = run.round(2)
    client = int(record.ids[1])
    again = run.method.local(run.client(2, client))
    assert torch.equal(again.theta, record.clients[1])
    other = run.method.local(run.client(2, client, replicate=1))
    assert not torch.equal(other.theta, record.clients[1])


def test_methods_share_initial_model_cohorts_and_partition(tmp_path):
    first = simulate(validated(TINY), runs=tmp_path)
    second = simulate(read(validated(TINY), "method.name=fedeve"), runs=tmp_path)
    assert torch.equal(first.round(0).start, second.round(0).start)
    for one, two in zip(first.parts, second.parts, strict=True):
        assert np.array_equal(one, two)
    for index in first.rounds():
        assert torch.equal(first.round(index).ids, second.round(index).ids)
    assert torch.equal(first.round(0).clients, second.round(0).clients)


def test_one_client_alone_equals_plain_sgd(tmp_path):
    experiment = read(validated(TINY), "clients.number=1", "clients.per_round=1", "clients.partition=iid", "rounds=2")
    run = simulate(experiment, runs=tmp_path)
    theta = run.task.theta.clone().requires_grad_()
    flat, samples = run.task.flat(theta.detach()), run.client_samples(0)
    for index in range(2):
        optimizer = torch.optim.SGD([theta], lr=0.1, momentum=0.5)
        for batch in run.client(index, 0).batches():
            optimizer.zero_grad()
            flat.functional_loss(theta, batch).backward()
            optimizer.step()
    assert len(samples) == 200
    torch.testing.assert_close(run.round(-1).end, theta.detach(), rtol=1e-4, atol=1e-6)


def _spoiled(ids: set[int]):
    real = Method.local

    def local(self, client: Client):
        update = real(self, client)
        if client.id in ids and client.index >= 1:
            update.theta[0] = torch.nan
        return update

    return local


def test_a_non_finite_client_is_excluded_and_named(tmp_path, monkeypatch):
    run = simulate(validated(TINY), runs=tmp_path / "sound")
    bad = int(run.round(1).ids[0])
    monkeypatch.setattr(Method, "local", _spoiled({bad}))
    spoiled = simulate(validated(TINY), runs=tmp_path / "spoiled")
    record = spoiled.round(1)
    assert record.extras["excluded"].tolist() == [bad]
    assert bad not in record.ids.tolist()
    assert float(record.weights.sum()) == pytest.approx(1)
    assert bool(torch.isfinite(spoiled.round(-1).end).all())


def test_a_client_with_non_finite_batch_statistics_is_excluded(tmp_path, monkeypatch):
    def local(self, client):
        update = client.train()
        if client.id == bad:
            update.buffers[-1] = torch.inf
        return update

    settings = {**TINY, "rounds": 1, "task": NORMALISED}
    bad = int(simulate(validated(settings), runs=tmp_path / "sound").round(0).ids[0])
    monkeypatch.setattr(Method, "local", local)
    record = simulate(validated(settings), runs=tmp_path / "spoiled").round(0)
    assert record.extras["excluded"].tolist() == [bad]
    assert bool(torch.isfinite(record.end_buffers).all())


def test_a_run_without_a_finite_client_stops_and_keeps_the_record(tmp_path, monkeypatch):
    monkeypatch.setattr(Method, "local", _spoiled(set(range(6))))
    with pytest.raises(Diverged, match="round 1: no finite model is left"):
        simulate(validated(TINY), runs=tmp_path)
    (folder,) = tmp_path.iterdir()
    run = Run(folder)
    assert run.rounds() == [0]
    assert len(files.read_round(folder, 1).extras["excluded"]) == 3


def test_a_run_that_would_not_fit_the_disk_is_refused_before_it_starts(tmp_path, monkeypatch):
    monkeypatch.setattr("drift.simulation.disk_space.shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match="keep fewer rounds"):
        simulate(validated(TINY), runs=tmp_path)
    assert not list(tmp_path.glob("*/rounds"))


def test_a_disk_that_fills_up_leaves_the_last_round_readable(tmp_path, monkeypatch):
    whole = simulate(validated(TINY), runs=tmp_path / "whole")
    real, writes = os.fsync, []

    def full(descriptor: int) -> None:
        writes.append(descriptor)
        if len(writes) == 6:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        simulate(validated(TINY), runs=tmp_path / "parts")
    monkeypatch.undo()
    stopped = Run(tmp_path / "parts" / whole.name)
    assert stopped.round(-1).index == stopped.committed - 1
    assert not list(stopped.folder.rglob("*.part"))
    same(simulate(validated(TINY), runs=tmp_path / "parts"), whole)


def test_data_that_changed_under_a_run_are_noticed(tmp_path):
    run = simulate(read(validated(TINY), "rounds=1"), runs=tmp_path)
    about = files.read_json(run.folder / "run.json")
    files.write_json(run.folder / "run.json", {**about, "fingerprint": "other"})
    (run.folder / "state.safetensors").unlink()
    with pytest.raises(ValueError, match="fingerprint"):
        simulate(read(validated(TINY), "rounds=1"), runs=tmp_path)


def test_a_client_without_samples_returns_its_start_with_weight_zero(tmp_path):
    settings = {**TINY, "clients": {**TINY["clients"], "number": 30, "per_round": 30, "concentration": 0.05}}
    run = simulate(read(validated(settings), "rounds=1"), runs=tmp_path)
    record = run.round(0)
    empty = [row for row, size in enumerate(record.sizes.tolist()) if size == 0]
    assert empty, "no client is empty under this seed; choose another"
    for row in empty:
        assert record.weights[row] == 0
        assert torch.equal(record.clients[row], record.start)


def test_held_out_samples_are_not_trained_on_but_count_as_size(tmp_path):
    run = simulate(read(validated(TINY), "rounds=1", "clients.valid_ratio=0.3"), runs=tmp_path)
    record = run.round(0)
    for client, size in zip(record.ids.tolist(), record.sizes.tolist(), strict=True):
        held = run.dataset.held_out[client]
        assert len(run.parts[client]) + len(held) == size
        assert not set(held) & set(run.parts[client])


def test_the_proxy_set_is_balanced_and_out_of_the_test_set(tmp_path):
    with_proxy = simulate(read(validated(TINY), "rounds=1", "proxy.per_class=3"), runs=tmp_path)
    proxy, test = with_proxy.task.samples["proxy"], with_proxy.task.samples["test"]
    assert torch.bincount(proxy.targets).tolist() == [3] * 10
    assert len(proxy) + len(test) == 360
    with pytest.raises(ValueError, match="lower it"):
        simulate(read(validated(TINY), "rounds=1", "proxy.per_class=300"), runs=tmp_path)


def normalised(shape, classes):
    """A model with batch statistics, as users' own models have them."""
    features = int(np.prod(shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(features, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, classes))


NORMALISED = {"dataset": "digits", "model": f"{__name__}:normalised", "train_samples": 200}


@pytest.mark.parametrize(
    ("samples", "batch", "steps", "sizes"),
    [
        (9, 4, None, [4, 4]),  # the last one alone is dropped
        (9, 4, 3, [4, 4, 4]),
        (10, 4, None, [4, 4, 2]),
        (3, 1, 4, [1, 1, 1, 1]),  # asked for; whether the model takes it is the model's affair
        (1, 4, None, []),
        (1, 4, 3, []),
    ],
)
def test_batches_of_one_are_dropped_before_batch_statistics(samples, batch, steps, sizes):
    task = build_task(validated({**TINY, "task": NORMALISED}), read_data(validated({**TINY, "task": NORMALISED}), None))
    client = Client(
        id=0,
        index=0,
        seed=1,
        samples=task.samples["train"][:samples],
        start=task.theta,
        buffers=task.buffers,
        local=Local(batch=batch, steps=steps, epochs=1),
        flat=task.flat(task.theta),
    )
    assert [len(part) for part in client.batches()] == sizes


def test_buffers_are_averaged_and_fedlaw_takes_them_from_the_proxy_set(tmp_path):
    experiment = validated({**TINY, "task": NORMALISED, "rounds": 2})
    run = simulate(experiment, runs=tmp_path)
    record = run.round(-1)
    assert record.end_buffers.shape == (10,)
    torch.testing.assert_close(record.end_buffers, record.shares.to(record.end) @ record.client_buffers)
    again = run.method.local(run.client(1, int(record.ids[0])))
    assert torch.equal(again.buffers, record.client_buffers[0])

    law = simulate(read(experiment, "proxy.per_class=5", "method.name=fedlaw", "method.server_epochs=2"), runs=tmp_path)
    last = law.round(-1)
    hidden = law.task.layout.named(last.end)
    inputs = law.task.samples["proxy"].inputs.flatten(1)
    mean = (inputs @ hidden["1.weight"].T + hidden["1.bias"]).mean(0)
    torch.testing.assert_close(last.end_buffers[:5], mean, rtol=1e-4, atol=1e-5)


def test_a_frozen_backbone_leaves_only_the_head_in_theta(tmp_path):
    task = {**TINY["task"], "freeze_backbone": True}
    run = simulate(validated({**TINY, "task": task, "rounds": 1}), runs=tmp_path)
    assert {name.split(".")[0] for name, _ in run.task.layout.parameters} == {"head"}
    record = run.round(0)
    assert not torch.equal(record.start, record.end)
    with pytest.raises(ValueError, match="has none; leave it out"):
        simulate(validated({**TINY, "task": {**task, "model": f"{__name__}:normalised", "model_options": {}}}))
