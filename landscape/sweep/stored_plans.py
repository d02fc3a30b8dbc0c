"""Plans of sweeps that were measured on this machine, one small file per model, in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from landscape.model.samples import leaves
from landscape.results.atomic_write import write_bytes
from landscape.results.user_folder import cache_folder
from landscape.sweep.processor import processor
from landscape.sweep.sweep_plan import SweepPlan
from landscape.sweep.worker import Work

FORMAT = 2
"""Raised when plans of earlier versions are not to be used."""


def work_identity(work: Work) -> dict[str, Any]:
    """What a plan was measured for: machine, model, and the shapes of basis and inputs."""
    layers = [(name, type(layer).__qualname__, layer.extra_repr()) for name, layer in work.task.model.named_modules()]
    own = repr((layers, work.task.layout.parameters))
    return {
        "format": FORMAT,
        **processor(),
        "threads": torch.get_num_threads(),
        "model": hashlib.blake2b(own.encode(), digest_size=8).hexdigest(),
        "basis": [len(work.basis), str(work.basis.dtype)],
        "inputs": [[*map(int, leaf.shape[1:]), str(leaf.dtype)] for leaf in leaves(work.samples.inputs)],
    }


def read_plan(identity: dict[str, Any]) -> SweepPlan | None:
    """The stored plan; None if there is none, or the file is damaged or of another machine or model."""
    try:
        content = json.loads(_path(identity).read_text(encoding="utf-8"))
        return SweepPlan.parse(content["plan"]) if content["identity"] == identity else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def write_plan(identity: dict[str, Any], plan: SweepPlan, seconds: dict[str, float]) -> None:
    """Store a plan and what was measured; without a writable folder nothing is stored.

    Args:
        seconds: Per point and sample, by the text of the plan.
    """
    path = _path(identity)
    content = {"plan": plan.text, "identity": identity, "seconds": seconds}
    with suppress(OSError):
        write_bytes(path, f"{json.dumps(content, indent=1)}\n".encode())


def _path(identity: dict[str, Any]) -> Path:
    name = hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=8).hexdigest()
    return cache_folder() / "plans" / f"{name}.json"
