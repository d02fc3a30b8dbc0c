"""Names that do not fit, ties, frozen parts, foreign formats: read rightly, or refused in words that help."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_model
from torch import nn

import landscape
from landscape import make_task
from landscape.model.checkpoint import read_state

X = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
Y = X[:, :3].argmax(1)
ENTROPY = nn.CrossEntropyLoss()


def net(seed: int = 3, width: int = 8) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 3))


def loss(task, model) -> float:
    return landscape.evaluate(task, [model], [[1.0]])["loss"].item()


def own(model: nn.Module) -> float:
    return ENTROPY(model.eval()(X), Y).item()


TASK = make_task(net(7), ENTROPY, (X, Y))


class Tied(nn.Module):
    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.e, self.h = nn.Linear(5, 5, bias=False), nn.Linear(5, 5, bias=False)
        self.h.weight = self.e.weight

    def forward(self, inputs):
        return self.h(torch.tanh(self.e(inputs)))


class Scaled(nn.Module):
    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.l = nn.Linear(5, 3)
        self.register_buffer("scale", torch.full((5,), scale), persistent=False)

    def forward(self, inputs):
        return self.l(inputs * self.scale)


def test_buffers_that_are_not_saved_are_those_of_the_task(tmp_path):
    task, other = make_task(Scaled(), ENTROPY, (X, Y)), Scaled()
    nn.init.normal_(other.l.weight)
    torch.save(other.state_dict(), tmp_path / "a.pt")
    for given in (tmp_path / "a.pt", other.state_dict(), other):
        assert loss(task, given) == pytest.approx(own(other), rel=1e-6)


def test_tied_weights_are_read_under_either_name_and_refused_where_they_differ(tmp_path):
    model, task = Tied(1), make_task(Tied(0), ENTROPY, (X, Y))
    weight = model.e.weight.data
    states = {"e": {"e.weight": weight}, "h": {"h.weight": weight}, "both": model.state_dict()}
    for name, state in states.items():
        torch.save(state, tmp_path / f"{name}.pt")
        assert loss(task, tmp_path / f"{name}.pt") == loss(task, state) == pytest.approx(own(model), rel=1e-6)
    save_model(model, str(tmp_path / "own.safetensors"))
    assert loss(task, tmp_path / "own.safetensors") == pytest.approx(own(model), rel=1e-6)
    torch.save({"e.weight": weight, "h.weight": 2 * weight}, tmp_path / "untied.pt")
    with pytest.raises(
        ValueError, match=r"untied\.pt has other values in 'h\.weight' than in 'e\.weight', which are one"
    ):
        loss(task, tmp_path / "untied.pt")


@pytest.mark.filterwarnings("ignore:.*weight_norm.*deprecated")
@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_earlier_and_later_names_of_norms_are_one(norm, tmp_path):
    def made(module, seed):
        torch.manual_seed(seed)
        model = nn.Sequential(getattr(module, norm)(nn.Linear(5, 3)))
        model(X)
        return model.eval()

    earlier, later = made(nn.utils, 1), made(nn.utils.parametrizations, 2)
    for into, of in ((earlier, later), (later, earlier)):
        torch.save(of.state_dict(), tmp_path / "a.pt")
        assert loss(make_task(into, ENTROPY, (X, Y)), tmp_path / "a.pt") == pytest.approx(own(of), rel=1e-5)


class Counting(nn.Module):
    """Counts its passes in training; `used` says whether its outputs depend on the number."""

    def __init__(self, used: bool) -> None:
        super().__init__()
        self.layer, self.used = nn.Linear(5, 3), used
        self.register_buffer("passes", torch.tensor(0))

    def forward(self, x):
        self.passes += int(self.training)
        return self.layer(x) * (1 - 0.9**self.passes if self.used else 1)


@pytest.mark.parametrize("used", [True, False])
def test_a_counter_that_the_outputs_depend_on_is_no_detail(used):
    x, y = torch.randn(40, 5, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 3
    task, trained = make_task(Counting(used), nn.CrossEntropyLoss(), (x, y)), Counting(used)
    for _ in range(4):
        trained(x)
    if not used:
        expected = nn.functional.cross_entropy(trained(x), y).item()
        assert landscape.loss(task, trained) == pytest.approx(expected, rel=1e-6)
        return
    for model in (trained, trained.state_dict()):
        with pytest.raises(ValueError, match="outputs depend on passes"):
            landscape.loss(task, model)


def test_frozen_values_that_differ_are_refused_and_absent_ones_are_those_of_the_task(tmp_path):
    base, other = net(3), net(4)
    for model in (base, other):
        model[0].requires_grad_(False)
    task = make_task(base, ENTROPY, (X, Y))
    head = {name: value for name, value in other.state_dict().items() if name.startswith("2.")}
    torch.save(head, tmp_path / "head.pt")
    joined = net(3)
    joined[2].load_state_dict(other[2].state_dict())
    assert loss(task, tmp_path / "head.pt") == pytest.approx(own(joined), rel=1e-6)
    for given in (other, other.state_dict()):
        with pytest.raises(
            ValueError, match=r"'0\.weight', which is not trained in the task's model, has other values"
        ):
            loss(task, given)
    half = {name: value.half() for name, value in joined.state_dict().items()}
    assert loss(task, half) == pytest.approx(own(joined), rel=1e-2)


def test_names_that_do_not_fit_are_told_with_the_nearest_and_both_counts(tmp_path):
    wrong = {name.replace("2.weight", "3.wight"): value for name, value in net().state_dict().items()}
    torch.save(wrong, tmp_path / "a.pt")
    with pytest.raises(ValueError, match="another model") as refused:
        loss(TASK, tmp_path / "a.pt")
    told = str(refused.value)
    assert "3 of its 4 tensors are among the model's 4" in told
    assert "no '2.weight' (nearest: '3.wight')" in told and "no tensor '3.wight' (nearest: '2.weight')" in told
    assert "damaged" not in told
    torch.save(net(3, 9).state_dict(), tmp_path / "wide.pt")
    with pytest.raises(ValueError, match=r"'0\.weight' has shape \(9, 5\), the model has \(8, 5\) \(3 of 4 tensors"):
        loss(TASK, tmp_path / "wide.pt")
    torch.save({"net." + name: v for name, v in net().state_dict().items()} | {"c": torch.ones(3)}, tmp_path / "l.pt")
    with pytest.raises(ValueError, match=r"no tensor 'c' .*Choose a part of it by '.*l\.pt\[net\]'"):
        loss(TASK, tmp_path / "l.pt")
    assert loss(TASK, f"{tmp_path / 'l.pt'}[net]") == pytest.approx(own(net()), rel=1e-6)
    with pytest.raises(ValueError, match=r"l\.pt has nothing under \[ema\]; it has one at its top \(5 tensors\)"):
        loss(TASK, tmp_path / "l.pt[ema]")


def test_the_statistics_of_an_averaged_model_are_told(tmp_path):
    model = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))
    torch.save(torch.optim.swa_utils.AveragedModel(model).state_dict(), tmp_path / "swa.pt")
    with pytest.warns(UserWarning, match=r"use_buffers=True.*update_bn"):
        read_state(tmp_path / "swa.pt", make_task(model, ENTROPY, (X, Y)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_models_in_half_precision_are_computed_in_float32_and_it_is_said(dtype, tmp_path):
    half = net().to(dtype)
    single = net().to(dtype).float()
    torch.save(half.state_dict(), tmp_path / "half.pt")
    task = make_task(half, ENTROPY, (X, Y))
    said = f"{str(dtype).removeprefix('torch.')}, computed in float32"
    assert task.theta.dtype == torch.float32 and next(half.parameters()).dtype == dtype
    for ds in (
        landscape.surface(task, landscape.line(task.theta, 1.1 * task.theta, points=3)),
        landscape.surface(TASK, half, net(2), metrics=("loss",)),
        landscape.surface(TASK, tmp_path / "half.pt", net(2), metrics=("loss",)),
        landscape.hessian(task, task.theta, k=1),
        landscape.hessian(TASK, half.state_dict(), k=1),
    ):
        assert ds.attrs["model_dtype"] == said
    assert loss(task, half) == loss(TASK, tmp_path / "half.pt") == pytest.approx(own(single), rel=1e-6)
    assert loss(task, task.theta.to(dtype)) == pytest.approx(own(single), rel=1e-6)
    assert "model_dtype" not in landscape.hessian(TASK, net(), k=1).attrs


def with_statistics(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    model(X)
    return model.eval()


@pytest.mark.seconds
def test_a_list_of_arrays_is_the_model_that_it_was_made_of():
    task, models = make_task(with_statistics(0), ENTROPY, (X, Y)), [with_statistics(seed) for seed in (1, 2)]
    lists = [[value.numpy() for value in model.state_dict().values()] for model in models]
    averaged = [np.float64(array) if array.ndim == 0 else array.astype(np.float64) for array in lists[0]]
    tensors = list(models[0].state_dict().values())
    boxed = np.empty(len(lists[0]), object)
    boxed[:] = lists[0]
    for given in (lists[0], tuple(lists[0]), averaged, tensors, boxed):
        assert landscape.loss(task, given) == loss(task, given) == pytest.approx(own(models[0]), rel=1e-6)
    pairs = [
        (lambda one, _: landscape.hessian(task, one, k=2)),
        (lambda one, _: landscape.trace(task, one)),
        (lambda one, _: landscape.surface(task, one)),
        (lambda one, two: landscape.surface(task, [one, two])),
        (lambda one, two: landscape.barrier(task, one, two, points=3)),
    ]
    for made in pairs:
        assert made(*lists).equals(made(*models))
    wrong = [
        (lists[0][:-1], "the model given has 8 arrays without names, the model's state dict has 9"),
        ([*lists[0][:-1], np.ones(4)], r"array 8 has shape \(4,\), '2\.bias' of the model's state dict has \(3,\)"),
        ([*lists[0][:-1], np.array([None])], "array of type object was given; give arrays of numbers"),
        (models, "theta is a list of 2; give a vector"),
        ([task.theta, task.theta], "theta is a list of 2; give a vector"),
        (lists, "theta is a list of 2; give a vector"),
        ([], "theta is empty; give a vector"),
        ([[1.0, 2.0], [3.0]], "theta is a list of 2; give a vector"),
    ]
    for given, message in wrong:
        for function in (landscape.loss, landscape.hessian, landscape.trace):
            with pytest.raises(ValueError, match=message):
                function(task, given)


class Twice(nn.Module):
    """Its first layer is called on the inputs and, as DoRA does, on the columns of the identity."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.a, self.b = nn.Linear(5, 8, bias=False), nn.Linear(8, 3)

    def forward(self, inputs):
        return self.b(self.a(inputs) / self.a(torch.eye(5)).norm(dim=0))


def test_a_layer_that_is_called_twice_is_not_computed_once():
    task, models = make_task(Twice(0), ENTROPY, (X, Y)), [Twice(1), Twice(2)]
    found = landscape.evaluate(task, models, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))["loss"]
    middle = Twice(0)
    with torch.no_grad():
        for part, one, two in zip(middle.parameters(), *(model.parameters() for model in models), strict=True):
            part.copy_((one + two) / 2)
    assert found.tolist() == pytest.approx([own(models[0]), own(middle)], rel=1e-5)
