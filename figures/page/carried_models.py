"""Models that a page carries, so that it evaluates a clicked point itself: layers, planes of rounds, samples."""

import contextlib
import hashlib
from collections.abc import Mapping
from functools import cache, reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.analyses.evaluate_on import losses_and_errors
from drift.analyses.landscapes.sweeps import client_sweep
from drift.analyses.samples.contents import images
from drift.analyses.samples.predictions import samples_of
from drift.analyses.selected_samples import at_most, selected_samples
from drift.runs.run import Run
from figures.page.packed import packed, zipped
from figures.page.paired_losses import globals_of
from figures.page.stage_round import BOX
from figures.page.start import Start
from landscape.model.copies import copy_module
from landscape.model.samples import Samples
from landscape.model.task import Task, cross_entropy, error

PARAMETERS, IMAGES = 300_000, 1000
"""Most parameters of a model, and samples."""

BYTES, MORE = 4_500_000, 3_500_000
"""Signs of the models that a page begins with at most, and of all models while those of further rounds are added."""

PLANE = ("middle", "u", "v")
"""Vectors of a plane; the others lead from a plane to a model beside it."""

ON_PLANE = 1e-6
"""Distance of a model from the plane, relative to its distance from the middle, below which it is on the plane."""

CLOSE, HALVINGS = 2e-5, (16, 18, 20)
"""Difference of a loss (nats) below which rounded numbers will do; their units as halvings of a usual parameter."""

PLACES = torch.tensor([[1, u, v] for u in (-1, 0, 1) for v in (-1, 0, 1)], dtype=torch.float64)
"""Middle, corners and edges of a plane, where rounded numbers are compared with exact ones."""


def with_models(scene: dict[str, Any], grouped: Mapping[str, list[Run]], start: Start) -> dict[str, Any]:
    """A scene with models, as many as `BYTES` and `MORE` allow: the planes that the page begins with, then the other
    models of these rounds, then those of the last rounds of all runs.

    Args:
        scene: As `figures.page.scene.scene` returns it.
        grouped: Its runs, as there.
        start: Its round, and the samples of its landscapes.

    Returns:
        Also samples, by key (shape of one, values: a table per channel and zipped bytes, or float32; targets; numbers
        in their split; of images also pixels: the brightness of each byte, by channel); of each run network (layers
        and key of its samples) or interpolated (why it has none); of a frame of its rounds carried: middle, u and v,
        each zipped (whole numbers n as gzip in base64: 2 |n|, less 1 below zero, byte by byte, the lowest bytes of all
        numbers first), bytes (of a number) and step (its unit). The model at distances a and b is
        middle + a u + b v; a model beside the plane is that at its mark plus the vector of its name.
    """
    runs, stored = {run["key"]: dict(run) for run in scene["runs"]}, {}
    waiting, samples_of_run = list[tuple[int, str, int]](), dict[str, Samples]()
    for key, entry in runs.items():
        run, shown = grouped[key][0], {int(index): frame for index, frame in entry["shown"].items()}
        able = sorted(index for index, frame in shown.items() if not isinstance(frame, str) and frame["plane"])
        if not able:
            entry["interpolated"] = "a file has models of rounds with three clients"
            continue
        first = start.first(able)
        others = [] if start.how["split"].startswith("client") else reversed(able)  # its data may change
        rounds = [first, *(index for index in others if index != first)]
        samples_of_run[key] = selected = selected_samples(run, rounds[0], start.how["split"], start.how["samples"])
        if (why := refused(run.task, selected)) or (layers := layers_of(run.task.model, selected[:8].inputs)) is None:
            entry["interpolated"] = why or "its model has other layers than a page evaluates"
            continue
        content = _samples(run, rounds[0], start, selected)
        name = hashlib.sha256(repr(content).encode()).hexdigest()[:12]
        stored[name] = content
        entry |= {"network": {"layers": layers, "samples": name}, "shown": shown}
        waiting += [(turn, key, index) for turn, index in enumerate(rounds)]
    used, models = 0, cache(lambda key, index: carried(grouped[key][0], index, samples_of_run[key]) or {})
    steps = [(turn, aside and not turn, aside, key, index) for turn, key, index in waiting for aside in (False, True)]
    for turn, _, aside, key, index in sorted(steps, key=lambda step: step[:2]):
        if used < (most := MORE if turn else BYTES):
            vectors = {name: vector for name, vector in models(key, index).items() if (name not in PLANE) == aside}
            used += sum(len(vector["zipped"]) for vector in vectors.values())
            if vectors and used <= most:
                runs[key]["shown"][index].setdefault("carried", {}).update(vectors)
    return {**scene, "runs": list(runs.values()), "samples": stored}


