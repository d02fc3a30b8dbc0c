"""The evaluator."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

import landscape
from landscape.model.bound_model import Flat
from landscape.model.metrics import class_error
from landscape.model.samples import Samples
from landscape.model.task import Task, error
from landscape.sweep import first_layer, threads
from landscape.sweep import worker as sweeping
from landscape.sweep.evaluate import evaluate
from landscape.sweep.worker import blocks_and_sharing
from tests.oracles import cnn_task, mlp_task, quadratic, thetas

TASKS = {"mlp": mlp_task, "cnn": cnn_task, "norm": lambda: cnn_task(norm=True)}


def _rows(points: int, n: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(points, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _slow(task: Task, basis: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    samples, losses, errors = task.split("test"), [], []
    for row in rows:
        outputs = task.outputs(row @ basis, samples, buffers=task.buffers)
        losses.append(nn.functional.cross_entropy(outputs, samples.targets))
        errors.append((outputs.argmax(1) != samples.targets).double().mean())
    return torch.stack(losses), torch.stack(errors)


def test_quadratic_losses_equal_the_closed_form():
    oracle = quadratic(4)
    basis, rows = thetas(oracle.task, 3, spread=1.0), _rows(5, 3)
    found = evaluate(oracle.task, basis, rows, metrics=("loss",))["loss"]
    torch.testing.assert_close(found, torch.stack([oracle.loss(theta) for theta in rows @ basis]))


@pytest.mark.parametrize("name", TASKS)
def test_values_equal_one_model_at_a_time(name):
    task = TASKS[name]()
    basis, rows = thetas(task, 3), _rows(7, 3)
    found = evaluate(task, basis, rows, block=4, statistics="task")
    losses, errors = _slow(task, basis, rows)
    torch.testing.assert_close(found["loss"], losses, rtol=1e-10, atol=0)
    torch.testing.assert_close(found["error"], errors, rtol=0, atol=1e-15)


def test_values_have_the_same_bits_in_any_chunks_order_and_company():
    task = cnn_task(dtype=torch.float32)
    basis, rows = thetas(task, 3), _rows(7, 3)
    whole = evaluate(task, basis, rows)["loss"]
    assert torch.equal(evaluate(task, basis, rows, memory=1)["loss"], whole)
    assert torch.equal(evaluate(task, basis, rows, on_points=lambda *_: None)["loss"], whole)
    assert torch.equal(evaluate(task, basis, rows.flip(0))["loss"], whole.flip(0))
    assert torch.equal(evaluate(task, basis, rows[4:5])["loss"], whole[4:5])
    assert torch.equal(evaluate(task, basis, rows, workers=2)["loss"], whole)


def test_threads_share_the_samples_of_few_points_bit_for_bit(monkeypatch):
    monkeypatch.setattr(threads, "RUN_BLOCKS", 2)
    passed, outputs = [], sweeping.Worker.outputs
    monkeypatch.setattr(sweeping.Worker, "outputs", lambda worker, run: passed.append(run) or outputs(worker, run))
    task = cnn_task()
    basis, rows = thetas(task, 3), _rows(2, 3)
    groups = torch.arange(len(task.split("test"))) % 3
    alone = evaluate(task, basis, rows, block=2, groups=groups)
    passed.clear()
    shared = evaluate(task, basis, rows, block=2, groups=groups, workers=3)
    assert len(passed) == -(-len(groups) // 4) > 2
    assert all(torch.equal(shared[name], alone[name]) for name in alone)


def test_values_do_not_depend_on_blocks():
    task = mlp_task()
    basis, rows = thetas(task, 2), _rows(3, 2)
    torch.testing.assert_close(evaluate(task, basis, rows, block=2)["loss"], evaluate(task, basis, rows)["loss"])


def test_a_corner_is_its_model_bit_for_bit():
    task = mlp_task(dtype=torch.float32)
    basis = thetas(task, 3)
    found = evaluate(task, basis, np.eye(3))["loss"]
    alone = torch.stack([evaluate(task, basis[i : i + 1], [[1.0]])["loss"][0] for i in range(3)])
    assert torch.equal(first_layer.combine(basis, [0, 1, 0]), basis[1])
    torch.testing.assert_close(found, alone, rtol=1e-6, atol=0)


def test_a_spoilt_model_does_not_spoil_points_without_it():
    task = mlp_task()
    basis = thetas(task, 3)
    basis[2] = torch.nan
    found = evaluate(task, basis, [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])["loss"]
    assert torch.isfinite(found[0])
    assert torch.isnan(found[1])


def test_points_are_handed_out_once_each():
    task, seen = mlp_task(), []
    basis, rows = thetas(task, 2), _rows(9, 2)

    def on_points(part, values):
        seen.append((part, values["loss"]))

    whole = evaluate(task, basis, rows, on_points=on_points, memory=3 * basis[0].nbytes + 100)["loss"]
    assert [part.start for part, _ in seen] == [0, *(part.stop for part, _ in seen[:-1])]
    assert torch.equal(torch.cat([values for _, values in seen]), whole)
    assert len(seen) > 2


def test_buffers_are_combined_like_the_models():
    task = cnn_task(norm=True)
    basis, buffers = thetas(task, 2), torch.stack([task.buffers, 2 * task.buffers + 0.5])
    found = evaluate(task, basis, [[0.25, 0.75]], buffers=buffers, statistics="averaged")["loss"][0]
    theta, statistics = 0.25 * basis[0] + 0.75 * basis[1], 0.25 * buffers[0] + 0.75 * buffers[1]
    outputs = task.outputs(theta, "test", buffers=statistics)
    torch.testing.assert_close(found, nn.functional.cross_entropy(outputs, task.split("test").targets))
    own = evaluate(task, basis, [[0.25, 0.75]], statistics="task")["loss"][0]
    assert not torch.isclose(own, found)


class Named(nn.Module):
    """Takes its inputs by name or position."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return self.inner(torch.cat([left, right], 1))


