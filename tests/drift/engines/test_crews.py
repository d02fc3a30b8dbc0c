"""Clients shared by processes: the same bits as in one, whoever dies."""

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import tiny
import torch

import drift
from drift.engines import client_pool, pooled_clients
from drift.engines.pure import Received
from drift.parallel.shared_tensors import MemoryRegion, map_memory
from drift.parallel.worker_pool import Workers
from drift.store.client_rows import RowFile
from drift.training.client import Update

SLOW = ["method=scaffold", "local.momentum=0.0", "clients.valid_ratio=0.2", "local.epochs=20", "local.batch=1"]


def same(one, two):
    assert one.name == two.name and one.rounds() == two.rounds()
    for index in one.rounds():
        first, second = one.round(index), two.round(index)
        for what in ("start", "end", "clients", "client_buffers", "gram", "weights"):
            assert torch.equal(getattr(first, what), getattr(second, what)), (index, what)
        assert first.carried.keys() == second.carried.keys()
        for name in first.carried:
            assert torch.equal(first.carried[name], second.carried[name])
    assert one.about == two.about
    told = [run.metrics().drop_vars("seconds") for run in (one, two)]
    assert "accuracy" in told[0] and told[0].equals(told[1])


def test_processes_give_the_bits_of_serial_and_one_killed_at_work_is_replaced(tmp_path, monkeypatch):
    whole = drift.simulate(tiny.experiment(*SLOW), runs=tmp_path / "whole")
    rounds, killed, born, real = [], [], set(), Workers.results

    def results(self, work, jobs, **options):
        """In round 1 a worker is killed while it computes: a client takes longer than that."""
        rounds.append(len(jobs))
        victim = self.pids()[0]
        timer = threading.Timer(0.03, lambda: (killed.append(victim), os.kill(victim, signal.SIGKILL)))
        if len(rounds) == 2:
            timer.start()
        born.update(self.pids())
        yield from real(self, work, jobs, **options)
        born.update(self.pids())
        if len(rounds) == 2:
            assert killed and victim not in self.pids(), "the round was over before the worker was killed"

    monkeypatch.setattr(Workers, "results", results)
    parts = drift.simulate(tiny.experiment(*SLOW), runs=tmp_path / "parts", workers=2)
    same(whole, parts)
    assert rounds == [3, 3, 3]
    assert len(born) == 3 and not [pid for pid in born if psutil.pid_exists(pid)]


def test_a_model_of_a_wrong_shape_comes_back_as_it_is():
    received = Received(0, torch.zeros(4), torch.zeros(0), {})
    for theta, fits in ((torch.ones(5), False), (torch.ones(4), True), (torch.ones(4).double(), False)):
        trained = lambda *_, theta=theta: Update(theta, torch.zeros(0), 1, 0.5)  # noqa: E731 - a stub
        with MemoryRegion(2 * 16) as rows:
            row = pooled_clients._marked((RowFile(Path(rows.path), 0, 16), 1))
            update, in_row = pooled_clients._trained(SimpleNamespace(trained=trained), received, (3, {}, row))
            models = map_memory(rows.path, rows.size, writable=True).view(torch.float32).view(2, 4)
            assert in_row == fits and models[0].tolist() == [0] * 4
            assert torch.equal(models[1] if fits else update.theta, theta)


def test_workers_and_a_cluster_are_not_for_one_run(tmp_path):
    for options in ({"workers": 2, "cluster": "tcp://host:1"}, {"workers": 0}):
        with (
            pytest.raises(ValueError, match="give 1 or more workers, or a cluster"),
            client_pool(None, None, tmp_path, **options),
        ):
            pass


def test_an_engine_of_one_process_says_so(tmp_path):
    with pytest.warns(UserWarning, match="in one process"):
        run = drift.simulate(tiny.experiment("engine=batched", "rounds=1"), runs=tmp_path, workers=2)
    assert run.about["engine"] == "batched"
