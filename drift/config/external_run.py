"""What was told of a run that another program trained, in place of settings that are not known here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from drift.config import method as methods
from drift.config.method import Method
from drift.config.migrations import migrated
from drift.partitions import Partitioner

UNKNOWN = "not said"


class ToldMethod(Method):
    """A method of which the name is all that is known; it cannot train."""

    public: ClassVar[str] = "told"
    called: str = UNKNOWN

    @property
    def label(self) -> str:
        """What it was called; the name of the built-in method where it is one's, as FedProx is fedprox."""
        plain = self.called.lower()
        return plain if plain in methods.names() else self.called

    def local(self, client: Any) -> NoReturn:
        """Refused.

        Raises:
            LookupError: Always.
        """
        raise LookupError("the run was trained by another program: its method and local settings are not known here.")


class ToldPartition(Partitioner):
    """A partition of which the name is all that is known."""

    public: ClassVar[str] = "told"
    called: str = UNKNOWN

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> NoReturn:
        """Refused.

        Raises:
            LookupError: Always.
        """
        raise LookupError("who holds which samples is not known; give it by parts, or --set clients.partition=NAME.")


class UnknownParts(Sequence[np.ndarray]):
    """Parts of a run of which nobody said who holds which samples."""

    def __len__(self) -> NoReturn:
        raise LookupError(
            "who holds which samples is not known; give it beside the task: drift.open(folder, task=task, parts=...), "
            "the sample numbers of each client."
        )

    def __getitem__(self, index: Any) -> NoReturn:
        len(self)
        raise IndexError(index)


def completed(about: Mapping[str, Any]) -> dict[str, Any]:
    """The experiment in a run.json, with what was told of an imported run in place of defaults that nobody said."""
    content = migrated(about)
    if not about.get("imported"):
        return content
    told, missing = about.get("told", {}), [str(text) for text in about.get("unknown") or ()]
    default = "method" not in content or _name(content["method"]) == "fedavg"
    if "method" in told:
        content["method"] = ToldMethod(called=str(told["method"]))
    elif default and any(text.startswith("method") for text in missing):
        content["method"] = ToldMethod()
    clients = dict(content["clients"])
    if "partition" in told:
        clients["partition"] = ToldPartition(called=str(told["partition"]))
    elif any(text.startswith("partition") for text in missing):
        clients["partition"] = ToldPartition()
    content["clients"] = clients
    if isinstance(told.get("seed"), int):
        content["seed"] = told["seed"]
    return content


def seed_of(about: Mapping[str, Any], seed: int) -> int | None:
    """The seed of a run; None where another program trained it and nobody said."""
    unsaid = about.get("imported") and "seed" not in about.get("told", {}) and not seed
    return None if unsaid else seed


def _name(table: Any) -> Any:
    return table.get("name") if isinstance(table, dict) else table
