"""Every method on real images, through the presets that a user has: pytest -m slow, with FEDSCAPE_DATA set."""

import os
import tomllib
from pathlib import Path

import pytest

from drift.config import method as methods
from drift.config.load import presets, read
from drift.simulation.simulate import simulate

PRESETS = {
    "common-fmnist": ["task.train_samples=3000"],
    "common-cifar10": ["task.train_samples=2000"],
    "common-digits3": [],
}
"""What each preset is cut to, so that a run takes seconds."""

SHORT = {
    "fedlaw": ["method.server_epochs=20"],
    "feddf": ["method.server_epochs=20"],
    "fedbe": ["method.server_epochs=20"],
    "lss": ["method.candidates=2"],
    "fedlora": ["task.model=adapted:build"],
    "swa": ["method.cycles=2"],
    "swad": ["method.cycles=2"],
    "soups": ["method.candidates=2"],
    "diwa": ["method.candidates=2"],
}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_method_can_be_chosen_in_a_preset(preset):
    content = tomllib.loads(presets()["common-fmnist"].read_text())
    assert set(content["variants"]) <= set(methods.names())
    for name in methods.names():
        assert read(preset, method=name).method.name() == name


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("FEDSCAPE_DATA"), reason="needs real images: set FEDSCAPE_DATA to their folder")
@pytest.mark.parametrize("name", methods.names())
@pytest.mark.parametrize("preset", PRESETS)
def test_a_method_improves_on_its_initial_accuracy(preset, name, tmp_path):
    data = Path(os.environ["FEDSCAPE_DATA"])
    cut = ["rounds=8", "task.test_samples=1000", "keep.clients=none", *PRESETS[preset], *SHORT.get(name, [])]
    run = simulate(read(preset, f"method={name}", *cut), runs=tmp_path, data=data)
    task = run.task
    outputs = task.outputs(task.theta, "test", buffers=task.buffers)
    initial = float((outputs.argmax(1) == task.split("test").targets).double().mean())
    reached = [run.round(index).metrics["accuracy"] for index in run.rounds()]
    assert max(reached) > initial + 0.03, (initial, reached)