def refused(task: Task, samples: Samples) -> str:
    """Why a page does not evaluate a task itself, in words; empty if its layers decide."""
    size = sum(parameter.numel() for parameter in task.model.parameters())
    usual = task.loss is cross_entropy and task.metrics.get("error") is error and samples.targets.ndim == 1
    if not usual or not isinstance(samples.inputs, Tensor):
        return "its loss or its inputs are others than a page evaluates"
    if size > PARAMETERS or size != task.layout.size:
        return f"its model has {size:,} parameters" if size > PARAMETERS else "a part of its model is frozen"
    return f"its landscapes have more than {IMAGES:,} samples" if len(samples) > IMAGES else ""


def layers_of(model: nn.Module, inputs: Any) -> list[dict[str, Any]] | None:
    """The layers of a plain network in the order of their parameters; None if it has others.

    Args:
        inputs: Some of its inputs, on which it must compute what its layers do, one after the other.
    """
    module = copy_module(model).eval()
    leaves = [leaf for leaf in module.modules() if not any(leaf.children())]
    layers = [layer for leaf in leaves if (layer := _layer(leaf)) is not None]
    numbers = sum(parameter.numel() for leaf in leaves for parameter in leaf.parameters())
    if len(layers) < len(leaves) or numbers < sum(parameter.numel() for parameter in module.parameters()):
        return None
    with torch.no_grad(), contextlib.suppress(RuntimeError):  # of shapes that do not follow one another
        expected, outputs = module(inputs), reduce(lambda value, leaf: leaf(value), leaves, inputs)
        return layers if outputs.shape == expected.shape and torch.allclose(outputs, expected, atol=1e-6) else None
    return None


def _layer(module: nn.Module) -> dict[str, Any] | None:
    pair = lambda value: [value, value] if isinstance(value, int) else list(value)  # noqa: E731
    if type(module) is nn.Linear:
        return {"kind": "linear", "out": module.out_features, "bias": module.bias is not None}
    if type(module) is nn.Conv2d:
        plain = module.groups == 1 and module.padding_mode == "zeros" and pair(module.dilation) == [1, 1]
        shape = {"out": module.out_channels, "kernel": pair(module.kernel_size), "stride": pair(module.stride)}
        if not plain or isinstance(module.padding, str):
            return None
        return {"kind": "conv", **shape, "padding": pair(module.padding), "bias": module.bias is not None}
    if type(module) in (nn.MaxPool2d, nn.AvgPool2d):
        plain = (
            pair(module.padding) == [0, 0] and not module.ceil_mode and pair(getattr(module, "dilation", 1)) == [1, 1]
        )
        kind = "max" if type(module) is nn.MaxPool2d else "mean"
        return {"kind": kind, "kernel": pair(module.kernel_size), "stride": pair(module.stride)} if plain else None
    simple = {nn.ReLU: "relu", nn.Flatten: "flatten", nn.Identity: "same", nn.Dropout: "same"}
    return {"kind": simple[type(module)]} if type(module) in simple else None


