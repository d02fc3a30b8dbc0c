"""Points batched into one forward pass, on a CPU in place of a GPU."""

from __future__ import annotations

import pytest
import torch
from kinds import one_of_each
from torch import nn

from landscape import models
from landscape.model.metrics import class_error
from landscape.model.samples import Samples
from landscape.model.task import Task, error
from landscape.sweep import vmap_points
from landscape.sweep.evaluate import evaluate
from landscape.sweep.worker import Work, Worker
from tests.oracles import cnn_task, mlp_task, thetas

MODELS = {
    "cnn_fmnist": (1, 16, 16),
    "mlp": (1, 5, 6),
    "resnet8 batch": (3, 8, 8),
    "resnet8 group": (3, 8, 8),
    "vgg11_gn": (3, 32, 32),
}


def _task(name: str) -> Task:
    generator = torch.Generator().manual_seed(3)
    shape, (build, *norm) = MODELS[name], name.split()
    model = models.build_model(build, shape, 10, seed=0, **({"norm": norm[0]} if norm else {}))

    def split(count: int) -> Samples:
        return Samples(torch.randn(count, *shape, generator=generator), torch.arange(count) % 10)

    return Task(model, {"test": split(7), "train": split(9)}, metrics={"error": error, "class_error": class_error})


def _both(task: Task, monkeypatch, **options) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    basis = thetas(task, 3, spread=0.05)
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64).softmax(1)
    rows = torch.cat([rows, torch.eye(3)[:2]])
    alone = evaluate(task, basis, rows, **options)
    monkeypatch.setattr(vmap_points, "DEVICES", ("cpu",))
    passes = []
    plain = vmap_points.PointBatch.outputs
    monkeypatch.setattr(vmap_points.PointBatch, "outputs", lambda *given: passes.append(1) or plain(*given))
    together = evaluate(task, basis, rows, **options)
    assert len(passes) > 1  # the probe and one or more chunks
    return together, alone


@pytest.mark.seconds
@pytest.mark.parametrize("name", one_of_each(MODELS, set(MODELS) - {"vgg11_gn"}))
def test_batched_points_have_the_values_of_single_ones(name, monkeypatch):
    together, alone = _both(_task(name), monkeypatch)
    for metric, values in alone.items():
        torch.testing.assert_close(together[metric], values, rtol=2e-5, atol=1e-7, equal_nan=True)


def test_batched_points_keep_groups_and_small_blocks(monkeypatch):
    groups = torch.tensor([0, 2, 2, 0, 2, 2, 2])
    together, alone = _both(_task("cnn_fmnist"), monkeypatch, groups=groups, block=3)
    for metric, values in alone.items():
        torch.testing.assert_close(together[metric], values, rtol=2e-5, atol=1e-7, equal_nan=True)
    assert together["class_error"].shape == (7, 3, 10)


def test_batched_points_have_their_own_batch_statistics(monkeypatch):
    task = cnn_task(norm=True)
    buffers = torch.stack([task.buffers, 2 * task.buffers + 0.5, task.buffers + 0.1])
    for statistics in ("averaged", "recomputed"):
        with monkeypatch.context() as inner:
            together, alone = _both(task, inner, buffers=buffers, statistics=statistics)
        torch.testing.assert_close(together["loss"], alone["loss"], rtol=1e-10, atol=0)


def test_chunks_and_passes_fit_into_the_memory():
    task = mlp_task()
    basis = thetas(task, 2)
    worker = Worker(Work(task, basis, None, task.split("test"), None, task.measures(None), None, None))
    for memory in (10**4, 10**6, 10**8):
        found = vmap_points.PointBatch(worker, memory)
        used = found.most * (2 * basis[0].nbytes + found.block(found.most) * found.sample_bytes)
        assert used <= memory or found.most == 1
    assert found.most == vmap_points.MOST


@pytest.mark.parametrize("faster", ["many", "single"])
def test_the_way_that_was_faster_on_the_first_points_computes_the_rest(faster, monkeypatch):
    task = _task("mlp")
    basis, rows = thetas(task, 3, spread=0.05), torch.rand(70, 3, dtype=torch.float64)
    alone = evaluate(task, basis, rows)["loss"]
    used, clock = [], [0.0]

    def counted(name, way):
        def chunk(self, points):
            used.append((name, len(points)))
            clock[0] += len(points) * (1.0 if name == faster else 2.0)
            return way(self, points)

        return chunk

    monkeypatch.setattr(vmap_points, "DEVICES", ("cpu",))
    monkeypatch.setattr(vmap_points.time, "perf_counter", lambda: clock[0])
    for name, kind in (("many", vmap_points.PointBatch), ("single", Worker)):
        monkeypatch.setattr(kind, "chunk", counted(name, kind.chunk))
    together = evaluate(task, basis, rows)["loss"]
    assert used == [("many", 16), ("single", 2), ("many", 16), ("single", 2), (faster, 34)]
    torch.testing.assert_close(together, alone, rtol=2e-5, atol=1e-7)


def test_batched_models_are_sums_in_float64_and_corners_keep_their_bits(monkeypatch):
    """Common entries of 1e4 and coefficients of 50 lose digits in float32 sums; an infinite model counts 0 times."""
    task = _task("mlp")
    basis = thetas(task, 3, spread=0.05)
    basis[:, ::7] = 1e4
    worker = Worker(Work(task, basis, None, task.split("test"), None, task.measures(None), None, None))
    batch = vmap_points.PointBatch(worker, 10**9)
    monkeypatch.setattr(vmap_points, "COLUMNS", 1000)
    rows = [[0.0, 1.0, 0.0], [50.0, -80.0, 31.0], [0.2, 0.3, 0.5]]
    models = batch._models(rows)
    assert torch.equal(models[0], basis[1])
    expected = (torch.tensor(rows, dtype=torch.float64) @ basis.double()).float()
    torch.testing.assert_close(models, expected, rtol=1e-7, atol=0)
    basis[2, 5] = float("inf")
    broken = vmap_points.PointBatch(worker, 10**9)
    assert torch.equal(broken._models(rows[:1] * 2)[1], basis[1])


class Branching(nn.Module):
    """Takes a path that depends on a parameter, which no batch of points can follow."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        outputs = self.inner(inputs)
        return outputs if self.inner.bias[0] > 0 else -outputs


def test_models_that_cannot_be_batched_are_evaluated_one_by_one(monkeypatch):
    task = Task(Branching(), {"test": Samples(torch.randn(5, 4), torch.arange(5) % 3)})
    basis = torch.stack([task.theta, -task.theta])
    alone = evaluate(task, basis, torch.eye(2))["loss"]
    monkeypatch.setattr(vmap_points, "DEVICES", ("cpu",))
    assert torch.equal(evaluate(task, basis, torch.eye(2))["loss"], alone)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", MODELS)
def test_values_on_a_gpu_equal_those_on_the_cpu(name):
    task = _task(name)
    basis, rows = thetas(task, 3, spread=0.05), torch.full((5, 3), 1 / 3, dtype=torch.float64)
    alone = evaluate(task, basis, rows)["loss"]
    torch.testing.assert_close(evaluate(task, basis.cuda(), rows)["loss"], alone, rtol=1e-3, atol=1e-5)
