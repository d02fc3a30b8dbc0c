"""A second device without values, in a process of its own: torch's own rules say which tensors may meet there.

    PYTHONPATH=.:tests python tests/fake_device.py

prints a JSON object of the cases: "" where one passed, else its error. The device is torch's `privateuse1`, and its
tensors are fake: they have a device, a shape and a type. So a tensor that stays on the CPU raises, and so does a shape
that does not fit. A number that is read is 1, and every check of values passes.

The device is not "cuda": a CPU build of torch cannot index a fake tensor of it, and its autograd ends the process. Left
to `second_device`, since they follow values or read whole tensors: the eigenvalues, traces and densities above the
products, alignment, the batched engine (numpy), models that carry their buffers (a subclass of tensors), and the fused
step of SGD, which has no fake kernel.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode

import landscape
from drift.config import method as methods
from drift.config.method_values import Setting
from drift.engines import serial
from drift.training import optimizer
from drift.training import server as servers
from drift.training.client import to_device
from drift.training.data import build_task, read_data
from drift.training.server import Server
from landscape import models
from landscape.curvature.gauss_newton import gauss_newton_graph
from landscape.curvature.hessian_products import hessian_graph, linearise
from landscape.model import bound_model
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples, map_leaves
from landscape.model.task import Task
from landscape.sweep import vmap_points
from tests.tiny import experiment

NAME = "second"
SHAPES = {"linear": (6,), "mlp": (1, 5, 6), "cnn_fmnist": (1, 16, 16), "resnet8": (3, 8, 8)}
BY_VALUES = {"fedbabu", "fedfa", "fedrep", "lss"}
"""Methods whose shapes follow values (`nonzero`, `bincount`), or that draw by a generator of their own."""

METHODS = sorted({*methods.names()} - {"fedbn", "fedlora"} - BY_VALUES)  # those two need other models
ROWS = ((1.0, 0.0, 0.0), (0.2, 0.3, 0.5), (-0.5, 0.9, 0.6))
MODE = FakeTensorMode(allow_non_fake_inputs=False)


class Reads(TorchDispatchMode):
    """Numbers that Python reads are 1, and equal tensors are equal."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return 1.0 if args[0].is_floating_point() else 1 if args[0].dtype != torch.bool else True
        return True if func is torch.ops.aten.equal.default else func(*args, **(kwargs or {}))


