"""Results of analyses kept in a run's folder, found again by the analysis and its arguments."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from torch import Tensor

from drift import locks, store
from landscape import results

if TYPE_CHECKING:
    from drift.run import Run


def cached(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> xr.Dataset:
    """Result of `analysis(run, **arguments)`, read where it is stored, else computed and stored.

    Where the analysis's module has a function of its name and `_effort`, `run.announce` hears the cost before.

    Raises:
        TypeError: If the analysis has no such argument, or one is no number, text or list of these.
    """
    text = _text(run, analysis, arguments)
    called = f"{analysis.__module__}.{analysis.__qualname__}"
    given = f" {run.given.fingerprint}" if run.given is not None else ""
    given += "".join(f" {one.name} {one.digest}" for one in run.measures)
    identity = hashlib.sha256(f"{called} {text} {run.committed}{given}".encode()).hexdigest()[:10]
    path = run.folder / "results" / f"{analysis.__name__}-{identity}.zarr"
    store.require_inside(path, run.folder)
    partial = results.Partial(path)
    if (found := _complete(partial)) is not None:
        return found
    with locks.alone(path):
        if (found := _complete(partial)) is not None:  # another process has made it meanwhile
            return found
        _announce(run, analysis, arguments)
        if "partial" in inspect.signature(analysis).parameters:
            found = analysis(run, **arguments, partial=partial)
        else:
            found = analysis(run, **arguments)
        found = found.assign_attrs(run=run.name, arguments=text, complete=1)
        results.save(found, path)
        return found


def _announce(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> None:
    estimate = getattr(sys.modules[analysis.__module__], f"{analysis.__name__}_effort", None)
    if run.announce is not None and estimate is not None:
        run.announce(f"{analysis.__name__} of {run.name}: {estimate(run, **arguments)}")


def _text(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> str:
    """All arguments of a call, defaults included, as JSON."""
    bound = inspect.signature(analysis).bind(run, **arguments)
    bound.apply_defaults()
    _, *rest = bound.arguments.items()
    return json.dumps({name: value for name, value in rest if name not in OUTSIDE}, sort_keys=True, default=_plain)


OUTSIDE = ("partial", "workers", "memory")
"""Arguments that no result depends on, beyond rounding."""


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray | Tensor):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(
        f"an argument is a {type(value).__name__}; cached results take numbers, texts and lists of these. "
        "Call the analysis itself instead of run.cached."
    )


def _complete(partial: results.Partial) -> xr.Dataset | None:
    known = partial.known()
    return known if known is not None and known.attrs.get("complete") == 1 else None
