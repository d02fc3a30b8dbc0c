"""Stored results of analyses, keyed by the analysis, its arguments, the run and its last round."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from torch import Tensor

import drift
from drift.store import files, locks
from landscape.results import zarr_files

if TYPE_CHECKING:
    from drift.runs.run import Run


def cached(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> xr.Dataset:
    """Result of `analysis(run, **arguments)`, read where it is stored, else computed and stored.

    Where the analysis's module has a function of its name and `_effort`, `run.context.announce` is called with
    its estimate before.

    Raises:
        TypeError: If the analysis has no such argument, or one is neither number, text nor list of these.
        LookupError: If the stored result is broken or of another run.
    """
    text = arguments_text(run, analysis, arguments)
    partial = _partial(run, analysis, text)
    if (result := _stored(run, analysis, text, partial)) is not None:
        return result
    path, own = Path(partial.path), partial.own
    with locks.lock_result(path):
        if (result := _complete(partial)) is not None:  # another process has stored it meanwhile
            return result
        _announce(run, analysis, arguments)
        if "partial" in inspect.signature(analysis).parameters:
            result = analysis(run, **arguments, partial=partial)
        else:
            result = analysis(run, **arguments)
        result = result.assign_attrs(own, run=run.name, arguments=text, complete=1)
        zarr_files.save(result, path)
        return zarr_files.sort_names(result)


def stored(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> xr.Dataset | None:
    """The stored result that `cached` would return; None if there is none and it would compute.

    Raises:
        TypeError, LookupError: As `cached`.
    """
    text = arguments_text(run, analysis, arguments)
    return _stored(run, analysis, text, _partial(run, analysis, text))


@dataclass(frozen=True)
class OwnPartial(zarr_files.Partial):
    """A partial result of a run, refused if it is of another run.

    Args:
        run: The run.
        own: Attributes that identify the run and the last round that the result is computed from.
    """

    run: Run
    own: dict[str, str]

    def known(self) -> xr.Dataset | None:
        """The stored part, or None.

        Raises:
            LookupError: If it is broken, or of another run.
        """
        stored = super().known()
        if stored is not None and (what := complaint(stored, self.run, {self.own["head"]})):
            raise LookupError(
                f"the result {self.path} {what}; put the run's own in its place, or delete the folder and compute it "
                "again (fedscape verify --repair sets it aside)."
            )
        return stored

    def checkpoint(self, ds: xr.Dataset) -> None:
        """Store the finished part of the result."""
        super().checkpoint(ds.assign_attrs(self.own))


def complaint(ds: xr.Dataset, run: Run, heads: Collection[str]) -> str:
    """Why a stored result does not belong to a run; "" if it does.

    Results of earlier versions have the name of the folder in which they were computed, which has to be that of the run
    or of its settings. Unfinished ones of earlier versions have no name and are never read.

    Args:
        ds: The result.
        run: The run in whose folder it is.
        heads: Links of the rounds from which it may have been computed.
    """
    if "identity" not in ds.attrs:
        name = ds.attrs.get("run")
        own_names = {run.folder.resolve().name} | ({run.experiment.slug} if "hash" in run.about else set())
        return (
            "" if name is None or name in own_names else f"was made in the folder of run {name} by an earlier version"
        )
    if ds.attrs["identity"] != run.identity:
        return f"is of run {ds.attrs['identity']}, and this is run {run.identity}"
    if ds.attrs.get("head") not in heads:
        return "was computed from other rounds than the run has"
    return ""


def _key(run: Run, name: str, text: str, *more: str) -> str:
    """Ten digits that identify a result inside a run: analysis, arguments, rounds, the user's own task and metrics."""
    user = f" {run.context.user_task.fingerprint}" if run.context.user_task is not None else ""
    user += "".join(f" {metric.name} {metric.digest}" for metric in run.context.metrics)
    further = "".join(f" {part}" for part in more)
    return hashlib.sha256(f"{name} {text} {run.committed}{user}{further}".encode()).hexdigest()[:10]


