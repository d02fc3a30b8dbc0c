"""Stored results of analyses, each named by the analysis, its arguments, the task, the run and its rounds."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from torch import Tensor

import drift
from drift.record.early_warning import calibration
from drift.runs import unstored_results
from drift.runs.registry import registered
from drift.runs.run_names import named_in
from drift.store import files, locks
from landscape import plugins
from landscape.model.held_values import digest
from landscape.plugins import outside
from landscape.results import netcdf_files, stated

if TYPE_CHECKING:
    from drift.runs.run import Run


@stated.states_statistics
def cached(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> xr.Dataset:
    """Result of `analysis(run, **arguments)`, read where it is stored, else computed and stored.

    In a run that cannot be written the result is computed, and nothing is stored; that is said once.

    Where the analysis's module has a function of its name and `_effort`, `run.context.announce` is called with
    its estimate before.

    Raises:
        TypeError: If the analysis is no function or has no such argument, or one is no number, text or list of these.
        LookupError: If the stored result is broken or another one, or a round was altered.
    """
    text = arguments_text(run, analysis, arguments)
    partial = _partial(run, analysis, text)
    if (result := _complete(partial)) is not None:
        return result
    path, unstored = Path(partial.path), Unstored(partial.path, partial.identity)
    if not (run.context.store and locks.is_writable(path.parent)):
        if run.context.store:
            unstored_results.say(run, "is read-only")
        return _computed(run, analysis, arguments, unstored)
    result = None
    try:
        with locks.lock_result(path):
            if (result := _complete(partial)) is not None:  # another process has stored it meanwhile
                return result
            result = _computed(run, analysis, arguments, partial)
            netcdf_files.save(result, path)
            return result
    except OSError as reason:
        if reason.errno not in unstored_results.ERRORS:
            raise
        unstored_results.say(run, f"cannot be written ({reason.strerror})")
        return _computed(run, analysis, arguments, unstored) if result is None else result


def _computed(
    run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any], partial: OwnPartial
) -> xr.Dataset:
    """The complete result, with what names it."""
    _announce(run, analysis, arguments)
    resumed = {"partial": partial} if "partial" in inspect.signature(analysis).parameters else {}
    result = analysis(run, **arguments, **resumed).assign_attrs(partial.identity, run=run.name, complete=1)
    return netcdf_files.sort_names(result)


def stored(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> xr.Dataset | None:
    """The stored result that `cached` would return; None if there is none and it would compute.

    Raises:
        TypeError, LookupError: As `cached`.
    """
    return _complete(_partial(run, analysis, arguments_text(run, analysis, arguments)))


@dataclass(frozen=True)
class OwnPartial(netcdf_files.Partial):
    """A partial result of a run, refused if it is another one.

    Args:
        identity: Attributes that identify the result, as `NAMES` lists them.
    """

    identity: dict[str, str]

    def known(self) -> xr.Dataset | None:
        """The stored part, or None.

        Raises:
            LookupError: If it is broken, of another run or analysis, or computed from other rounds.
        """
        if (stored := super().known()) is not None and (what := _difference(stored, self.identity)):
            raise LookupError(
                f"the result {self.path} {what}; put the run's own in its place, or delete it and compute it "
                "again (fedscape verify --repair sets it aside)."
            )
        return stored

    def checkpoint(self, ds: xr.Dataset) -> None:
        """Store the finished part of the result."""
        super().checkpoint(ds.assign_attrs(self.identity))


@dataclass(frozen=True)
class Unstored(OwnPartial):
    """A partial result of a run that may not be written."""

    def checkpoint(self, ds: xr.Dataset) -> None:
        """Store nothing."""


NAMES = {
    "identity": "is of run {stated}, and this is run {wanted}",
    "head": "was computed from other rounds than the run has",
    "computed": "is of analysis {stated}, and {wanted} was asked for",
    "arguments": "was computed with {stated}, and {wanted} were asked for",
    "task": "was computed with another task or other metrics than are given",
    "others": "was computed with other runs than its arguments name",
}
"""Attributes that name a result: its run, the rounds that it was computed from (`RunFiles.head`), the analysis, its
arguments, the user's own task and metrics, and identity and rounds of other runs that the arguments name ("" for none).
Each with what is said where it is another one."""


def complaint(ds: xr.Dataset, path: Path, identity: str, heads: Collection[str]) -> str:
    """Why a stored result is not one of a run, or not the one that its path names; "" if it is.

    Args:
        ds: The result.
        path: Where it is stored.
        identity: Of the run.
        heads: What names the rounds from which it may have been computed; none if that is not known.
    """
    stated = {name: str(ds.attrs.get(name, "")) for name in NAMES}
    head = stated["head"] if not heads or stated["head"] in heads else "another"
    if what := _difference(ds, {**stated, "identity": identity, "head": head}):
        return what
    return "" if path.name == _file_name(stated) else f"holds the result {_file_name(stated)}; it was renamed or copied"


def _difference(ds: xr.Dataset, identity: dict[str, str]) -> str:
    for name, what in NAMES.items():
        if (stated := str(ds.attrs.get(name, ""))) != identity[name]:
            return what.format(stated=stated or "none", wanted=identity[name])
    return ""


def _partial(run: Run, analysis: Callable[..., xr.Dataset], text: str) -> OwnPartial:
    """Where the result of an analysis with these arguments is stored."""
    task = "" if run.context.user_task is None else run.context.user_task.fingerprint
    named = [f"{usual}={name}" for usual, name in sorted(run.metric_names.items())]
    user = " ".join([task, *(f"{metric.name} {metric.digest}" for metric in run.context.metrics), *named]).strip()
    values = (run.identity, run.head, stored_name(analysis), text, user, others_text(run, json.loads(text)))
    identity = dict(zip(NAMES, values, strict=True))
    path = run.folder / "results" / _file_name(identity)
    files.require_inside(path, run.folder)
    return OwnPartial(path, identity)


def others_text(run: Run, arguments: Mapping[str, Any]) -> str:
    """Identity and rounds of the other runs that arguments name, as JSON; "" for none.

    Raises:
        LookupError: If one of them is damaged.
    """
    others = {name: type(run)(folder) for name, folder in named_in(run.folder.resolve().parent, arguments).items()}
    stated = {name: [other.identity, other.head] for name, other in others.items()}
    return json.dumps(stated, sort_keys=True) if stated else ""


def _file_name(identity: dict[str, str]) -> str:
    """Name of the analysis, and ten digits of a digest of all that names a result."""
    digest = hashlib.sha256(json.dumps([identity[name] for name in NAMES]).encode()).hexdigest()[:10]
    return f"{outside.file_text(identity['computed'].split()[0].rpartition('.')[2], digest)}.nc"


def _announce(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> None:
    if run.context.announce is not None and (effort := estimated_effort(run, analysis, arguments)) is not None:
        run.context.announce(f"{analysis.__name__} of {run.name}: {effort}")


@stated.states_statistics
def estimated_effort(run: Run, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> Any:
    """What the function of the analysis's name and `_effort` in its module says (an `Effort`); None without one."""
    estimate = getattr(sys.modules[analysis.__module__], f"{analysis.__name__}_effort", None)
    return None if estimate is None else estimate(run, **arguments)