def _replaced(module: nn.Module, change: Callable[[Tensor], Tensor]) -> nn.Module:
    """The module with its tensors changed; `.data` of a fake tensor cannot become one of another device."""
    fresh: dict[int, Tensor] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        value = change(tensor)
        fresh[id(tensor)] = nn.Parameter(value, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else value
    for layer in module.modules():
        for tensors in (layer._parameters, layer._buffers):
            tensors.update({name: fresh[id(tensor)] for name, tensor in tensors.items() if tensor is not None})
    return module


def _copied(module: nn.Module) -> nn.Module:
    """`copies.copy_module`; a fake tensor has no storage to copy."""
    shared = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    return _replaced(deepcopy(module, shared), lambda tensor: tensor.detach().clone())


def _converted(module: nn.Module, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """`copies.convert`."""
    return _replaced(module, lambda one: one.detach().to(device, dtype if one.is_floating_point() else one.dtype))


@contextmanager
def _faked(task: Task) -> Iterator[torch.device]:
    """The second device, with the model and samples of a task, which were tried before, made fake."""
    samples: dict[str, Samples] = task.samples
    for split in samples:
        task.split(split), task.measures(), task.layout.size
    _replaced(task.model, lambda tensor: MODE.from_tensor(tensor.detach()))
    samples.update({split: fake(one) for split, one in samples.items()})
    with ExitStack() as stack:
        for name, function in (("copy_module", _copied), ("convert", _converted)):
            stack.enter_context(patch.object(bound_model, name, function))
        for context in (torch.autograd.set_multithreading_enabled(False), MODE, Reads()):
            stack.enter_context(context)
        yield torch.device(NAME, 0)


def fake(samples: Samples) -> Samples:
    """The samples without their values."""
    return Samples(map_leaves(MODE.from_tensor, samples.inputs), MODE.from_tensor(samples.targets))


def _task(name: str) -> Task:
    samples = Samples(torch.rand(12, *SHAPES[name]), torch.arange(12) % 10)
    return Task(models.build_model(name, SHAPES[name], 10, seed=0), {"train": samples, "test": samples[:7]})


def _there(task: Task, device: torch.device) -> tuple[Tensor, Tensor]:
    """Three models and their buffers on the device."""
    theta, buffers = task.layout.theta(task.model), task.buffers
    return torch.stack([theta] * 3).to(device), torch.stack([buffers] * 3).to(device)


def evaluation(name: str, batched: bool) -> None:
    """Losses of a plane or line, points in batches or one by one."""
    task, made, whole = _task(name), [], vmap_points.batch_points
    seen = patch.object(vmap_points, "batch_points", lambda *given: made.append(whole(*given)) or made[-1])
    with _faked(task) as device, patch.object(vmap_points, "DEVICES", (NAME,) * batched), seen:
        three, buffers = _there(task, device)
        losses = landscape.evaluate(task, three, torch.tensor(ROWS), buffers=buffers, groups=torch.arange(7) % 2)
    assert [batch is not None for batch in made] == [True] * batched  # where a batch fails, points go one by one
    assert losses["loss"].device.type == "cpu"


def product(name: str, graph: Any) -> None:
    """A matrix-vector product, of graphs that are kept and of those that are computed again."""
    task = _task(name)
    with _faked(task) as device:
        three, buffers = _there(task, device)
        flat = task.flat(three)
        flat.load(three[0], buffers[0])
        for memory in (0, 2**30):
            matrix, gradient = linearise(flat, three[0], task.split("train"), block=5, memory=memory, graph=graph)
            image = matrix(three[1])
            assert {image.device, gradient.device} == {device} and image.shape == gradient.shape == three[0].shape


def training(method: str) -> None:
    """Local training of a client by a method's own correction, held-out samples included."""
    further = ["method.window=2"] if method == "ima" else []
    spec = experiment(f"method={method}", "clients.valid_ratio=0.2", "local.momentum=0.0", *further)
    data = read_data(spec, None)
    setting = Setting(build_task(spec, data), spec)
    client = servers.first_cohort(setting, data, Server.fresh(setting))[0]
    task = Task(setting.task.model, dict(setting.task.samples))

    def state(values: Any) -> Any:
        return {name: MODE.from_tensor(value) for name, value in values.items()}

    client = replace(
        client,
        samples=fake(client.samples),
        held_out=fake(client.held_out),
        start=MODE.from_tensor(torch.Tensor(client.start)),
        buffers=MODE.from_tensor(client.buffers),
        state=state(client.state),
        server=state(client.server),
    )
    step = partial(optimizer.torch_sgd, foreach=False)
    with _faked(task) as device, patch.object(optimizer, "torch_sgd", lambda *given, fused, **how: step(*given, **how)):
        (update,) = serial.train(spec.method, [to_device(client, device, task.flat(client.start.to(device)))])
        assert update.theta.device == device and update.theta.shape == client.start.shape


CASES: dict[str, Callable[[], None]] = {
    **{f"points {name}": lambda name=name: evaluation(name, batched=False) for name in SHAPES},
    **{f"batches {name}": lambda name=name: evaluation(name, batched=True) for name in SHAPES},
    **{f"hessian {name}": lambda name=name: product(name, hessian_graph) for name in ("mlp", "resnet8")},
    **{f"gauss_newton {name}": lambda name=name: product(name, gauss_newton_graph) for name in ("mlp", "resnet8")},
    **{f"training {method}": lambda method=method: training(method) for method in METHODS},
}

PLANTED = [name for name in CASES if name.split()[1] in ("mlp", "fedavg", "moon")]
"""Cases that are tried again with inputs that stay on the CPU."""


def _outcome(case: Callable[[], None]) -> str:
    try:
        case()
    except (RuntimeError, AssertionError) as error:
        return str(error)
    return ""


def main() -> None:
    """Print the outcome of each case, and of some again with inputs that stay on the CPU."""
    backend_registration._setup_privateuseone_for_python_backend(NAME)
    warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
    outcomes = {name: _outcome(case) for name, case in CASES.items()}
    stays = {"cast": lambda flat, inputs: inputs, "to": lambda samples, **place: samples}
    with patch.object(Flat, "cast", stays["cast"]), patch.object(Samples, "to", stays["to"]):
        outcomes |= {f"planted {name}": _outcome(CASES[name]) for name in PLANTED}
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main()
