"""The work that a sweep does: pieces of points, and a regression test of counts instead of times."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from landscape.geometry.planes import plane
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep import worker
from landscape.sweep.evaluate import evaluate, sweep_work
from landscape.sweep.evaluation import Evaluation
from landscape.sweep.threads import chunks
from tests.oracles import thetas

COPIES = ("copy_", "clone", "cat", "stack", "_to_copy")
ARITHMETIC = ("mul", "add", "add_", "sub", "maximum", "relu", "relu_", "clamp_min")


class Counts(TorchDispatchMode):
    """Samples that each convolution took, and bytes that copies and elementwise operations wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions: list[int] = []
        self.copied = self.computed = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        name = func._schema.name.split("::")[1]
        self.convolutions += [len(args[0])] if name == "convolution" else []
        self.copied += found.nbytes if name in COPIES else 0
        self.computed += found.nbytes if name in ARITHMETIC else 0
        return found


def _task() -> Task:
    layers = nn.Conv2d(3, 4, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.ReLU()
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(6 * 2 * 3, 7))
    inputs = torch.randn(11, 3, 12, 14, generator=torch.Generator().manual_seed(0))
    return Task(model, {"test": Samples(inputs, torch.arange(11) % 7)})


def _counted(task: Task, points: tuple[int, int], **options) -> Counts:
    sweep = plane(*thetas(task, 3), points=points)
    assert task.habits.channels_last  # found once a task, by calls that are not counted
    evaluate(task, sweep.basis, sweep.coefficients[:1], block=4, **options)  # compares operations with torch's own once
    with Counts() as counts:
        evaluate(task, sweep.basis, sweep.coefficients, block=4, **options)
    return counts


def test_a_point_costs_one_pass_through_the_second_layer_and_none_through_the_first():
    task = _task()
    few, many = _counted(task, (3, 4)), _counted(task, (3, 9))
    extra = many.convolutions[len(few.convolutions) :]
    assert len(many.convolutions) - len(few.convolutions) == 15 * 3  # points more, blocks of 4, 4 and 3 samples
    assert sum(many.convolutions) - sum(few.convolutions) == 15 * 11
    assert set(extra) == {3, 4}


def test_a_point_writes_little_more_than_its_activations():
    task = _task()
    few, many = _counted(task, (3, 4)), _counted(task, (3, 9))
    first, pooled, second, outputs = (4 * 11 * size for size in (4 * 8 * 10, 4 * 4 * 5, 6 * 2 * 3, 7))
    room = 512  # sums and the small results of metrics
    assert (many.copied - few.copied) / 15 <= second + 2 * outputs + room  # flattened; gathered and joined
    theta = 3 * task.layout.size * 4
    shared = first * (1 + 5 / 15)  # one term a point, and one more for each row of three points
    maxima = first / 2 + pooled
    relu = pooled + second
    assert (many.computed - few.computed) / 15 <= theta + shared + maxima + relu + room


def test_metrics_follow_each_pass_so_that_outputs_are_held_for_one_point(monkeypatch):
    task, events = _task(), []
    passed = Flat.outputs

    def noted(outputs, targets):
        events.append("metric")
        return outputs.sum(1)

    noted_task = Task(task.model, task.samples, loss=noted, metrics={})
    used = worker.Worker(sweep_work(noted_task, thetas(task, 2)))
    monkeypatch.setattr(Flat, "outputs", lambda *given: events.append("pass") or passed(*given))
    events.clear()
    used.chunk([[0.5, 0.5], [0.2, 0.8], [0.1, 0.9]])
    assert events[-6:] == ["pass", "metric"] * 3


def test_a_sweep_that_is_stopped_midway_leaves_the_first_layer_as_it_was():
    task = _task()
    used = worker.Worker(sweep_work(task, thetas(task, 3)))
    assert used.shared is not None
    used.take([[0.2, 0.3, 0.5], [1.0, 0.4, -0.2]])
    passed = used.outputs(used.blocks)
    next(passed), next(passed)  # the first is passed unshared as well
    assert "forward" in vars(used.shared.layer)
    passed.close()
    assert "forward" not in vars(used.shared.layer)


@pytest.mark.parametrize("count", [1, 7, 225])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_chunks_cover_all_points_once_and_all_workers_get_alike(count, workers):
    parts = list(chunks(count, 12, 64, workers))
    covered = [index for part in parts for index in range(count)[part]]
    assert covered == list(range(count))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) <= 64
    turns = [sizes[start : start + workers] for start in range(0, len(sizes), workers)]
    assert all(max(turn) - min(turn) < workers for turn in turns if count > 100)
    assert count < 100 or len(turns[-1]) == workers


@pytest.mark.seconds
@pytest.mark.parametrize("precision", ["exact", "fast"])
def test_a_worker_and_its_model_are_freed_without_a_search_for_cycles(precision, monkeypatch):
    monkeypatch.setattr("landscape.sweep.precision.has_bfloat16", lambda: True)
    dense = nn.Linear(800, 12), nn.Linear(12, 12)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), *dense)
    task = Task(model, {"test": Samples(torch.randn(4, 3, 12, 12), torch.arange(4))})
    gc.collect()
    gc.disable()
    try:
        used = worker.Worker(sweep_work(task, thetas(task, 2), Evaluation(precision=precision)))
        assert any("forward" in vars(layer) for layer in used.flat.module) == (precision == "fast")
        left = [weakref.ref(layer) for layer in used.flat.module]
        used.chunk([[0.5, 0.5]])
        del used
        assert [layer() for layer in left] == [None] * len(left)
    finally:
        gc.enable()
