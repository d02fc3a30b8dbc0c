"""What the loss is."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from landscape.curvature.hessian import top_eigenvalues
from landscape.model.make_task import make_task
from landscape.model.model_trial import tried_outputs as _trial
from landscape.model.samples import Samples
from landscape.model.task import Task, cross_entropy, error, squared_error
from landscape.sweep.evaluate import evaluate
from tests.oracles import cnn_task, mlp_task, thetas


def test_cross_entropy_and_error_by_hand():
    logits = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    targets = torch.tensor([0, 1, 1])
    torch.testing.assert_close(cross_entropy(logits, targets)[0], torch.tensor(2.0).log())
    torch.testing.assert_close(cross_entropy(logits, targets)[1], torch.tensor(2.0).exp().add(1).log())
    assert error(logits, targets).tolist() == [0, 1, 0]


def test_squared_error_sums_over_outputs():
    outputs = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    assert squared_error(outputs, torch.zeros(2, 2)).tolist() == [5, 0]
    assert squared_error(outputs[:, :1], torch.tensor([0.0, 2.0])).tolist() == [1, 4]


def test_the_model_is_copied():
    model = mlp_task().model
    task = Task(model, {})
    before = task.theta
    with torch.no_grad():
        model[0].weight.zero_()
    assert torch.equal(task.theta, before)


def test_outputs_do_not_depend_on_blocks():
    task = cnn_task()
    theta = thetas(task, 1)[0]
    torch.testing.assert_close(task.outputs(theta, "test", block=3), task.outputs(theta, "test"))
    assert task.outputs(theta, task.split("train")[:5]).shape == (5, 3)


def test_outputs_use_the_given_buffers():
    task = cnn_task(norm=True)
    other = task.buffers.clone()
    other[:4] += 1
    assert not torch.allclose(task.outputs(task.theta, "test"), task.outputs(task.theta, "test", buffers=other))


def test_unknown_splits_and_metrics_are_named():
    task = mlp_task()
    with pytest.raises(ValueError, match="no split named 'valid'; the task has train, test"):
        task.split("valid")
    with pytest.raises(ValueError, match="no metric named 'f1'; the task has loss, error"):
        task.measures(("loss", "f1"))


def test_samples_pass_as_a_split():
    samples = Samples(torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64))
    assert mlp_task().split(samples) is samples


def test_all_measures_of_a_task_are_taken_where_none_is_named():
    samples = {"test": Samples(torch.randn(5, 3), torch.randn(5, 2))}
    task = Task(nn.Linear(3, 2), samples, loss=squared_error, metrics={"mae": lambda o, t: (o - t).abs().mean(1)})
    assert list(task.measures()) == ["loss", "mae"]
    assert set(evaluate(task, task.theta[None], torch.ones(1, 1))) == {"loss", "mae"}


class _Kept(nn.Module):
    """Keeps what it made of a parameter in its first pass."""

    def __init__(self):
        super().__init__()
        self.first, self.last, self.kept = nn.Linear(6, 4), nn.Linear(4, 3), None

    def forward(self, inputs):
        if self.kept is None:
            self.kept = self.first.weight.detach() * 2
        return self.last((self.first(inputs) + inputs @ self.kept.T).tanh())


class _Random(nn.Linear):
    def forward(self, inputs):
        return F.dropout(super().forward(inputs))


class _Coupled(nn.Linear):
    def forward(self, inputs):
        return super().forward(inputs - inputs.mean(0))


def _built(model, loss=cross_entropy, **metrics):
    samples = Samples(torch.randn(20, 6, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 3)
    return Task(model, {"test": samples}, loss, metrics)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (_Random(6, 3), "_Random is random in eval mode"),
        (_Coupled(6, 3), "in _Coupled the output of a sample depends on others"),
        (_Kept(), "_Kept computes with values that do not follow its parameters"),
    ],
)
def test_a_task_that_is_built_directly_is_tried_at_its_first_use(model, told):
    task = _built(model)
    assert "parameters" in repr(task)
    for use in (lambda: evaluate(task, task.theta[None], [[1.0]]), lambda: task.outputs(task.theta, "test")):
        with pytest.raises(ValueError, match=told):
            use()
    with pytest.raises(ValueError, match=told):
        make_task(model, nn.CrossEntropyLoss(), {"train": (task.samples["test"].inputs, task.samples["test"].targets)})


def test_a_usual_loss_of_outputs_of_another_form_is_refused():
    sequences = nn.Sequential(nn.Linear(6, 6), nn.Unflatten(1, (3, 2)))
    samples = Samples(torch.randn(20, 6), torch.ones(20, 2).long())
    with pytest.raises(ValueError, match="cross_entropy gives no value to each of these samples"):
        Task(sequences, {"test": samples}).split("test")


def test_a_task_is_tried_once(monkeypatch):
    calls = []
    monkeypatch.setattr("landscape.model.task.tried_outputs", lambda *a, **k: calls.append(1) or _trial(*a, **k))
    for made in (lambda: _built(nn.Linear(6, 3)), lambda: make_task(nn.Linear(6, 3), F.cross_entropy, _inputs())):
        task = made()
        for _ in range(3):
            evaluate(task, task.theta[None], [[1.0]])
        assert len(calls) == 1
        calls.clear()


def _inputs():
    return torch.randn(20, 6), torch.arange(20) % 3


@pytest.mark.parametrize(
    "metric",
    [
        lambda outputs, targets: (outputs - outputs.mean(0)).norm(dim=1),
        lambda outputs, targets: torch.rand(len(outputs)),
        lambda outputs, targets: (outputs.argmax(1) == targets).float().mean(),
        lambda outputs, targets: outputs.nothing,
    ],
)
def test_a_metric_of_more_than_its_own_sample_is_refused(metric):
    task = _built(nn.Linear(6, 3), odd=metric)
    with pytest.raises(ValueError, match="the metric 'odd' is random, fails, or gives a sample other values"):
        evaluate(task, task.theta[None], [[1.0]])
    assert set(evaluate(task, task.theta[None], [[1.0]], metrics=("loss",))) == {"loss"}


def test_metrics_of_other_types_and_of_several_values_are_taken():
    task = _built(nn.Linear(6, 3), right=lambda o, t: o.argmax(1) == t, every=lambda o, t: o)
    found = evaluate(task, task.theta[None], [[1.0]])
    outputs = task.outputs(task.theta, "test")
    torch.testing.assert_close(found["every"][0], outputs.double().mean(0))
    assert found["right"].item() == pytest.approx((outputs.argmax(1) == task.samples["test"].targets).double().mean())


class _Outer(nn.Module):
    """Computes with tensors that a copy of it does not own, or does not follow."""

    def __init__(self, kind):
        super().__init__()
        self.first, self.last, self.kind = nn.Linear(6, 4), nn.Linear(4, 3), kind
        layer = self.first
        self.closure = lambda inputs: layer(inputs)
        self.bare = lambda inputs: F.linear(inputs, self.first.weight)
        self.alias, self.part = self.first.weight.data, self.first.weight.data[:2]
        self.view = self.first.weight[:2]
        self.table = {"weight": self.first.weight}

    def forward(self, inputs):
        if self.kind in ("closure", "bare"):
            return self.last(getattr(self, self.kind)(inputs).tanh())
        if self.kind in ("part", "view"):
            return self.last(self.first(inputs)) * (1 + F.linear(inputs, getattr(self, self.kind)).sum(1, keepdim=True))
        weight = self.alias if self.kind == "alias" else self.table["weight"]
        return self.last(F.linear(inputs, weight, self.first.bias))


@pytest.mark.parametrize("kind", ["closure", "bare", "alias", "part", "view"])
def test_a_model_that_computes_with_tensors_of_another_is_refused(kind):
    task = _built(_Outer(kind))
    with pytest.raises(ValueError, match="_Outer computes with values that do not follow its parameters"):
        evaluate(task, task.theta[None], [[1.0]])


def test_parameters_in_a_table_have_losses_and_no_hessian():
    task, other = _built(_Outer("table")), _Outer("table")
    samples = task.samples["test"]
    found = evaluate(task, [task.theta, task.layout.theta(other)], [[0.0, 1.0]])["loss"].item()
    assert found == pytest.approx(F.cross_entropy(other(samples.inputs), samples.targets).item(), rel=1e-6)
    with pytest.raises(ValueError, match="_Outer reads parameters where they cannot be replaced, as in a list or dict"):
        top_eigenvalues(task, task.theta, 1, split="test")


@pytest.mark.parametrize("name", ["loss", "mark", "mark_loss", "class", "group", "alpha", "t", ""])
def test_names_of_other_variables_are_no_names_of_metrics(name):
    with pytest.raises(ValueError, match=f"^a metric is named {name!r}, which has another meaning in results"):
        Task(nn.Linear(6, 3), {}, metrics={name: error})