def carried(run: Run, index: int, samples: Samples) -> dict[str, Any] | None:
    """The models of a round as whole numbers, as coarse as changes no loss and no error.

    Returns:
        The vectors of the plane, and those to the clients, the start and the end beside it; None where a model has
        infinite numbers.
    """
    record, _, sweep = client_sweep(run, index, None, points=2, margin=0.3, box=BOX)
    (mean,) = (mark for mark in sweep.marks if mark.name == "mean")
    origin = sweep.origin + np.asarray(mean.at) @ sweep.axes
    plane = (torch.from_numpy(np.stack([origin, *sweep.axes])) @ sweep.basis.double()).float().double()
    sides = [(values[-1] - values[0]) / 2 for values in sweep.coords.values()]
    rests, reach = dict[str, Tensor](), torch.tensor([1.0, *sides], dtype=torch.float64)
    rows = [*(PLACES * reach)]
    clients = {
        f"client {number}": model for number, model in zip(record.ids.tolist(), record.kept("clients"), strict=True)
    }
    for name, model in {**clients, **globals_of(record)}.items():
        step = model.double() - plane[0]
        at = plane[1:] @ step
        if (rest := step - at @ plane[1:]).norm() > ON_PLANE * step.norm():
            rests[name] = rest
            rows.append(torch.cat([reach[:1], at]))
    vectors = torch.stack([*plane, *rests.values()]).float()
    if not vectors.isfinite().all():
        return None
    steps_aside = torch.eye(len(rows), dtype=torch.float64)[:, len(PLACES) :]
    combined = torch.cat([torch.stack(rows), steps_aside], 1)
    exact = losses_and_errors(run, vectors, samples, combined)
    size = float(vectors[0].double().square().mean().sqrt()) or 1.0
    for halvings in HALVINGS:
        steps = size / 2**halvings / torch.cat([reach, torch.ones(len(rests)).double()])
        integers = (vectors.double() / steps[:, None]).round()
        near = losses_and_errors(run, (steps[:, None] * integers).float(), samples, combined)
        if torch.equal(exact["error"], near["error"]) and bool((exact["loss"] - near["loss"]).abs().max() < CLOSE):
            break
    return dict(zip((*PLANE, *rests), map(_written, integers, steps.tolist()), strict=True))


def _written(integers: Tensor, step: float) -> dict[str, Any]:
    """Whole numbers, first the lowest byte of all, then the next; signs are the lowest bit, so that bytes repeat."""
    numbers = integers.numpy().astype(np.int64)
    content = (2 * np.abs(numbers) - (numbers < 0)).astype("<u4").view(np.uint8).reshape(-1, 4)
    size = max(1, 4 - int((content.max(0)[::-1] == 0).cumprod().sum()))
    return {"zipped": zipped(content[:, :size].T.tobytes()), "step": step, "bytes": size}


def _samples(run: Run, index: int, start: Start, samples: Samples) -> dict[str, Any]:
    """Inputs as bytes where a channel of images has at most 256 values, else as float32; targets, numbers, pixels."""
    assert isinstance(samples.inputs, Tensor)  # noqa: S101 - for mypy
    values = samples.inputs.float().numpy()
    numbers = torch.from_numpy(samples_of(run, index, start.how["split"])[1])
    content: dict[str, Any] = {"shape": list(values.shape[1:]), "targets": samples.targets.tolist()}
    content["numbers"] = at_most(Samples(numbers, numbers), start.how["samples"]).targets.tolist()
    tables = (
        [np.unique(channel, return_index=True) for channel in np.moveaxis(values, 1, 0)] if values.ndim == 4 else []
    )
    if not tables or max(len(table) for table, _ in tables) > 256:
        return {**content, "values": packed(values)}
    places = [np.searchsorted(table, values[:, channel]) for channel, (table, _) in enumerate(tables)]
    content["bytes"] = zipped(np.stack(places, 1).astype(np.uint8).tobytes())
    if (pixels := images(run, samples)) is not None:
        channels = np.moveaxis(pixels, 3, 0) if pixels.ndim == 4 else pixels[None]
        content["pixels"] = [
            channel.ravel()[first].tolist() for channel, (_, first) in zip(channels, tables, strict=True)
        ]
    return {**content, "tables": [packed(table) for table, _ in tables]}
