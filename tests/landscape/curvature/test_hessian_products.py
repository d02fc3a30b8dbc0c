from __future__ import annotations

import pytest
import torch
from oracles import cnn_task, mlp_task
from torch import Tensor

from landscape.curvature import hessian_products
from landscape.curvature.hessian_products import hvp
from landscape.model.task import Task


def dense(task: Task, theta: Tensor) -> Tensor:
    flat = task.flat(theta)
    return torch.autograd.functional.hessian(lambda point: flat.functional_loss(point, task.split("train")), theta)


def test_products_do_not_depend_on_blocks_or_memory():
    task = mlp_task()
    theta = task.theta
    flat, v = task.flat(theta), torch.randn_like(theta)
    expected = dense(task, theta) @ v
    for block, memory in [(100, 2**30), (5, 2**30), (5, 0), (5, 3000), (1, 0)]:
        product = hvp(flat, theta, task.split("train"), block=block, memory=memory)
        torch.testing.assert_close(product(v), expected)
        torch.testing.assert_close(product(2 * v), 2 * expected)


@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_kept_graphs_stay_within_the_memory(blocks, monkeypatch):
    task = cnn_task(norm=True)
    flat, samples, made = task.flat(task.theta), task.split("train")[:20], []
    point = {name: part.clone().requires_grad_() for name, part in task.layout.named(task.theta).items()}
    estimated, counted = (
        bytes_of(flat, point, samples[:5])
        for bytes_of in (hessian_products._graph_bytes, hessian_products._graph_storage_bytes)
    )
    assert estimated == counted  # of one block: affine in its samples
    inner = hessian_products._gradient_graph
    monkeypatch.setattr(hessian_products, "_graph_bytes", lambda *rest: counted)
    monkeypatch.setattr(hessian_products, "_gradient_graph", lambda *rest: made.append(rest[-1]) or inner(*rest))
    product = hvp(flat, task.theta, samples, block=5, memory=blocks * counted + counted // 2)
    made.clear()
    product(task.theta)
    assert [len(part) for part in made] == [5] * (4 - blocks)  # the others were kept
