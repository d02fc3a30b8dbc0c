"""No public function of landscape changes the user's module or the state of the process."""

from __future__ import annotations

import inspect
import random
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from torch import nn

import landscape
from drift.record.recorder import Recorder
from tests.landscape.model.test_vectors import FUNCTIONS, MODELS, NO_BUFFERS, called

mpl.use("Agg")


def net(seed: int, norm: bool) -> nn.Module:
    """A module in the middle of its training: train mode, one layer in eval mode, gradients, a hook."""
    torch.manual_seed(seed)
    middle = nn.BatchNorm1d(4) if norm else nn.Identity()
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), middle, nn.Dropout(0.5), nn.Linear(4, 2)).train()
    model[1].eval()
    model(torch.randn(5, 3)).sum().backward()
    model[4].bias.grad = None
    return model


def traces(models: list[nn.Module]) -> dict[str, Any]:
    """All that a function could change."""
    found: dict[str, Any] = {}
    for place, model in enumerate(models):
        for name, value in model.state_dict(keep_vars=True).items():
            gradient = value.grad.clone() if value.grad is not None else None
            found[f"{place} {name}"] = id(value), value.data_ptr(), value._version, value.requires_grad, gradient
            found[f"{place} {name} values"] = value.detach().clone()
        for path, layer in model.named_modules():
            hooks = layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks
            found[f"{place} layer {path}"] = (
                id(layer),
                layer.training,
                [len(table) for table in hooks],
                set(vars(layer)),
            )
    flags = torch.are_deterministic_algorithms_enabled(), torch.backends.mkldnn.enabled
    return found | {
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state()[1],  # noqa: NPY002  # the global state is what is watched
        "random": random.getstate(),
        "threads": torch.get_num_threads(),
        "type": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "flags": flags,
        "rcParams": dict(mpl.rcParams),
    }


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


CASES = [(name, norm) for name in FUNCTIONS for norm in (False, True) if not (norm and name in NO_BUFFERS)]


@pytest.fixture
def unchanged():
    """Compares before and after; the state of the process is unusual, so that a reset is a change too."""
    torch.manual_seed(12345)
    random.seed(3)
    np.random.seed(4)  # noqa: NPY002
    dtype, look = torch.get_default_dtype(), dict(mpl.rcParams)
    torch.set_default_dtype(torch.float64)
    mpl.rcParams["font.size"] = 17.0
    before: list[Any] = []
    yield lambda models: before.append((models, traces(models)))
    torch_dtype = torch.get_default_dtype()
    models, first = before[0]
    last = traces(models)
    torch.set_default_dtype(dtype)
    mpl.rcParams.update(look)
    assert torch_dtype == torch.float64
    changed = [name for name in first if not alike(first[name], last[name])]
    assert not changed, f"changed: {changed[:5]}"


@pytest.mark.filterwarnings("ignore:.*Dropout")
@pytest.mark.parametrize(
    ("name", "norm"),
    [(name, norm) for name in FUNCTIONS for norm in (False, True) if not (norm and name in NO_BUFFERS)],
)
def test_a_function_leaves_module_and_process_as_they_were(name, norm, unchanged):
    models = [net(seed, norm).double() for seed in (1, 2, 3)]
    inputs = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
    unchanged(models)
    task = landscape.make_task(models[0], nn.CrossEntropyLoss(), (inputs, torch.arange(12) % 2))
    more = {"sweep": landscape.line(task, *models[:2])} if name == "project" else {}
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    if "task" in parameters:
        found = called(name, task, models, **more)
    else:
        names = [one for one in parameters if one in MODELS]
        given = [models] if names[0] in ("models", "basis") else models[: len(names)]
        found = FUNCTIONS[name](task, *given, **more)
    assert found is not None


@pytest.mark.seconds
def test_pictures_and_records_leave_module_and_process_as_they_were(unchanged, tmp_path):
    models = [net(seed, True).double() for seed in (1, 2, 3)]
    inputs = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
    unchanged(models)
    task = landscape.make_task(models[0], nn.CrossEntropyLoss(), (inputs, torch.arange(12) % 2))
    landscape.surface(task, models[0]).plot()
    landscape.surface(task, *models, workers=2).plot()
    landscape.Record(tmp_path / "steps")(models[0], 0)
    recorder = Recorder(tmp_path / "run", models[0])
    recorder.round(start=models[0], clients={0: (models[1], 3)}, end=models[2])


class _Clamps(nn.Linear):
    """Writes to its inputs through `.data`, which their version does not show."""

    def forward(self, inputs):
        inputs.data.clamp_(-1, 1)
        return super().forward(inputs)


def test_a_model_that_writes_to_its_inputs_by_data_leaves_the_samples_as_they_are():
    inputs = 3 * torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    model, before = _Clamps(6, 3), inputs.clone()
    inputs[:2], before[:2] = 0.5, 0.5  # the first samples stay within the bounds
    task = landscape.make_task(model, nn.CrossEntropyLoss(), (inputs, torch.arange(40) % 3))
    landscape.loss(task, model)
    landscape.surface(task, model, task.theta + 1)
    assert torch.equal(inputs, before)
