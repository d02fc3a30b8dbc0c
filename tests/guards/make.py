"""Writes what the guards compare with: run once, at commit 345e1f0, by `PYTHONPATH=.:tests python make.py FOLDER`.

names.json    folder names of presets and methods, public names, verbs with their options, plug-ins, figures, analyses
bits.json     final models of short runs of all methods: numbers for any processor, a digest for the one named
stored.zip    runs on disk, whole, with packed tensors, and stopped halfway, with cached results
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import warnings
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import drift
import figures
import landscape
from drift import method as methods
from drift import partitions
from figures import gallery
from figures.cli import app
from figures.commands.analyse import analyses
from landscape import plugins

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the paths of that commit, which later versions still find
    import drift.simulation.simulate
    from drift.config.load import presets, read, validated

    from drift.store.files import read_state


METHODS = {
    "ima": ["method.window=2", "method.start=0.4"],
    "fedlaw": ["method.server_epochs=3"],
    "feddf": ["method.server_epochs=3"],
    "fedbe": ["method.server_epochs=3"],
    "fedbabu": ["task.model=mlp"],
    "fedbn": [
        "task.dataset=digits",
        "task.dataset_options={}",
        "task.train_samples=60",
        "task.test_samples=30",
        "task.model=resnet8",
        "clients.concentration=10.0",
    ],
    "lss": ["local.optimizer=adam"],
    "scaffold": ["local.momentum=0.0"],
    "swad": ["clients.valid_ratio=0.2", "method.patience_end=2"],
    "fedfomo": ["clients.valid_ratio=0.2"],
    "soups": ["clients.valid_ratio=0.2", "method.candidates=2"],
    "diwa": ["clients.valid_ratio=0.2", "method.candidates=2"],
}
"""Settings that a method needs to run on the small experiment."""

RESULTS = (("coherence", {}), ("drift_variances", {}), ("locality", {}), ("round_plane", {"round": 1, "points": 3}))
"""Analyses whose results are stored, by public name, with their arguments."""


def small(*overrides: str) -> Any:
    """An experiment that trains in a fraction of a second."""
    content = {
        "rounds": 4,
        "seed": 5,
        "proxy": {"per_class": 2},
        "task": {"dataset": "blobs", "model": "linear", "dataset_options": {"samples": 60}},
        "clients": {"number": 4, "per_round": 3, "partition": {"name": "dirichlet", "concentration": 1.0}},
        "local": {"lr": 0.05, "epochs": 1, "batch": 8},
    }
    return read(validated(content), *overrides)


def processor() -> str:
    """What the bits of a float32 computation depend on: processor capability and torch version."""
    return f"{torch.backends.cpu.get_cpu_capability()} torch {torch.__version__}"


def model(folder: Path) -> dict[str, Any]:
    """The final model of a run: norm, sum and four fixed projections in float64, and a digest of its bits."""
    theta = read_state(folder)[0]["theta"]
    directions = np.random.default_rng(0).standard_normal((4, len(theta))) / np.sqrt(len(theta))
    values = theta.double().numpy()
    return {
        "numbers": [float(np.linalg.norm(values)), float(values.sum()), *map(float, directions @ values)],
        "digest": hashlib.sha256(theta.numpy().tobytes()).hexdigest(),
    }


def names() -> dict[str, Any]:
    """Everything that a user may have written down."""
    slugs = {}
    for name in sorted(presets()):
        try:
            slugs[name] = read(name).slug
        except LookupError:  # starts from a checkpoint that is not here
            continue
    return {
        "presets": slugs,
        "methods": {name: small(f"method={name}", *METHODS.get(name, [])).slug for name in methods.names()},
        "public": {module.__name__: sorted(module.__all__) for module in (landscape, drift, figures)},
        "commands": commands(app, ()),
        "plugins": {
            "methods": methods.names(),
            "partitions": partitions.names(),
            "datasets": plugins.names("landscape.datasets"),
            "models": plugins.names("landscape.models"),
            "figures": gallery.names(),
        },
        "analyses": {one.name: [*one.options] for one in analyses().values()},
    }


def commands(command: Any, path: tuple[str, ...]) -> dict[str, list[str]]:
    """Options of every verb, by the words that call it."""
    listed = {}
    for name in sorted(one for one in command if not one.startswith("-")):
        inner = command[name]
        words = (*path, name)
        if inner.default_command is not None:
            arguments = inner.assemble_argument_collection()
            listed[" ".join(words)] = sorted(
                {one for argument in arguments for one in argument.names if one[:1] == "-"}
            )
        listed |= commands(inner, words)
    return listed


def bits() -> dict[str, Any]:
    """Final models of all methods."""
    with TemporaryDirectory() as folder:
        models = {}
        for name in methods.names():
            run = drift.simulate(small(f"method={name}", *METHODS.get(name, [])), runs=folder)
            models[name] = model(run.folder)
    return {"processor": processor(), "models": models}


def stored(path: Path) -> None:
    """Runs on disk as one zip file."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        for kind, options in (("whole", []), ("packed", ["keep.compress=true"])):
            run = drift.simulate(small("method=fedavgm", *options), runs=folder / kind)
            for name, arguments in RESULTS:
                run.cached(getattr(drift, name), **arguments)
        interrupted("begun", folder, small("method=scaffold", "local.momentum=0.0"))
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.rglob("*")):
                if file.is_file() and file.name not in (".lock", "index.sqlite"):
                    archive.write(file, file.relative_to(folder))


def interrupted(kind: str, folder: Path, experiment: Any) -> None:
    """A run stopped after two of its rounds, and beside it the state of the run that was never stopped."""
    whole, loop = drift.simulate(experiment, runs=folder / "never-stopped"), sys.modules["drift.simulation.simulate"]
    play = loop.play

    def stopping(setting: Any, data: Any, server: Any) -> Any:
        if server.next == 2:
            raise KeyboardInterrupt
        return play(setting, data, server)

    loop.play = stopping
    try:
        drift.simulate(experiment, runs=folder / kind)
    except KeyboardInterrupt:
        pass
    finally:
        loop.play = play
    shutil.copy(whole.folder / "state.safetensors", folder / f"{kind}-ended.safetensors")
    shutil.rmtree(folder / "never-stopped")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    torch.set_num_threads(1)
    (target / "names.json").write_text(json.dumps(names(), indent=1, sort_keys=True) + "\n")
    (target / "bits.json").write_text(json.dumps(bits(), indent=1, sort_keys=True) + "\n")
    stored(target / "stored.zip")
