"""Runs of other programs: stated descriptions in place of unknown settings, in the experiment of a run.json."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
from pydantic import Field

from drift.config import method as methods
from drift.config.method import Method
from drift.config.without_code import readable
from drift.partitions import Partitioner
from drift.plugins.reserved_names import UNKNOWN, USER_TASK
from drift.plugins.tables import table_name

NOT_KNOWN = "the run was trained by another program: its method and local settings are not known here"


class ExternalMethod(Method):
    """A method of another program, of which name and settings are known as far as stated; it cannot train."""

    public: ClassVar[str] = "told"
    called: str = UNKNOWN
    settings: dict[str, Any] = Field(default_factory=dict)
    """What was said about its settings."""

    @property
    def label(self) -> str:
        """Its name; that of the built-in method if there is one, so that FedProx is fedprox."""
        plain = self.called.lower()
        return plain if plain in methods.names() else self.called

    def local(self, client: Any) -> NoReturn:
        """Raise LookupError."""
        raise LookupError(f"{NOT_KNOWN}.")


class ExternalPartition(Partitioner):
    """A partition of another program, known by name only."""

    public: ClassVar[str] = "told"
    called: str = UNKNOWN

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> NoReturn:
        """Raise LookupError."""
        raise LookupError("it is not known which client has which samples; give parts or --set clients.partition=NAME.")


class UnknownParts(Sequence[np.ndarray]):
    """Parts of a run that does not state which client holds which samples."""

    def __len__(self) -> NoReturn:
        raise LookupError(
            "it is not known which client has which samples; give the sample numbers of each client with the "
            "task: drift.open(folder, task=task, parts=...)."
        )

    def __getitem__(self, index: Any) -> NoReturn:
        len(self)
        raise IndexError(index)


def complete_experiment(about: Mapping[str, Any]) -> dict[str, Any]:
    """The experiment in a run.json, read without code that is absent or not trusted (`drift.config.without_code`).

    In an imported run, stated descriptions replace settings that are defaults.
    """
    content = readable(about.get("experiment", {}), about.get("hooks"))
    if not about.get("imported"):
        return content
    stated, missing = about.get("told", {}), [str(text) for text in about.get("unknown") or ()]
    settings = stated.get("settings", {})
    default = "method" not in content or table_name(content["method"]) == "fedavg"
    if "method" in stated:
        content["method"] = ExternalMethod(called=str(stated["method"]), settings=settings)
    elif default and any(text.startswith("method") for text in missing):
        content["method"] = ExternalMethod(settings=settings)
    if "data" in stated and content["task"]["dataset"] == USER_TASK:
        content["task"] = {**content["task"], "dataset_options": {"called": str(stated["data"])}}
    clients = dict(content["clients"])
    if "partition" in stated:
        clients["partition"] = ExternalPartition(called=str(stated["partition"]))
    elif any(text.startswith("partition") for text in missing):
        clients["partition"] = ExternalPartition()
    content["clients"] = clients
    if isinstance(stated.get("seed"), int):
        content["seed"] = stated["seed"]
    return content


def seed_of(about: Mapping[str, Any], seed: int) -> int | None:
    """The seed of a run; None for a run of another program that does not state it."""
    unknown = about.get("imported") and "seed" not in about.get("told", {}) and not seed
    return None if unknown else seed