@pytest.mark.parametrize("form", ["tuple", "dict"])
def test_inputs_may_be_tuples_and_dicts(form):
    generator = torch.Generator().manual_seed(3)
    left, right = torch.randn(7, 1, generator=generator), torch.randn(7, 3, generator=generator)
    inputs = (left, right) if form == "tuple" else {"right": right, "left": left}
    model = Named()
    task = Task(model, {"test": Samples(inputs, torch.arange(7) % 3)})
    found = evaluate(task, task.theta[None], [[1.0], [2.0]], block=3)["loss"]
    for scale, value in zip((1, 2), found, strict=True):
        expected = nn.functional.cross_entropy(scale * model(left, right), torch.arange(7) % 3)
        torch.testing.assert_close(value, expected.double(), rtol=1e-6, atol=0)


def test_the_caller_is_left_as_it_was():
    task = cnn_task(norm=True)
    task.model.train()
    basis = thetas(task, 2).requires_grad_()
    before, state = basis.detach().clone(), {name: value.clone() for name, value in task.model.state_dict().items()}
    random = torch.get_rng_state()
    evaluate(task, basis, _rows(3, 2))
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.equal(basis.detach(), before)
    assert basis.grad is None
    assert task.model.training
    assert torch.is_grad_enabled()
    assert all(torch.equal(value, state[name]) for name, value in task.model.state_dict().items())


