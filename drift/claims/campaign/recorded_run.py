"""A finished run as its file keeps it: settings, numbers of every round, and the results that claims read."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import xarray as xr

from drift.claims.campaign import derived, series
from drift.runs import cache
from drift.runs.context import Context
from drift.runs.described_run import DescribedRun
from drift.runs.metrics import number_attributes


@dataclass(frozen=True)
class RecordedRun(DescribedRun):
    """A finished run as its file keeps it (content, path): what claims and series need, without models or data."""

    content: Mapping[str, Any]
    path: Path

    context = Context()
    without_data = True

    @property
    def folder(self) -> Path:
        """Its file, which stands for the folder that a run on disk has."""
        return self.path

    @property
    def name(self) -> str:
        """Folder name of the run."""
        return str(self.content["name"])

    @property
    def source(self) -> Path:
        """Its file."""
        return self.path

    @property
    def about(self) -> Mapping[str, Any]:
        """Experiment, label and versions."""
        return self.content

    @property
    def plan(self) -> str:
        """Digest of the item that it was trained for, or ""."""
        return str(self.content.get("plan", ""))

    @property
    def diverged(self) -> bool:
        """Whether no finite model was left after the last of its rounds."""
        return bool(self.content.get("diverged", False))

    @property
    def committed(self) -> int:
        """Number of its rounds."""
        return int(self.content["rounds"])

    def rounds(self) -> list[int]:
        """Indices of its rounds, ascending."""
        return list(range(self.content["rounds"]))

    def require_round(self, index: int) -> int:
        """Number of one of its rounds; negative indices count from the last.

        Raises:
            LookupError: If it has no such round.
        """
        if not -len(self.rounds()) <= index < len(self.rounds()):
            raise LookupError(f"run {self.name} has no round {index}; it has 0 to {len(self.rounds()) - 1}.")
        return self.rounds()[index]

    def _nothing(self, *_: Any, **__: Any) -> Any:
        raise LookupError(
            f"{self.path.name} has the numbers of run {self.name}, not its models and data; train it again: fedscape "
            "reproduce --files NEW_FOLDER."
        )

    def cohorts(self) -> dict[int, str]:
        """Refused: a file has no cohorts.

        Raises:
            LookupError: Always.
        """
        raise LookupError(f"{self.path.name} has no cohorts to compare; leave out the reference.")

    def with_progress(self, *_: Any) -> Self:
        """The run itself, which computes nothing."""
        return self

    round = with_measures = with_metric_names = without_models = models = client = client_samples = parts_in = _nothing
    dataset = task = parts = labels = layout = property(_nothing)

    def numbers_of(self, indices: Sequence[int]) -> list[Mapping[str, float]]:
        """Stored numbers of these rounds, by name; rounds in which none was measured are left out."""
        metrics = self.metrics()
        rows = metrics.sel(round=metrics["round"].isin(list(indices))).to_dataframe()
        return [row.dropna().to_dict() for _, row in rows.iterrows()]

    def metrics(self) -> xr.Dataset:
        """Every metric over the rounds at which any was measured; NaN where one was not."""
        with self._sound():
            metrics = series.as_metrics(self.content, _numbers)
        named = {name: values.assign_attrs(number_attributes(str(name), "nats")) for name, values in metrics.items()}
        return metrics.assign(named)

    def numbers(self) -> xr.Dataset:
        """The same as `metrics`."""
        return self.metrics()

    def series(self) -> xr.Dataset:
        """Means of blocks of rounds over `round`, the first of each; attribute block: rounds in it, 1 up to 300."""
        with self._sound():
            return series.as_blocks(self.content, _numbers).assign_attrs(block=self.content["block"])

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Refuse a damaged file in one line, by an error that is neither of a missing result nor of a claim."""
        try:
            yield
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as reason:
            what = f"{type(reason).__name__}: {str(reason).partition(chr(10))[0]:.60}"
            raise OSError(f"{self.path} is damaged ({what}); restore or delete it.") from reason

    def cached(self, analysis: Callable[..., xr.Dataset], **arguments: Any) -> xr.Dataset:
        """The stored result of an analysis; some with default options come from the series (`series`, `derived`).

        Raises:
            LookupError: If the file holds none; the run's folder is needed then.
        """
        name, results = analysis.__name__, self.content["results"]
        with self._sound():
            for same in (arguments, *self._counted_back(arguments)):
                if (stored := results.get(stored_key(self, analysis, same))) is not None:
                    return _dataset(stored)
            usual = {name: known.default for name, known in inspect.signature(analysis).parameters.items()}
            changed = {option: value for option, value in arguments.items() if usual.get(option) != value}
            dataset = None if changed else series.as_analysis(self.content, name, _numbers)
            follows = name in derived.DERIVED and changed.keys() <= {"detectors"}
            numbers = (self._every_round(), self._losses()) if follows else ()
        if follows:
            dataset = derived.DERIVED[name](self, *numbers, **changed)
        if dataset is not None:
            return dataset
        known = name in series.ANALYSES or any(key.startswith(f"{name} ") for key in results)
        first = (inspect.getdoc(analysis) or name).partition("\n")[0].rstrip(".")
        what = "with these options" if known else f"({first[:1].lower()}{first[1:]})"
        raise LookupError(f"{self.path.name} holds no {name} {what}; give the folder of run {self.name}")

    def _counted_back(self, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The arguments with -1 for the last round, where that round kept all of its models."""
        last = self.committed - 1
        complete = all(self.kept(what)[-1:] == [last] for what in ("globals", "clients"))
        return [{**arguments, "round": -1}] if complete and arguments.get("round") == last else []

    def _every_round(self) -> Mapping[str, np.ndarray]:
        """Series with a number of each round, by name; none in a file with means over several rounds."""
        if self.content["block"] > 1:
            return {}
        weights = self.content["results"].get("aggregation_weights {}")
        gamma = {} if weights is None else {"gamma": _dataset(weights)["gamma"].values}
        return {name: _numbers(values) for name, values in self.content["blocks"].items()} | gamma

    def _losses(self) -> Mapping[int, float]:
        """Test losses by the rounds at which they were measured."""
        metrics = self.metrics()
        return metrics["loss"].dropna("round").to_series().to_dict() if "loss" in metrics else {}


def stored_key(run: Any, analysis: Callable[..., xr.Dataset], arguments: dict[str, Any]) -> str:
    return f"{analysis.__name__} {cache.arguments_text(run, analysis, arguments)}"


def _dataset(stored: Mapping[str, Any]) -> xr.Dataset:
    variables = {
        name: (entry["dims"], _numbers(entry["values"]), entry["attrs"]) for name, entry in stored["variables"].items()
    }
    return xr.Dataset(variables).set_coords(stored["coords"])


def _numbers(values: Any) -> np.ndarray:
    """Values of a file as an array; null is NaN. ValueError if there is text among numbers."""
    array = np.asarray(values)
    plain = array.dtype.kind in "bif" or {*map(type, np.asarray(values, dtype=object).flat)} == {str}
    return array if plain else np.asarray(values, dtype=object).astype(np.float64)
