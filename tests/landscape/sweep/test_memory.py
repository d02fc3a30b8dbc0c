"""Work that does not fit is halved until it does; what never fits is told in one line."""

import numpy as np
import pytest
import torch

from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.out_of_memory import OutOfMemory, is_out_of_memory
from landscape.sweep import evaluate as affine
from landscape.sweep.evaluate import evaluate
from landscape.sweep.memory import explain_oom, halve_on_oom
from landscape.sweep.worker import Worker

TORCH = (
    "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to allocate 96 bytes."
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError(TORCH), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("shapes differ"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_only_what_says_so_is_taken_for_a_lack_of_memory(error, expected):
    assert is_out_of_memory(error) == expected


def test_halves_are_tried_until_they_fit_and_keep_their_order():
    freed = []

    def work(items):
        if len(items) > 2:
            raise RuntimeError(TORCH)
        return list(items)

    found = list(halve_on_oom(work, list(range(7)), lambda: freed.append(1)))
    assert [item for part in found for item in part] == list(range(7))
    assert max(map(len, found)) <= 2
    assert freed


def test_a_single_item_too_much_is_told_with_what_to_lower():
    def work(items):
        raise MemoryError

    with pytest.raises(OutOfMemory, match="lower block"):
        list(halve_on_oom(work, [1, 2, 3], lambda: None))


def test_other_errors_are_let_through():
    with pytest.raises(RuntimeError, match="shapes differ"), explain_oom("a round", "lower local.batch"):
        raise RuntimeError("shapes differ")
    with (
        pytest.raises(OutOfMemory, match=r"for a round .*96 bytes.*; lower local\.batch"),
        explain_oom("a round", "lower local.batch"),
    ):
        raise RuntimeError(TORCH)


def test_a_sweep_in_shrunken_chunks_has_the_same_bits(monkeypatch):
    model = torch.nn.Linear(5, 3)
    task = Task(model, {"test": Samples(torch.randn(11, 5), torch.randint(3, (11,)))})
    basis = torch.stack([task.theta, task.theta + 0.1])
    rows = np.stack([np.linspace(1, 0, 13), np.linspace(0, 1, 13)], axis=1)
    whole = evaluate(task, basis, rows)["loss"]
    real, sizes = Worker.chunk, []

    def chunk(self, points):
        if len(points) > 3:
            raise RuntimeError(TORCH)
        sizes.append(len(points))
        return real(self, points)

    monkeypatch.setattr(Worker, "chunk", chunk)
    assert torch.equal(evaluate(task, basis, rows)["loss"], whole)
    assert sum(sizes) == 13
    monkeypatch.setattr(affine, "Worker", lambda work: (_ for _ in ()).throw(RuntimeError(TORCH)))
    with pytest.raises(OutOfMemory, match="a sweep of models of 18 parameters"):
        evaluate(task, basis, rows)
