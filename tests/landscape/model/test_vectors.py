"""State dicts and modules where models are taken as vectors: the numbers of the vectors, or one clear line."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
import xarray as xr
from torch import Tensor, nn

import landscape
from landscape import Layout, Samples, Task

MODELS = ("theta", "a", "b", "w1", "w2", "w3", "models", "basis", "direction")
"""What arguments that are models are called."""

FEW: dict[str, dict[str, Any]] = {
    "evaluate": {"coefficients": torch.tensor([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])},
    "connecting_curve": {"steps": 2},
    "ntk": {"samples": Samples(torch.ones(2, 3), torch.tensor([0, 1]))},
    "step_cost": {"repeats": 1},
    "ball_sharpness": {"steps": 1, "directions": 2},
    "noise_robustness": {"draws": 1},
}
"""Further arguments, beside the smallest of what is common."""


def functions() -> dict[str, Callable[..., Any]]:
    """Public functions of landscape that take models."""
    public = {name: getattr(landscape, name) for name in landscape.__all__}
    beside = {
        "weight_norm": "norms",
        "weight_histogram": "norms",
        "ensemble_gap": "ensemble",
        "subset_errors": "ensemble",
    }
    public |= {
        name: getattr(importlib.import_module(f"landscape.measures.{file}"), name) for name, file in beside.items()
    }
    plain = {name: found for name, found in public.items() if inspect.isfunction(found)}
    return {name: found for name, found in plain.items() if set(MODELS) & set(inspect.signature(found).parameters)}


FUNCTIONS = functions()
WITH_TASK = [name for name, found in FUNCTIONS.items() if "task" in inspect.signature(found).parameters]
WITHOUT_TASK = sorted(set(FUNCTIONS) - set(WITH_TASK))
NO_BUFFERS = ("align", "aligned_barrier")
"""Functions that refuse models with buffers."""

CASES = [(name, norm) for name in WITH_TASK for norm in (False, True) if not (norm and name in NO_BUFFERS)]


def net(seed: int, norm: bool) -> nn.Module:
    torch.manual_seed(seed)
    layers = [nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4) if norm else nn.Identity(), nn.Linear(4, 2)]
    made = nn.Sequential(*layers)
    if norm:
        made.train()(torch.randn(9, 3) + seed)  # statistics of its own
    return made.eval()


def task(norm: bool) -> Task:
    generator = torch.Generator().manual_seed(0)
    samples = Samples(torch.randn(12, 3, generator=generator), torch.arange(12) % 2)
    return Task(net(9, norm), {"train": samples, "test": samples})


def called(name: str, task: Task | None, models: list[Any], **more: Any) -> Any:
    """The function on as many models as it takes."""
    known = inspect.signature(FUNCTIONS[name]).parameters
    places = [place for place in known if place in MODELS]
    given: dict[str, Any] = (
        {place: models if place in ("models", "basis") else models[row] for row, place in enumerate(places)}
        | {"points": 5, "products": 6, "probes": 1, "steps": 3}
        | {"weights": torch.ones(3), "task": task}
    )
    smallest = {key: value for key, value in given.items() if key in known}
    return FUNCTIONS[name](**smallest | FEW.get(name, {}) | more)


def buffers_of(name: str, task: Task, states: list[dict[str, Tensor]]) -> dict[str, Any]:
    """The buffers that a user of vectors would have to give."""
    known = inspect.signature(FUNCTIONS[name]).parameters
    if "buffers" not in known or not task.layout.buffer_size:
        return {}
    rows = torch.stack([task.layout.buffer_vector(state) for state in states])
    places = [place for place in known if place in MODELS]
    single = places == ["theta"]
    return {"buffers": rows[0] if single else rows[: len(rows) if places[0] in ("models", "basis") else len(places)]}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, xr.Dataset):
        return bool(timeless(one).equals(timeless(other)))
    if isinstance(one, dict):
        return all(same(one[key], other[key]) for key in one)
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    return all(same(getattr(one, key), getattr(other, key)) for key in vars(one) if torch.is_tensor(getattr(one, key)))


def timeless(ds: xr.Dataset) -> xr.Dataset:
    """Without measured times, which differ from call to call."""
    return ds.drop_vars([name for name, values in ds.data_vars.items() if values.attrs.get("units") == "s"])


@pytest.mark.parametrize(("name", "norm"), CASES)
def test_state_dicts_and_modules_give_the_numbers_of_their_vectors(name, norm):
    one, modules = task(norm), [net(seed, norm) for seed in (1, 2, 3)]
    states = [module.state_dict() for module in modules]
    vectors = [one.layout.theta(state) for state in states]
    places = set(inspect.signature(FUNCTIONS[name]).parameters)
    stacked: Any = torch.stack(vectors) if places & {"models", "basis"} else vectors
    expected = called(name, one, stacked, **buffers_of(name, one, states))
    assert same(expected, called(name, one, states))
    assert same(expected, called(name, one, modules))


@pytest.mark.parametrize("name", WITHOUT_TASK)
@pytest.mark.parametrize("kind", ["state dict", "module"])
def test_a_function_without_a_task_says_how_to_make_vectors(name, kind):
    modules = [net(seed, False) for seed in (1, 2, 3)]
    given = modules if kind == "module" else [module.state_dict() for module in modules]
    sweep = {"sweep": None} if name == "project" else {}
    with pytest.raises(ValueError, match=rf"{name}: .* is a {kind}.*; it takes vectors.*task\.layout\.theta\(model\)"):
        called(name, None, given, **sweep)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("value", [None, "model.pt", 3, []], ids=["None", "text", "number", "empty"])
def test_what_is_no_model_is_refused_in_one_line(name, value):
    sweep = {"sweep": None} if name == "project" else {}
    wrong = value if value == [] else [value] * 3
    with pytest.raises(ValueError, match="give a vector") as refused:
        called(name, task(False) if name in WITH_TASK else None, wrong or [[], [], []], **sweep)
    assert "\n" not in str(refused.value)


def test_a_state_dict_of_another_model_or_inside_a_table_is_refused_by_name():
    one = task(False)
    with pytest.raises(ValueError, match=r"no tensor named '0\.weight'.*it has model, epoch"):
        landscape.top_eigenvalues(one, {"model": net(1, False).state_dict(), "epoch": 3})
    with pytest.raises(ValueError, match=r"'0\.weight' is of type ndarray"):
        landscape.top_eigenvalues(one, {key: value.numpy() for key, value in net(1, False).state_dict().items()})
    with pytest.raises(ValueError, match="was given; give a module or its state dict"):
        one.layout.theta(one.theta)


def test_outputs_are_those_of_the_module_also_with_batch_normalisation():
    one, other = task(True), net(1, True)
    with torch.no_grad():
        expected = other(one.samples["test"].inputs)
    assert torch.allclose(one.outputs(other, "test"), expected)
    assert torch.equal(one.outputs(other, "test"), one.outputs(other.state_dict(), "test"))


def test_vectors_and_state_dicts_together_are_refused_where_buffers_would_be_a_guess():
    one, state = task(True), net(1, True).state_dict()
    with pytest.raises(ValueError, match="some models are vectors and some are state dicts"):
        landscape.barrier(one, one.theta, state)
    plain = task(False)
    state = net(1, False).state_dict()
    assert same(
        landscape.barrier(plain, plain.theta, state),
        landscape.barrier(plain, plain.theta, Layout.theta(plain.layout, state)),
    )
