"""Any partitioner of the package flwr-datasets, by its name. Source: flower.ai/docs/datasets."""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from pydantic import Field

from drift.partitions._partitioner import Grouped, Groups, Parts, require_samples


class Partition(Grouped):
    """A partition by a partitioner of flwr-datasets, such as {name = "flwr", partitioner = "PathologicalPartitioner",
    arguments = {num_classes_per_partition = 2}}.

    It gets a table with the columns label, row and the groups of the dataset (domain, user, coarse). Of its
    arguments, `num_partitions` is K, `partition_by` the label and `seed` a random number of the experiment, unless
    `arguments` has them; so the same seed has the same parts. Needs the extra `flwr`.

    Args:
        partitioner: Name of a class in `flwr_datasets.partitioner`.
        arguments: Its further arguments.
    """

    partitioner: str = "IidPartitioner"
    arguments: dict[str, Any] = Field(default_factory=dict)

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None) -> Parts:
        require_samples(labels, clients)
        partitioner = self._build(clients, rng)
        order = rng.permutation(len(labels))  # as their FederatedDataset does, which shuffles first
        from datasets import Dataset

        further = {kind: numbers[order] for kind, numbers in (groups or {}).items()}
        partitioner.dataset = Dataset.from_dict({"label": labels[order], "row": order, **further})
        with _quiet():
            if partitioner.num_partitions != clients:
                raise ValueError(
                    f"{self.partitioner} has {partitioner.num_partitions} partitions, there are {clients} clients; set "
                    f"clients.number={partitioner.num_partitions}, or other arguments."
                )
            parts = [np.asarray(partitioner.load_partition(client)["row"], np.int64) for client in range(clients)]
        return [np.sort(numbers) for numbers in parts]

    def _build(self, clients: int, rng: np.random.Generator) -> Any:
        try:
            import flwr_datasets.partitioner as available
        except ModuleNotFoundError as reason:
            raise LookupError(
                f"partition flwr needs the package {reason.name!r}, which is not installed; install it with "
                'pip install "fedscape[flwr]".'
            ) from reason
        names = [name for name in available.__all__ if name != "Partitioner"]
        if self.partitioner not in names:
            raise ValueError(f"no partitioner named {self.partitioner!r} in flwr-datasets; known: {', '.join(names)}.")
        kind = getattr(available, self.partitioner)
        ours = {"num_partitions": clients, "partition_by": "label", "seed": int(rng.integers(2**31))}
        accepted = inspect.signature(kind).parameters
        arguments = {name: value for name, value in ours.items() if name in accepted} | self.arguments
        if unknown := [name for name in arguments if name not in accepted]:
            raise ValueError(f"{self.partitioner} has no argument {unknown[0]!r}; it accepts {', '.join(accepted)}.")
        try:
            return kind(**arguments)
        except TypeError as reason:
            raise ValueError(f"{self.partitioner} cannot be made of {arguments}: {reason}.") from reason


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars of the package datasets, and none of its warnings about what it calls in pyarrow."""
    import datasets

    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        if shown:
            datasets.enable_progress_bars()