def arguments_text(run: Run, analysis: Any, arguments: dict[str, Any]) -> str:
    """All arguments of a call, defaults included, as JSON."""
    if not callable(analysis):  # a name, for example
        named = plugins.unknown("analysis", str(analysis), registered())
        likely = f"did you mean drift.{analysis}?" if analysis in registered() else named
        raise TypeError(f"cached takes a function, as in run.cached(drift.coherence), not {analysis!r}; {likely}")
    _, *parameters = inspect.signature(analysis).parameters.values()
    accepted = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    if unknown := [] if len(accepted) < len(parameters) else [name for name in arguments if name not in accepted]:
        raise TypeError(plugins.unknown(f"argument of {analysis.__name__}", unknown[0], accepted))
    bound = inspect.signature(analysis).bind(run, **arguments)
    bound.apply_defaults()
    _, *rest = bound.arguments.items()
    return json.dumps({name: value for name, value in rest if name not in NOT_IN_KEY}, sort_keys=True, default=_plain)


NOT_IN_KEY = ("partial", "workers", "memory")
"""Arguments excluded from the cache key: results depend on them by rounding only."""


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray | Tensor):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(
        f"an argument is a {type(value).__name__}; cached results take numbers, texts and lists of these. "
        "Call the analysis itself instead of run.cached."
    )


def _complete(partial: netcdf_files.Partial) -> xr.Dataset | None:
    return known if (known := partial.known()) is not None and known.attrs.get("complete") == 1 else None


_SECOND = "basin_rounds client_span coherence counterfactual density_rounds hessian_density product_gap"
_SECOND += " training_cost update_change"
_THIRD = dict.fromkeys(("averaging_gap", "noise_or_drift", "update_causes"), "3") | {"drift_curvature": "5"}
REVISION = dict.fromkeys(_SECOND.split(), "2") | _THIRD | {"early_warning": f"2 {calibration()['digest']}"}
"""Revision of analyses that compute something else now; results of earlier revisions are not read."""


def stored_name(analysis: Callable[..., Any]) -> str:
    """The name under which results are stored: the public name, else module and name; of outside code with a digest."""
    name = analysis.__qualname__
    if analysis.__module__.startswith("drift."):
        public = name if name in drift.__all__ else f"{analysis.__module__}.{name}"
        return f"{public} {REVISION[name]}" if name in REVISION else public
    return f"{analysis.__module__}.{name} {digest(analysis)}"
