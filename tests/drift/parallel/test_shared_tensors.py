"""Values whose tensors processes share: those in mapped files are mapped again, not copied."""

from __future__ import annotations

import sys

import pytest
import torch
import xarray as xr

import drift
from drift.parallel.shared_tensors import share_memory
from drift.parallel.worker_pool import Workers
from drift.simulation.sweep_points import point_pool
from drift.store import memory_budget
from landscape.model import mapped_files
from tests.tiny import trained

WIDTH = 5_000


def began(shared):
    return shared.load()


def described(value, row):
    models = value["models"]
    return mapped_files.is_mapped(models), models[row].sum(), value["small"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files are opened again by /proc")
def test_tensors_in_files_are_not_copied_to_memory():
    models = mapped_files.scratch_tensor(torch.float32, (100, WIDTH))
    models.copy_(torch.arange(100 * WIDTH).view(100, WIDTH))
    shared, region = share_memory({"models": models[7:], "small": torch.ones(3)})
    with region, Workers(1, began, shared) as workers:
        assert region.size < models[0].nbytes
        ((_, (mapped, total, small)),) = workers.as_completed(described, [2])
    assert mapped
    assert float(total) == float(models[9].sum())
    assert small.tolist() == [1, 1, 1]


def test_a_plane_of_a_large_round_by_two_processes_has_the_bits_of_one(tmp_path):
    run = trained(tmp_path, "clients.number=6", "clients.per_round=4")
    with memory_budget.limited("1KB"):
        assert mapped_files.is_mapped(run.round(2).clients)
        alone = drift.projected_plane(run, points=3).drop_attrs()
        shared = drift.projected_plane(run.with_crew(point_pool(2)), points=3).drop_attrs()
    xr.testing.assert_identical(shared, alone)
