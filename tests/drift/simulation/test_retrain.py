"""Local trainings of recorded rounds, repeated."""

import pytest
import torch

from tests.replays import replay
from tests.tiny import trained


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"))


def test_replicate_zero_repeats_the_recorded_clients_bit_for_bit(run):
    jobs = [(index, client, 0) for index in (0, 2) for client in run.round(index).ids.tolist()]
    theta, buffers = replay(run, jobs)
    assert torch.equal(theta, torch.cat([run.round(0).clients, run.round(2).clients]))
    assert buffers.shape == (6, 0)
    last = run.round(-1)
    assert torch.equal(run.method.local(run.client(-1, int(last.ids[0]))).theta, last.clients[0])


def test_other_replicates_and_absent_clients_train_as_well(run):
    absent = next(client for client in range(4) if client not in run.round(1).ids.tolist())
    theta, _ = replay(run, [(1, absent, 0), (1, absent, 1), (1, absent, 1)])
    assert torch.equal(theta[1], theta[2])
    assert not torch.equal(theta[0], theta[1])


def test_processes_give_the_same_bits_and_count_the_trainings(run):
    jobs, heard = [(1, client, 1) for client in run.round(1).ids.tolist()], []
    alone, _ = replay(run, jobs)
    shared, _ = replay(run, jobs, workers=2, progress=lambda done, total: heard.append((done, total)))
    assert torch.equal(alone, shared)
    assert heard == [(0, 3), (1, 3), (2, 3), (3, 3)]