def test_wrong_shapes_are_named():
    task = mlp_task()
    basis = thetas(task, 2)
    with pytest.raises(ValueError, match=r"basis has shape \(43,\)"):
        evaluate(task, basis[0], [[1.0]])
    with pytest.raises(ValueError, match=r"coefficients have shape \(1, 3\); the basis needs \(P, 2\)"):
        evaluate(task, basis, [[1.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="theta has 42 entries, the task has 43"):
        evaluate(task, basis[:, 1:], [[1.0, 0.0]])
    with pytest.raises(ValueError, match=r"buffers have shape \(2, 1\); the basis needs \(2, 0\)"):
        evaluate(task, basis, [[1.0, 0.0]], buffers=torch.zeros(2, 1))
    with pytest.raises(ValueError, match="no samples"):
        evaluate(task, basis, [[1.0, 0.0]], split=task.split("test")[:0])


def test_no_points_give_no_values():
    task = mlp_task()
    assert evaluate(task, thetas(task, 2), np.zeros((0, 2)))["error"].shape == (0,)


def test_block_shrinks_with_the_activations(monkeypatch):
    task = cnn_task()
    basis = thetas(task, 2)
    flat = task.flat(basis)
    output = 4 * 6 * 7 * 8  # bytes that the convolution makes of a sample
    monkeypatch.setattr(sweeping, "BLOCK_BYTES", 2**30)
    assert blocks_and_sharing(flat, basis, task.split("test"))[0] == 2048
    monkeypatch.setattr(sweeping, "BLOCK_BYTES", 20 * output)
    assert blocks_and_sharing(flat, basis, task.split("test"))[0] == 20
    assert blocks_and_sharing(flat, basis, task.split("test"), 5)[0] == 5


def test_recomputed_statistics_are_those_of_the_calibration_samples():
    task = cnn_task(norm=True)
    basis, fixed, test = thetas(task, 2), task.split("train"), task.split("test")
    buffers = torch.stack([task.buffers, 2 * task.buffers + 0.5])
    rows = [[0.25, 0.75], [0.0, 1.0]]
    found = evaluate(task, basis, rows, buffers=buffers, statistics="recomputed", calibration=fixed)["loss"]
    named = task.layout.named(0.25 * basis[0] + 0.75 * basis[1])
    seen = nn.functional.conv2d(fixed.inputs, named["0.weight"], named["0.bias"], padding=1)
    mean, variance = seen.mean((0, 2, 3)), seen.var((0, 2, 3))
    outputs = task.outputs(0.25 * basis[0] + 0.75 * basis[1], test, buffers=torch.cat([mean, variance]))
    torch.testing.assert_close(found[0], nn.functional.cross_entropy(outputs, test.targets))
    outputs = task.outputs(basis[1], test, buffers=buffers[1])
    torch.testing.assert_close(found[1], nn.functional.cross_entropy(outputs, test.targets))
    assert not torch.isclose(found[0], evaluate(task, basis, rows, buffers=buffers, statistics="averaged")["loss"][0])


def test_groups_and_classes_in_one_sweep_equal_their_samples_alone():
    plain = mlp_task()
    task = Task(plain.model, plain.samples, metrics={"error": error, "class_error": class_error})
    basis, rows, test = thetas(task, 2), _rows(3, 2), task.split("test")
    groups = torch.tensor([0, 2, 2, 0, 2, 2, 2, 2, 0, 2, 2])
    found = evaluate(task, basis, rows, metrics=("loss", "class_error"), groups=groups, block=4)
    assert found["loss"].shape == (3, 3)
    assert found["class_error"].shape == (3, 3, 3)
    assert found["loss"][:, 1].isnan().all()
    for group in (0, 2):
        alone = test[groups == group]
        torch.testing.assert_close(found["loss"][:, group], evaluate(task, basis, rows, split=alone)["loss"])
        for label in alone.targets.unique().tolist():
            chosen = alone[alone.targets == label]
            expected = evaluate(task, basis, rows, split=chosen)["error"]
            torch.testing.assert_close(found["class_error"][:, group, label], expected)
    with pytest.raises(ValueError, match=r"groups have shape \(3,\)"):
        evaluate(task, basis, rows, groups=groups[:3])


def test_work_is_one_pass_a_point_and_block_and_the_first_layer_once_a_chunk(monkeypatch):
    model = nn.Sequential(nn.Linear(80, 4), nn.ReLU(), nn.Linear(4, 3))
    task = Task(model, {"test": Samples(torch.randn(7, 80), torch.arange(7) % 3)})
    basis, passes, prepared = thetas(task, 3), [], []
    outputs, prepare = Flat.outputs, first_layer.layer_input
    monkeypatch.setattr(sweeping, "blocks_and_sharing", lambda *_: (4, first_layer.FirstLayer(_[0], "0", basis)))
    monkeypatch.setattr(Flat, "outputs", lambda *a: passes.append(1) or outputs(*a))
    monkeypatch.setattr(first_layer, "layer_input", lambda *a: prepared.append(1) or prepare(*a))
    evaluate(task, basis, _rows(1, 3))  # tries the model
    passes.clear(), prepared.clear()
    evaluate(task, basis, _rows(5, 3))
    assert len(prepared) == 2  # two blocks, one chunk
    assert len(passes) == 2 * (5 + 1 + 1)  # of each block one finds the layer's input; of each size one has it unshared


@pytest.mark.parametrize("count", [2, 3, 6])
def test_an_entry_that_all_models_share_keeps_its_bits(count):
    source = np.random.default_rng(count)
    shared, rows = torch.linspace(-3, 3, 999), torch.randn(count, 999)
    for row in (*source.dirichlet(np.ones(count), 30), *source.normal(0, 2, (30, count))):
        row[0] += 1 - row.sum()
        assert torch.equal(first_layer.combine([shared] * count, row.tolist()), shared)
        mixed, exact = first_layer.combine(rows, row.tolist()), torch.from_numpy(row) @ rows.double()
        torch.testing.assert_close(mixed.double(), exact, rtol=0, atol=2e-6 * (1 + np.abs(row).max()))


def test_an_entry_that_directions_leave_keeps_its_bits():
    theta, still = torch.linspace(-3, 3, 999), torch.zeros(999)
    for row in ([1, 0.3, -0.3], [1, 0.3, 0.7], [1, 0.0, -2.0]):
        assert torch.equal(first_layer.combine([theta, still, still], row), theta)
    assert torch.equal(first_layer.combine([theta] * 3, [1, 0.3, -0.3]), theta)


def test_a_parametrisation_that_takes_whole_numbers_of_its_tensor():
    """`orthogonal` keeps +-1 on the diagonal of its tensor and truncates it: 0.99999994 would be 0."""
    torch.manual_seed(0)
    modules = [
        nn.Sequential(nn.utils.parametrizations.orthogonal(nn.Linear(6, 4)), nn.Tanh(), nn.Linear(4, 3)).double()
        for _ in range(3)
    ]
    inputs, targets = torch.randn(40, 6), torch.randint(3, (40,))
    task = landscape.make_task(copy.deepcopy(modules[0]).float(), nn.CrossEntropyLoss(), (inputs, targets))
    singles = [copy.deepcopy(module).float() for module in modules]
    sweep = landscape.plane(task, *singles, points=5)
    ds, expected = landscape.surface(task, sweep, statistics="averaged"), []
    for row in sweep.coefficients:
        mixed = copy.deepcopy(modules[0])
        states = [module.state_dict() for module in singles]
        mean = {name: sum(c * s[name].double() for c, s in zip(row, states, strict=True)) for name in states[0]}
        mixed.load_state_dict({name: value.round(decimals=12) for name, value in mean.items()})
        expected.append(float(nn.functional.cross_entropy(mixed(inputs.double()), targets).detach()))
    np.testing.assert_allclose(ds.loss.values.ravel(), expected, rtol=2e-5)
