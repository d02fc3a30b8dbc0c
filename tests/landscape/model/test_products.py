"""Models with adapters in products: twins of other factors are one model, and the task is the same function."""

from __future__ import annotations

import adapted
import numpy as np
import pytest
import torch
import torch.nn.functional as F

import landscape
from landscape.model.samples import Samples
from landscape.model.task import Task

HOSTILE = {
    "plain": {},
    "alpha over r of 16": {"scale": 16.0},
    "rank 1": {"rank": 1},
    "rank above the width": {"rank": 9},
}
SIZES = {"usual": 1.0, "a thousand times as large": 1e3, "a thousandth": 1e-3}


def task(dtype=torch.float64, **options) -> Task:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        module = adapted.build((7,), 3, **options).to(dtype)
        samples = Samples(torch.randn(20, 7, dtype=dtype), torch.arange(20) % 3)
    return Task(module, {"train": samples, "test": samples[:9]})


def spread(of: Task, count: int = 3) -> list[torch.Tensor]:
    """Models around the initial one, whose factors are all nonzero."""
    source = torch.Generator().manual_seed(1)
    plain = of.layout.theta(of.model)
    return [plain + 0.5 * torch.randn(len(plain), generator=source, dtype=plain.dtype) for _ in range(count)]


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("options", HOSTILE.values(), ids=HOSTILE)
def test_a_twin_of_other_factors_has_distance_zero_and_the_same_loss(options, size):
    one = task(**options)
    view = landscape.products(one)
    for model in spread(one):
        twin = adapted.twin(one.model, model, size=size)
        assert (twin - model).norm() > 0.1 * model.norm()
        a, b = view.model(model), view.model(twin)
        assert (a - b).norm() < 1e-6 * a.norm()
        torch.testing.assert_close(landscape.loss(view.task, a), landscape.loss(one, model), rtol=1e-9, atol=0)


def test_a_twin_of_deficient_rank_and_one_of_float32_agree_too():
    one = task()
    view, model = landscape.products(one), spread(one)[0]
    named = one.layout.named(model)
    named["body.1.lora_A.default.weight"][1] = 2 * named["body.1.lora_A.default.weight"][0]
    named["body.3.lora_B.default.weight"].zero_()
    a = view.model(model)
    assert torch.linalg.matrix_rank(view.layout.named(a)["body.1.parametrizations.weight.original"]) == 1
    assert (view.model(adapted.twin(one.model, model)) - a).norm() < 1e-12 * a.norm()
    single = task(torch.float32)
    narrow = landscape.products(single)
    a, b = (narrow.model(one.float()) for one in (model, adapted.twin(one.model, model)))
    assert a.dtype == torch.float32
    assert (a - b).norm() < 1e-6 * a.norm()


@pytest.mark.parametrize("residual", [False, True])
def test_the_task_in_products_is_the_same_function(residual):
    one = task(residual=residual)
    view = landscape.products(one)
    for theta in spread(one):
        buffers = torch.randn(one.layout.buffer_size, dtype=theta.dtype)
        model = landscape.Model(theta, buffers) if residual else theta
        a = view.model(model)
        torch.testing.assert_close(view.task.outputs(a, "test"), one.outputs(model, "test"), rtol=1e-10, atol=1e-12)
        named, factors = view.layout.named(a), one.layout.named(theta)
        product = factors["body.3.lora_B.default.weight"] @ factors["body.3.lora_A.default.weight"]
        if residual:
            product = (
                product + one.layout.named_buffers(buffers)["body.3.base_layer.parametrizations.weight.0.residual"]
            )
        torch.testing.assert_close(named["body.3.parametrizations.weight.original"], product)
        torch.testing.assert_close(named["head.weight"], factors["head.weight"])
    assert not view.layout.buffers
    torch.testing.assert_close(view.task.theta, view.model(one.theta))


TWINS = {
    "permuted": ({}, lambda a, b: (a.flip(0), b.flip(1))),
    "rank 5, padded with zeros": ({"rank": 5}, lambda a, b: (F.pad(a, (0, 0, 0, 3)), F.pad(b, (0, 3)))),
    "rank 3, one factor twice": ({"rank": 3}, lambda a, b: (a[[0, 1, 1]], b[:, [0, 1, 1]] / torch.tensor([1, 3, 1.5]))),
    "half the scale": ({"scale": 1.0}, lambda a, b: (a, 2 * b)),
}


@pytest.mark.parametrize(("options", "change"), TWINS.values(), ids=TWINS)
def test_clients_of_other_ranks_and_scales_are_models_of_one_space(options, change):
    one, module = task(), adapted.build((7,), 3, **options).double()
    frozen = {name: value for name, value in one.model.state_dict().items() if "lora" not in name}
    module.load_state_dict(frozen, strict=False)
    other, model = Task(module, one.samples), spread(one)[0]
    named = one.layout.named(model)
    for layer in ("body.1", "body.3"):
        keys = [f"{layer}.lora_{factor}.default.weight" for factor in "AB"]
        named |= zip(keys, change(*(named[key] for key in keys)), strict=True)
    views = [landscape.products(of) for of in (one, other)]
    a, b = views[0].model(model), views[1].model(other.layout.theta(named))
    assert views[0].layout == views[1].layout
    assert (a - b).norm() < 1e-14 * a.norm()
    values = [
        landscape.top_eigenvalues(view.task, theta, k=2).eigenvalue.values
        for view, theta in zip(views, (a, b), strict=True)
    ]
    np.testing.assert_allclose(*values, rtol=1e-6)


