"""The description of a run, run.json: written when it begins, compared when it goes on."""

import platform
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from drift.config.corrections import require_corrected
from drift.config.experiment import Experiment
from drift.config.without_code import overridden
from drift.engines.choice import Choice
from drift.plugins import trust
from drift.store import chain, files
from drift.training.data import Data
from landscape.model.layout import Entry
from landscape.plugins.public_names import version


def described(folder: Path, experiment: Experiment) -> dict[str, Any]:
    """Content of run.json, empty before the run is begun; LookupError if it is damaged or of another experiment."""
    path = folder / "run.json"
    if not path.exists():
        return {}
    about = files.read_json(path)
    require_corrected(about, experiment.method, folder)
    stated = about.get("hash")
    if stated != experiment.hash:
        raise files.Damaged(path, f"describes run {stated}, and run {experiment.hash} is to be trained", chain.REMEDY)
    return about


def require_unchanged(about: Mapping[str, Any], experiment: Experiment, data: Data) -> None:
    """Refuse data, or code from outside, that have changed since the run was begun."""
    if about["fingerprint"] != data.fingerprint:
        raise ValueError(
            f"dataset {experiment.task.dataset} has fingerprint {data.fingerprint}, {experiment.slug} was trained on "
            f"{about['fingerprint']}; restore the data or train into another folder (--runs DIR)."
        )
    if altered := trust.changed(about.get("sources", {}), trust.names_in(experiment.resolved())):
        raise ValueError(
            f"{altered[0]} has changed since {experiment.slug} was begun with it; restore it, or train into another "
            "folder (--runs DIR)."
        )


def write_description(
    folder: Path, experiment: Experiment, data: Data, parameters: tuple[Entry, ...], engine: Choice, device: Choice
) -> None:
    settings = experiment.resolved()
    sources, method = trust.sources(settings), settings["method"]
    about = {
        "experiment": settings,
        **({"sources": sources} if sources else {}),
        **({"hooks": overridden(experiment.method)} if any(trust.names_in({"method": method})) else {}),
        "label": experiment.method.label,
        "hash": experiment.hash,
        "fingerprint": data.fingerprint,
        "classes": list(data.classes),
        "samples": {split: len(samples) for split, samples in data.samples.items()},
        "layout": [[name, list(shape)] for name, shape in parameters],
        "engine": engine.name,
        "engine_reason": engine.reason,
        "device": device.name,
        "device_reason": device.reason,
        "corrections": len(experiment.method.corrections),
        "versions": versions(),
    }
    files.write_json(folder / "run.json", about)


def describe_stop(folder: Path, reason: str) -> None:
    """State in run.json why a training was stopped, and warn of it; what stood there goes where it was not."""
    about = files.read_json(folder / "run.json")
    stated = {key: value for key, value in about.items() if key != "stopped"} | ({"stopped": reason} if reason else {})
    if reason:
        warnings.warn(f"{folder.name} is stopped: {reason}.", stacklevel=3)
    if stated != about:
        files.write_json(folder / "run.json", stated)


def versions() -> dict[str, str]:
    """Versions that the bits of a run depend on, in addition to its settings."""
    programs = {"fedscape": version("fedscape"), "python": platform.python_version(), "torch": torch.__version__}
    return programs | {"numpy": np.__version__, "machine": platform.machine()}
