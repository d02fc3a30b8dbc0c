"""Clients and runs shared by the workers of a Dask scheduler; skipped where it is not installed."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import tiny
import torch
import xarray as xr

import drift
from drift.engines import pooled_clients
from drift.engines.cluster import Lost
from drift.simulation.settings_grid import train_grid
from drift.store import memory_budget
from figures.cli import main

distributed = pytest.importorskip("distributed")

HERE = Path(__file__).parents[3]


@contextmanager
def running(folder):
    """A scheduler and two workers without nannies, each a process of its own."""
    environment = {**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{HERE / 'tests'}"}
    file = folder / "scheduler.json"

    def start(kind, *options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(file), *options]
        return subprocess.Popen([*command, "--no-dashboard"], env=environment, stderr=subprocess.DEVNULL)

    started = [start("scheduler", "--host", "127.0.0.1", "--port", "0")]
    started += [start("worker", "--no-nanny", "--nthreads", str(threads)) for threads in (1, 2)]
    try:
        while not file.exists():
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield address, started
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_cluster_gives_the_bits_of_serial_through_deaths_and_stops_when_its_scheduler_is_gone(tmp_path, capsys):
    experiment = tiny.experiment("method=scaffold", "local.momentum=0.0", "rounds=8")
    whole = drift.simulate(experiment, runs=tmp_path / "whole")
    with running(tmp_path) as (address, (scheduler, worker, _)):

        def kill(record):
            if record.index == 1:
                worker.kill()
            if record.index == 4:
                scheduler.kill()

        with pytest.raises(Lost, match="scheduler has stopped") as raised:
            drift.simulate(experiment, runs=tmp_path / "parts", cluster=address, progress=kill)
        assert "repeat the command" in str(raised.value)
    parts = drift.Run(tmp_path / "parts" / experiment.slug)
    assert 5 <= parts.committed < 8
    drift.simulate(experiment, runs=tmp_path / "parts")
    for index in whole.rounds():
        one, two = whole.round(index), parts.round(index)
        assert torch.equal(one.clients, two.clients) and torch.equal(one.end, two.end)
        assert all(torch.equal(one.carried[name], two.carried[name]) for name in one.carried)


@pytest.mark.parametrize("shared", [True, False])
def test_models_larger_than_memory_are_written_by_workers_that_see_the_file_and_sent_by_others(
    tmp_path, monkeypatch, shared
):
    """A worker that sees the file sends no model; one that does not sends it, and the bits are the same."""
    experiment = tiny.experiment("rounds=3")
    whole = drift.simulate(experiment, runs=tmp_path / "whole")
    if not shared:
        other = torch.zeros(4).byte() + 7
        monkeypatch.setattr(pooled_clients, "_marked", lambda target: pooled_clients.MarkedRow(*target, other))
    received = []

    class Counted(pooled_clients.PooledClients):
        def train(self, server, start, ids, receive):
            class Watched:
                file = receive.file

                def __call__(self, place, update, *, written=False):
                    received.append(written)
                    return receive(place, update, written=written)

            return super().train(server, start, ids, Watched())

    monkeypatch.setattr(pooled_clients, "PooledClients", Counted)
    monkeypatch.chdir(tmp_path)
    with running(tmp_path) as (address, _), memory_budget.limited("1KB"):
        parts = drift.simulate(experiment, runs="parts", cluster=address)
    assert len(received) == sum(len(parts.round(index).ids) for index in parts.rounds())
    assert all(written == shared for written in received)
    for index in whole.rounds():
        assert torch.equal(whole.round(index).clients, parts.round(index).clients)
        assert torch.equal(whole.round(index).gram, parts.round(index).gram)


def test_whole_runs_are_scheduled_on_a_cluster_and_an_absent_one_is_named(tmp_path, monkeypatch, capsys):
    wanted = [tiny.experiment(f"seed={seed}") for seed in (1, 2)] + [tiny.experiment("local.lr=1e39")]
    with running(tmp_path) as (address, _):
        planned = train_grid(wanted, runs=tmp_path / "runs", cluster=address)
    assert [one.state for one in planned] == ["done", "done", "failed"]
    assert "no finite model" in planned[2].reason
    alone = drift.simulate(wanted[0], runs=tmp_path / "alone")
    assert torch.equal(alone.round(-1).end, planned[0].run.round(-1).end)
    monkeypatch.setattr("drift.engines.cluster.PATIENCE", 0.3)
    with pytest.raises(SystemExit) as stopped:
        main(["train", str(tiny.written(tmp_path)), "--runs", str(tmp_path), "--cluster", "tcp://127.0.0.1:9"])
    assert stopped.value.code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in capsys.readouterr().err


def test_results_of_rounds_are_tasks_of_a_cluster(tmp_path, capsys):
    run = tiny.trained(tmp_path / "runs")
    with running(tmp_path) as (address, _), pytest.raises(SystemExit) as stop:
        main(["analyse", "client-losses", str(run.folder), "--rounds", "all", "--cluster", address])
    assert stop.value.code in (0, None)
    assert "3 of 3 results are kept" in capsys.readouterr().err
    for index in range(3):
        found = run.cached(drift.client_losses, round=index)  # stored by a worker
        xr.testing.assert_equal(found, drift.client_losses(run, round=index))
    assert len(list((run.folder / "results").glob("client_losses-*.nc"))) == 3
