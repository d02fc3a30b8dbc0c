"""The forward of a layer: replaced for good by a faster one, overridden for a while by a value, and restored.

All replacements go through these functions, so that their order does not matter: an override covers the replacement,
and `release` uncovers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

Forward = Callable[..., Any]

_COVERED = "_covered_forward"


def replacement(layer: nn.Module) -> Forward | None:
    """The permanent replacement of the forward of a layer, also while it is overridden; None if there is none."""
    return vars(layer).get(_COVERED if _COVERED in vars(layer) else "forward")


def replace_forward(layer: nn.Module, forward: Forward | None) -> None:
    """Replace the forward of a layer for good; None restores that of its class."""
    _set(layer, _COVERED if _COVERED in vars(layer) else "forward", forward)


def restore(module: nn.Module) -> None:
    """Give all layers of a module the forwards of their classes again.

    A replacement may refer to its layer: the memory of both would otherwise stay until Python looks for cycles.
    """
    for layer in module.modules():
        release(layer)
        replace_forward(layer, None)


def override(layer: nn.Module, forward: Forward) -> None:
    """Override the forward of a layer until `release`."""
    vars(layer).setdefault(_COVERED, vars(layer).get("forward"))
    vars(layer)["forward"] = forward


def release(layer: nn.Module) -> None:
    """End an override, if there is one."""
    if _COVERED in vars(layer):
        _set(layer, "forward", vars(layer).pop(_COVERED))


@contextmanager
def overridden(layer: nn.Module, forward: Forward) -> Iterator[None]:
    """Override the forward of a layer within the context; then restore an earlier override."""
    earlier = vars(layer).get("forward") if _COVERED in vars(layer) else None
    override(layer, forward)
    try:
        yield
    finally:
        if earlier is None:
            release(layer)
        else:
            override(layer, earlier)


def _set(layer: nn.Module, name: str, forward: Forward | None) -> None:
    if forward is None and name == "forward":
        vars(layer).pop(name, None)
    else:
        vars(layer)[name] = forward
