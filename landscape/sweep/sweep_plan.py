"""`SweepPlan`: how the forward passes of a sweep are carried out; what is measured, stored and recorded."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

Matrices = Literal["onednn", "torch"]


@dataclass(frozen=True)
class SweepPlan:
    """How a sweep on a CPU computes its forward passes.

    All plans have the same values up to rounding; the last bits of a value may depend on the plan, for a given plan
    only on its own point.

    Args:
        block: Samples per forward pass; None: by the size of the activations.
        matrices: What multiplies: "onednn" with weights in its own order, or "torch" as in the model itself.
        every_dense: Let oneDNN also compute small dense layers and those of sequences.
        shared: Compute the first layer once per model of the basis; None: by the size of the layer.
        contiguous: Images are contiguous instead of channels-last.
        folded: Batch normalisation, residual sum and ReLU are part of the convolution before them.
    """

    block: int | None = None
    matrices: Matrices = "onednn"
    every_dense: bool = False
    shared: bool | None = None
    contiguous: bool = False
    folded: bool = False

    @property
    def text(self) -> str:
        """What differs from the default, as JSON in one line; "default" if nothing does."""
        return json.dumps(_differences(self), sort_keys=True) if self != DEFAULT else "default"

    @classmethod
    def parse(cls, text: object) -> SweepPlan:
        """The plan of a `text`.

        Raises:
            ValueError: If it is none, as that of a later version may be.
        """
        try:
            entries = {} if text == "default" else json.loads(str(text))
            plan = replace(DEFAULT, **entries)
        except (TypeError, ValueError) as reason:
            raise ValueError(f"{text!r} is no plan of a sweep ({reason}); start the sweep anew.") from reason
        if not all(_accepts(entry.name, getattr(plan, entry.name)) for entry in fields(cls)):
            raise ValueError(f"{text!r} is no plan of a sweep; start the sweep anew.")
        return plan


DEFAULT = SweepPlan()
"""The plan of `evaluate`, and of short sweeps of models without batch normalisation and sequences."""


def _differences(plan: SweepPlan) -> dict[str, Any]:
    default = asdict(DEFAULT)
    return {name: value for name, value in asdict(plan).items() if value != default[name]}


def _accepts(name: str, value: object) -> bool:
    if name == "block":
        return value is None or (type(value) is int and 0 < value <= 2**16)
    if name == "matrices":
        return value in ("onednn", "torch")
    return type(value) is bool or (name == "shared" and value is None)