def _partial(run: Run, analysis: Callable[..., xr.Dataset], text: str) -> OwnPartial:
    """Where the result of an analysis with these arguments is stored."""
    own = {"identity": run.identity, "head": run.head}
    path = _path(run, analysis, stored_name(analysis), text, *own.values())
    files.require_inside(path, run.folder)
    return OwnPartial(path, run, own)


def _path(run: Run, analysis: Callable[..., xr.Dataset], name: str, *parts: str) -> Path:
    return run.folder / "results" / f"{analysis.__name__}-{_key(run, name, *parts)}.zarr"


def _stored(run: Run, analysis: Callable[..., xr.Dataset], text: str, partial: OwnPartial) -> xr.Dataset | None:
    """The complete result, of this or an earlier version."""
    if (result := _complete(partial)) is not None:
        return result
    return _of_earlier_version(_path(run, analysis, earlier_name(analysis), text), run)


def _of_earlier_version(path: Path, run: Run) -> xr.Dataset | None:
    """A complete result of an earlier version, computed in this run's folder; None if there is none."""
    files.require_inside(path, run.folder)
    result = _complete(zarr_files.Partial(path))
    own = result is not None and result.attrs.get("run") is not None and not complaint(result, run, ())
    return result if own else None


def _announce(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> None:
    estimate = getattr(sys.modules[analysis.__module__], f"{analysis.__name__}_effort", None)
    if run.context.announce is not None and estimate is not None:
        run.context.announce(f"{analysis.__name__} of {run.name}: {estimate(run, **arguments)}")


def arguments_text(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> str:
    """All arguments of a call, defaults included, as JSON; those that were added where they have another value."""
    bound = inspect.signature(analysis).bind(run, **arguments)
    bound.apply_defaults()
    _, *rest = bound.arguments.items()
    added = [*ADDED, *ADDED_TO.get(stored_name(analysis), ())]
    stated = {name: value for name, value in rest if name not in NOT_IN_KEY and (name, value) not in added}
    return json.dumps(stated, sort_keys=True, default=_plain)


NOT_IN_KEY = ("partial", "workers", "memory")
"""Arguments excluded from the cache key: results depend on them by rounding only."""


ADDED: list[tuple[str, Any]] = [("folds", 0)]
"""Arguments that came later, with the value at which an analysis computes what it did without them: results that were
stored before are found."""

ADDED_TO: dict[str, tuple[tuple[str, Any], ...]] = dict.fromkeys(
    ("eigen_rounds", "round_minimum", "round_plane", "trajectory_plane", "weight_simplex"), (("samples", None),)
)
"""The same of single analyses, by name; others had an argument of this name from the beginning."""


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray | Tensor):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(
        f"an argument is a {type(value).__name__}; cached results take numbers, texts and lists of these. "
        "Call the analysis itself instead of run.cached."
    )


def _complete(partial: zarr_files.Partial) -> xr.Dataset | None:
    stored = partial.known()
    return stored if stored is not None and stored.attrs.get("complete") == 1 else None


_TABLE = resources.files("drift.runs").joinpath("earlier_results.tsv").read_text(encoding="utf-8").splitlines()

EARLIER = {name: f"drift.{module}.{name}" for name, module in (row.split("\t") for row in _TABLE[1:])}
"""Names under which earlier versions stored results: the module of the analysis at that time, and its name."""

REVISION = {"coherence": 2, "basin_rounds": 2}
"""Revision of analyses that compute something else now; results of earlier revisions are not read."""


def stored_name(analysis: Callable[..., Any]) -> str:
    """The name under which results are stored: the public name, or module and name for analyses from outside."""
    name = analysis.__qualname__
    if analysis.__module__.startswith("drift.") and (name in EARLIER or name in drift.__all__):
        return f"{name} {REVISION[name]}" if name in REVISION else name
    return f"{analysis.__module__}.{name}"


def earlier_name(analysis: Callable[..., Any]) -> str:
    """The name under which earlier versions stored results; "" if those are not read."""
    name = analysis.__qualname__
    if stored_name(analysis) == name:
        return EARLIER.get(name, "")
    return "" if name in REVISION and analysis.__module__.startswith("drift.") else f"{analysis.__module__}.{name}"
