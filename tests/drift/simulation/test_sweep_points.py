"""Sweeps shared by processes: the bits of one process, through a killed worker, and on a Dask scheduler."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
import xarray as xr

import drift
from drift.parallel import worker_pool
from drift.simulation.sweep_points import point_pool
from tests.tiny import trained


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("sweepers"))


def _plane(run, points=9) -> xr.Dataset:
    return drift.round_plane(run, points=points).drop_attrs()


def test_processes_give_the_bits_of_one(run):
    alone = _plane(run)
    heard = []
    shared = _plane(run.with_crew(point_pool(2)).with_progress(lambda done, total: heard.append((done, total))))
    xr.testing.assert_identical(shared, alone)
    assert heard[0][0] == 0 and heard[-1][0] == heard[-1][1]
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)


def test_a_killed_worker_costs_a_chunk_and_no_bit(run, monkeypatch):
    class Doomed(worker_pool.Workers):
        """Its first worker is killed after the first result."""

        def results(self, *args, **options):
            for number, ended in enumerate(super().results(*args, **options)):
                if number == 0:
                    self.victim = self.pids()[0]
                    os.kill(self.victim, signal.SIGKILL)
                yield ended
            assert self.victim not in self.pids()
            deaths.append(self.victim)

    deaths: list[int] = []
    monkeypatch.setattr("drift.engines.Workers", Doomed)
    shared = _plane(run.with_crew(point_pool(2)), points=17)
    assert deaths
    xr.testing.assert_identical(shared, _plane(run, points=17))


def test_what_cannot_be_asked_for_is_told():
    assert point_pool() is None
    for given in ({"workers": 0}, {"workers": 2, "cluster": "tcp://127.0.0.1:1"}):
        with pytest.raises(ValueError, match="give 1 or more workers, or a cluster, not both"):
            point_pool(**given)


def test_code_that_other_processes_cannot_find_is_told(run):
    def own(outputs, targets):
        return outputs.sum(1)

    task = replace(run.task, metrics={"own": own})
    given = drift.open(run.folder, task=task).with_crew(point_pool(2))
    with pytest.raises(ValueError, match=r"cannot be sent to other processes.*leave --workers"):
        drift.round_plane(given, points=3)


def test_a_cluster_gives_the_bits_of_one_process(run, tmp_path):
    pytest.importorskip("distributed")
    from tests.drift.engines.test_cluster import running

    with running(tmp_path) as (address, (_, worker, _)):
        shared = _plane(run.with_crew(point_pool(cluster=address)))
        worker.kill()
        again = _plane(run.with_crew(point_pool(cluster=address)), points=7)
    xr.testing.assert_identical(shared, _plane(run))
    xr.testing.assert_identical(again, _plane(run, points=7))
