from __future__ import annotations

import sys

import pytest
import torch
from oracles import cnn_task, mlp_task, quadratic, thetas
from torch import Tensor, nn

import landscape
from landscape.curvature.hessian import top_eigenvalues
from landscape.curvature.hessian_products import hvp
from landscape.model.samples import Samples
from landscape.model.task import Task


def dense(task: Task, theta: Tensor) -> Tensor:
    flat = task.flat(theta)
    return torch.autograd.functional.hessian(lambda point: flat.functional_loss(point, task.split("train")), theta)


def largest(a: Tensor, k: int) -> tuple[Tensor, Tensor]:
    values, vectors = torch.linalg.eigh(a)
    order = values.abs().argsort(descending=True)[:k]
    return values[order], vectors[:, order].T


def values(ds) -> Tensor:
    return torch.tensor(ds.eigenvalue.values)


def test_quadratic_has_the_known_spectrum():
    problem = quadratic(6, eigenvalues=[11.0, 5, 3, 0.5, 0.1, 0])
    ds = top_eigenvalues(problem.task, problem.task.theta, 3, tolerance=1e-8, vectors=True)
    torch.testing.assert_close(values(ds), torch.tensor([11.0, 5, 3], dtype=torch.float64))
    overlap = torch.tensor(ds.eigenvector.values) @ problem.eigenvectors[:, :3]
    torch.testing.assert_close(overlap.abs(), torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("task", [mlp_task(), cnn_task(norm=True)], ids=["mlp", "cnn"])
def test_eigenpairs_equal_those_of_the_dense_hessian(task):
    theta = thetas(task, 1, spread=1.0)[0]
    expected, vectors = largest(dense(task, theta), 12)
    ds = top_eigenvalues(task, theta, 12, tolerance=1e-8, vectors=True)
    assert expected.min() < 0
    torch.testing.assert_close(values(ds), expected, rtol=1e-8, atol=1e-10)
    overlap = (torch.tensor(ds.eigenvector.values) * vectors).sum(1).abs()
    torch.testing.assert_close(overlap, torch.ones_like(overlap))
    assert ds.converged.all()
    assert (ds.residual / abs(ds.eigenvalue)).max() <= 1e-8
    assert ds["rank"].values.tolist() == list(range(1, 13))


def test_work_of_the_search_is_bounded():
    task = mlp_task()
    spent = [top_eigenvalues(task, task.theta, k, tolerance=1e-2).attrs["products"] for k in (1, 5)]
    assert spent[0] <= 12
    assert spent[1] <= 28 + 1  # one more confirms all values


def test_attention_has_second_derivatives():
    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project, self.head = nn.Linear(4, 12), nn.Linear(4, 3)

        def forward(self, tokens: Tensor) -> Tensor:
            q, k, v = self.project(tokens).chunk(3, -1)
            return self.head(nn.functional.scaled_dot_product_attention(q, k, v).mean(1))

    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(7, 5, 4, generator=generator)
    task = Task(Attending(), {"train": Samples(inputs, torch.randint(3, (7,), generator=generator))})
    theta = task.theta
    v, step = torch.randn_like(theta), 1e-4
    flat = task.flat(theta.double())
    ends = [theta.double() + sign * step * v.double() for sign in (1, -1)]
    samples = task.split("train")
    gradients = [torch.func.grad(lambda point: flat.functional_loss(point, samples))(end) for end in ends]
    expected = (gradients[0] - gradients[1]) / (2 * step)
    product = hvp(task.flat(theta), theta, task.split("train"))(v)
    torch.testing.assert_close(product.double(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("block", [6, 100])
def test_back_ends_agree(block):
    pytest.importorskip("pyhessian")
    task = mlp_task(dtype=torch.float32)
    theta = task.theta
    native = top_eigenvalues(task, theta, 2, block=block)
    theirs = top_eigenvalues(task, theta, 2, backend="pyhessian", tolerance=1e-6, block=block, vectors=True)
    assert set(native.attrs) == set(theirs.attrs)
    assert native.sizes["rank"] == theirs.sizes["rank"]
    torch.testing.assert_close(values(theirs), values(native), rtol=1e-3, atol=0)
    assert theirs.residual.max() < 0.05
    assert theirs.attrs["products"] > native.attrs["products"]
    assert theirs.eigenvector.sizes == {"rank": 2, "parameter": 43}


class Recurrent(nn.Module):
    """Two eigenvalues within six per cent, beside parameters that the loss lacks."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cells, self.head = nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 3)
        self.unused = nn.Linear(2, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.cells(inputs)[0][:, -1])


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_pyhessian_does_not_stop_at_a_lower_eigenvalue(seed):
    pytest.importorskip("pyhessian")
    generator = torch.Generator().manual_seed(0)
    samples = Samples(torch.randn(20, 5, 4, generator=generator), torch.randint(3, (20,), generator=generator))
    task = Task(Recurrent(), {"train": samples})
    theirs = top_eigenvalues(task, task.theta, 1, backend="pyhessian", seed=seed)
    torch.testing.assert_close(values(theirs), values(top_eigenvalues(task, task.theta, 1)), rtol=1e-3, atol=0)


def test_pyhessian_takes_nested_inputs_and_float64():
    pytest.importorskip("pyhessian")

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = nn.Linear(3, 2), nn.Linear(2, 2)

        def forward(self, left: Tensor, right: Tensor) -> Tensor:
            return self.left(left) * self.right(right)

    generator = torch.Generator().manual_seed(0)
    inputs = {name: torch.randn(9, size, generator=generator) for name, size in [("left", 3), ("right", 2)]}
    task = Task(Two().double(), {"train": Samples(inputs, torch.randint(2, (9,), generator=generator))})
    theta = thetas(task, 1)[0]
    theirs = top_eigenvalues(task, theta, 1, backend="pyhessian", tolerance=1e-6)
    torch.testing.assert_close(values(theirs), values(top_eigenvalues(task, theta, 1)), rtol=1e-3, atol=0)


@pytest.mark.parametrize("backend", ["native", "pyhessian"])
def test_caller_is_left_untouched(backend):
    if backend == "pyhessian":
        pytest.importorskip("pyhessian")
    task = mlp_task(dtype=torch.float32)
    theta, module = task.theta, task.model
    module.train()
    before, state = theta.clone(), torch.get_rng_state()
    ds = top_eigenvalues(task, theta, 1, backend=backend)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(theta, before)
    assert not theta.requires_grad
    assert module.training
    assert all(p.grad is None for p in module.parameters())
    torch.rand(3)
    assert top_eigenvalues(task, theta, 1, backend=backend).identical(ds)


def test_split_and_buffers_matter():
    task = cnn_task(norm=True)
    theta = task.theta
    train = top_eigenvalues(task, theta, 1).eigenvalue.item()
    assert top_eigenvalues(task, theta, 1, split="test").eigenvalue.item() != pytest.approx(train)
    assert top_eigenvalues(task, theta, 1, buffers=task.buffers + 0.5).eigenvalue.item() != pytest.approx(train)


def test_scaling_the_loss_scales_the_spectrum():
    task = mlp_task()
    scaled = Task(task.model, task.samples, lambda outputs, targets: 3 * task.loss(outputs, targets))
    a, b = (top_eigenvalues(each, task.theta, 2, tolerance=1e-8) for each in (task, scaled))
    torch.testing.assert_close(values(b), 3 * values(a))


def test_loss_linear_in_theta_has_no_curvature():
    task = quadratic(4).task
    plain = Task(task.model, task.samples, lambda outputs, targets: outputs.flatten())
    assert top_eigenvalues(plain, task.theta, 2).eigenvalue.values.tolist() == [0.0, 0.0]


def test_bad_values_are_named():
    task = mlp_task()
    theta = task.theta
    with pytest.raises(ValueError, match="Did you mean 'pyhessian'"):
        top_eigenvalues(task, theta, backend="pyhesian")
    with pytest.raises(ValueError, match="44, the model has 43"):
        top_eigenvalues(task, theta, 44)
    with pytest.raises(ValueError, match="loss of sample 0 is nan"):
        top_eigenvalues(task, theta * float("nan"))
    with pytest.raises(ValueError, match="no samples"):
        top_eigenvalues(task, theta, split=task.split("train")[:0])
    with pytest.raises(ValueError, match="another model"):
        top_eigenvalues(task, theta[:-1])


def test_absent_pyhessian_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyhessian", None)
    with pytest.raises(LookupError, match="pip install pyhessian"):
        top_eigenvalues(mlp_task(), mlp_task().theta, backend="pyhessian")


@pytest.mark.parametrize("name", ["hessian", "trace", "density", "minibatch_sharpness"])
def test_samples_of_which_none_counts_are_named(name):
    inputs, targets = torch.randn(12, 4), torch.arange(12) % 3
    targets[:3] = -100
    task = landscape.make_task(nn.Linear(4, 3), nn.CrossEntropyLoss(), (inputs, targets))
    options = {"batch": 1} if name == "minibatch_sharpness" else {"split": Samples(inputs[:3], targets[:3])}
    with pytest.raises(ValueError, match=r"none of \d samples counts in the loss cross_entropy: their labels"):
        getattr(landscape, name)(task, task.theta, **options)