def test_tensors_that_a_layer_stores_in_dicts_are_copied():
    one = task()
    layer = one.model.body[1]
    layer.kwargs = {"tied_adapter": {"lora_A": layer.lora_A["default"].weight.T}}  # as peft's ensure_weight_tying
    view = landscape.products(Task(one.model, one.samples))
    torch.testing.assert_close(landscape.loss(view.task, view.model(one.theta)), landscape.loss(one, one.theta))


def test_planes_barriers_and_hessians_are_those_of_the_twin():
    one = task()
    view, models = landscape.products(one), spread(one)
    twins = [adapted.twin(one.model, model, seed) for seed, model in enumerate(models)]
    a, b = ([view.model(model) for model in group] for group in (models, twins))
    first, second = (landscape.surface(view.task, landscape.plane(*group, points=(5, 4))) for group in (a, b))
    torch.testing.assert_close(torch.tensor(first.loss.values), torch.tensor(second.loss.values), rtol=1e-8, atol=0)
    for name in ("mark_alpha", "mark_beta"):
        torch.testing.assert_close(torch.tensor(first[name].values), torch.tensor(second[name].values))
    in_factors = [landscape.surface(one, landscape.plane(*group, points=(5, 4))) for group in (models, twins)]
    assert abs(in_factors[0].loss.values - in_factors[1].loss.values).max() > 1e-2  # what the view removes
    values = [landscape.top_eigenvalues(view.task, group[0], k=2).eigenvalue.values for group in (a, b)]
    torch.testing.assert_close(torch.tensor(values[0]), torch.tensor(values[1]), rtol=1e-6, atol=0)


def test_the_hessian_in_products_is_the_dense_one_of_the_merged_model():
    one = task()
    view = landscape.products(one)
    a, samples = view.model(spread(one)[0]), one.split("test")

    def loss(theta):
        named = view.layout.named(theta)
        hidden = samples.inputs
        for place in (1, 3):
            base = one.model.body[place].base_layer
            weight = base.weight + named[f"body.{place}.parametrizations.weight.original"]
            hidden = torch.tanh(hidden @ weight.T + base.bias)
        outputs = hidden @ named["head.weight"].T + named["head.bias"]
        return torch.nn.functional.cross_entropy(outputs, samples.targets)

    dense = torch.autograd.functional.hessian(loss, a)
    wanted = torch.linalg.eigvalsh(dense).flip(0)[:2]
    found = landscape.top_eigenvalues(view.task, a, k=2, split="test").eigenvalue.values
    torch.testing.assert_close(torch.tensor(found), wanted, rtol=1e-6, atol=0)


def test_models_without_adapters_and_variants_are_refused():
    plain = landscape.Task(torch.nn.Linear(2, 2), {})
    with pytest.raises(ValueError, match="no layer of Linear has low-rank adapters; use the task as it is"):
        landscape.products(plain)
    one = task()
    one.model.body[1].lora_variant = {"default": object()}
    with pytest.raises(ValueError, match=r"body.1 has a variant such as DoRA; .*merge_and_unload"):
        landscape.products(one)
    with pytest.raises(ValueError, match="theta has 3 entries"):
        landscape.products(task()).model(torch.zeros(3, dtype=torch.float64))


class SharedLayer(torch.nn.Module):
    """An adapted layer, and the same frozen one under another name, without the adapter."""

    def __init__(self):
        super().__init__()
        self.first = adapted.LowRank(torch.nn.Linear(4, 4), 2, 1.0)
        self.second = self.first.base_layer

    def forward(self, inputs):
        return self.second(self.first(inputs))


def test_a_layer_that_is_also_called_without_its_adapter_is_refused():
    samples = {"test": Samples(torch.randn(6, 4), torch.arange(6) % 4)}
    with pytest.raises(ValueError, match="second is the frozen layer of first, called without its adapter"):
        landscape.products(Task(SharedLayer(), samples))


def test_a_layer_that_is_called_twice_with_its_adapter_is_not_refused():
    layer = adapted.LowRank(torch.nn.Linear(4, 4), 2, 1.0)
    torch.nn.init.normal_(layer.lora_B["default"].weight)
    task = Task(
        torch.nn.Sequential(layer, torch.nn.Tanh(), layer), {"test": Samples(torch.randn(6, 4), torch.arange(6) % 4)}
    )
    view = landscape.products(task)
    assert landscape.loss(view.task, view.model(task.theta)) == pytest.approx(
        landscape.loss(task, task.theta), rel=1e-6
    )


def test_grouped_convolutions_are_refused():
    layer = adapted.LowRank(torch.nn.Linear(4, 4), 2, 1.0)
    layer.base_layer.groups = 2
    with pytest.raises(ValueError, match="grouped convolutions"):
        landscape.products(Task(layer, {"test": Samples(torch.randn(6, 4), torch.arange(6) % 4)}))
