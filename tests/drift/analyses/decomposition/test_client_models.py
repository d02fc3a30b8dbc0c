"""Models one at a time: the recorded bits, trainings that do not fit into memory, and the peak of a decomposition."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from replays import replay
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from drift.analyses.decomposition.client_models import read_models, retrain_models
from drift.analyses.decomposition.decomposition import decomposition, decomposition_effort
from drift.analyses.decomposition.gap import gap_scaling
from drift.analyses.decomposition.ntk import ntk_variance
from drift.runs.run import Run
from drift.simulation.retrain import replayed
from drift.store import files, links, round_headers

WIDE = ("task.model=mlp", "task.model_options={hidden=[140, 140]}", "task.dataset_options={samples=1500}")
MANY = ("clients.number=20", "clients.per_round=20", "clients.partition=iid", "local.batch=100")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return tiny.trained(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Twenty clients with models of 22,000 parameters and 1,500 samples."""
    return tiny.trained(tmp_path_factory.mktemp("runs"), *WIDE, *MANY, "rounds=1")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16 deltas"])
def test_recorded_models_have_the_bits_of_the_round(tmp_path: Path, dtype: str) -> None:
    run = tiny.trained(tmp_path, f"keep.dtype={dtype}", "rounds=1")
    record, rows = read_models(run, 0)
    whole = run.round(0)
    assert record.clients is None
    assert torch.equal(record.ids, whole.ids) and torch.equal(record.sizes, whole.sizes)
    for row, theta in enumerate(whole.kept("clients")):
        assert torch.equal(rows(row)[0], theta)
        assert torch.equal(rows(row)[1], whole.client_buffers[row])


def test_a_round_without_clients_says_what_to_train(tmp_path: Path) -> None:
    bare = tiny.trained(tmp_path, "keep.clients=none", "rounds=1")
    with pytest.raises(LookupError, match=r"keep\.clients=all"):
        read_models(bare, 0)


@pytest.mark.parametrize("memory", [10**9, 1])
def test_retrained_models_are_those_of_replay_in_memory_or_in_a_file(run: Run, memory: int) -> None:
    record, _ = read_models(run, 1)
    heard: list[tuple[int, int]] = []
    with retrain_models(run, record, 2, memory=memory, progress=lambda *steps: heard.append(steps)) as found:
        jobs = [(1, client, number) for number in (1, 2) for client in record.ids.tolist()]
        thetas, _ = replay(run, jobs)
        mine = torch.stack([rows(row)[0] for rows in found for row in range(len(record.ids))])
        assert torch.equal(mine, thetas)
    assert sorted(set(heard)) == [(done, 6) for done in range(7)]


def test_little_memory_changes_nothing(run: Run) -> None:
    alone = decomposition(run, estimator="local", rounds=[0, 2])
    found = decomposition(run, estimator="local", rounds=[0, 2], memory=10**5)
    for name in set(alone) - {"identity_gap"}:
        np.testing.assert_allclose(found[name], alone[name], rtol=1e-6, err_msg=str(name))


def test_workers_reach_the_trainings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []

    def alone(*args: Any, workers: int, **options: Any) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
        heard.append(workers)
        return replayed(*args, **options)

    monkeypatch.setattr("drift.analyses.decomposition.client_models.replayed", alone)
    decomposition(run, estimator="local", rounds=[0], workers=7)
    assert heard == [7]


def test_retraining_counts_every_training_once(run: Run) -> None:
    heard: list[tuple[int, int]] = []
    decomposition(run.with_progress(lambda *steps: heard.append(steps)), estimator="local", replicates=3)
    assert sorted(set(heard)) == [(done, 18) for done in range(19)]
    assert heard == sorted(heard)


class Live(TorchDispatchMode):
    """Counts the bytes of tensors that are alive, each storage once, whatever lies in files left out."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[int, tuple[weakref.ref[Tensor], int]] = {}
        self.mapped: set[int] = set()
        self.peak = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for one in result if isinstance(result, tuple | list) else [result]:
            if isinstance(one, Tensor):
                storage = one.untyped_storage()
                if function is torch.ops.aten.from_file.default:
                    self.mapped.add(storage.data_ptr())
                known = {ref().untyped_storage().data_ptr() for ref, _ in self.held.values() if ref() is not None}
                if storage.data_ptr() not in known | self.mapped:
                    self.held[id(one)] = (weakref.ref(one), storage.nbytes())
        self.held = {key: pair for key, pair in self.held.items() if pair[0]() is not None}
        self.peak = max(self.peak, sum(size for _, size in self.held.values()))
        return result


@contextmanager
def live() -> Iterator[Live]:
    with Live() as counter:
        yield counter


@pytest.mark.parametrize("estimator", ["single", "local"])
def test_held_tensors_stay_within_the_stated_memory(wide: Run, estimator: Any) -> None:
    options: dict[str, Any] = {"estimator": estimator, "samples_per_client": 10**6}
    _ = wide.task, wide.parts  # read before, as the data do not count
    with live() as counter:
        whole = decomposition(wide, **options)
    models = 20 * 4 * wide.task.layout.size
    assert counter.peak > 3 * 2**20 + (2 * models if estimator == "local" else 0)
    memory, forward = 3 * 2**20, 4 * 4 * 512 * 140
    with live() as counter:
        found = decomposition(wide, memory=memory, **options)
    assert counter.peak <= memory + forward
    for name in set(whole) - {"identity_gap"}:
        np.testing.assert_allclose(found[name], whole[name], rtol=1e-5, atol=1e-12, err_msg=str(name))


def test_too_little_memory_is_refused_in_one_line(wide: Run) -> None:
    with pytest.raises(ValueError, match=r"memory is 1000 bytes; 1 averaged models of .* need"):
        decomposition(wide, memory=1000)


def test_effort_counts_trainings_and_forward_passes(run: Run) -> None:
    single = decomposition_effort(run, samples_per_client=5)
    drawn = sum(min(5, len(part)) for part in run.parts)
    assert single.trainings == 0
    assert single.forwards == 3 * 4 * -(-drawn * 3 // 4)
    local = decomposition_effort(run, estimator="local", replicates=4, rounds=[1], memory=2**20)
    assert local.trainings == 9
    assert 0 < local.memory <= 2**20
    heard: list[str] = []
    run.with_progress(None, heard.append).cached(decomposition, estimator="local", rounds=[1])
    assert "6 trainings" in heard[0]


def test_a_round_in_which_every_client_diverged_is_left_out(tmp_path: Path) -> None:
    run = tiny.trained(tmp_path)
    whole = run.round(1)
    none = {"ids": whole.ids[:0], "sizes": whole.sizes[:0], "weights": whole.weights[:0], "gram": whole.gram[:3, :3]}
    lost = replace(whole, **none, clients=whole.kept("clients")[:0], client_buffers=whole.client_buffers[:0])
    last = run.round(2)
    for record in (lost, last):  # round 2 names the round before it
        origin = links.origin(run.identity, round_headers.link_before(run.folder, record.index))
        files.write_round(run.folder, record, run.experiment.keep, 3, origin)
    for found in (decomposition(run, estimator="local"), gap_scaling(run), ntk_variance(run, points=5)):
        assert found["round"].values.tolist() == [0, 2]
