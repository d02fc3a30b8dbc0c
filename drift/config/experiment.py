"""Experiments: all settings of a run, as frozen pydantic models that are read from TOML."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

import torch
from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator
from torch import Tensor

from drift import partitions
from drift.config import method as methods
from drift.config.identity import identifying
from drift.config.method_values import Beta, Share
from drift.partitions._partitioner import NamedPartition
from drift.plugins import tables
from drift.plugins.reserved_names import USER_TASK, require_free
from drift.plugins.strict_numbers import StrictNumbers
from drift.store.keep import Keep
from landscape import plugins
from landscape.plugins import outside
from landscape.results.notebook_table import notebook_table


class SettingsTable(StrictNumbers):
    """A frozen table of settings in which an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TaskSettings(SettingsTable):
    """Data and model: dataset, scale of pixels, architecture, and their options."""

    dataset: str
    model: str
    scale: Literal["default", "unit", "half", "standard"] = "default"
    train_samples: int | None = Field(None, gt=0, description="train on a stratified subset of this size")
    test_samples: int | None = Field(None, gt=0, description="test on a stratified subset of this size")
    classes: tuple[int, ...] | None = Field(
        None, min_length=2, description="train and test on these classes alone, numbered anew in this order"
    )
    freeze_backbone: bool = Field(False, description="train the head only, whatever the method (LSS-10)")
    dataset_options: dict[str, Any] = Field(default_factory=dict)
    model_options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("dataset", "model")
    @classmethod
    def _is_known(cls, name: str, info: ValidationInfo) -> str:
        kind = str(info.field_name)
        return name if name == USER_TASK else plugins.recorded_name(f"landscape.{kind}s", name, kind)

    @model_validator(mode="after")
    def _options_are_no_settings(self) -> TaskSettings:
        require_free("dataset_options", self.dataset_options)
        require_free("model_options", self.model_options)
        return self


def partition_gathered(clients: dict[str, Any]) -> dict[str, Any]:
    """The settings of clients with what stands beside the name of their partition in its table."""
    table = {"name": clients["partition"]} if isinstance(clients["partition"], str) else clients["partition"]
    options = set(partitions.load(str(table.get("name"))).model_fields) - set(Clients.model_fields)
    gathered = {key: value for key, value in clients.items() if key in options}
    rest = {key: value for key, value in clients.items() if key not in options}
    return {**rest, "partition": {**table, **gathered}}


class Clients(SettingsTable):
    """Clients: their number K, the number per round, and the partition of the data."""

    number: int = Field(10, gt=0, le=1_000_000)  # a bound for settings from outside
    per_round: int = Field(10, gt=0)
    partition: NamedPartition
    partition_seed: int | None = Field(None, description="seed of the partition; the experiment's seed when absent")
    valid_ratio: float = Field(0.0, ge=0, lt=1, description="held out of each client's data; weights use the full size")
    weighting: Literal["samples", "uniform"] = "samples"
    train_all: bool = Field(False, description="train every client each round, aggregate the cohort only (FMA-2)")
    corrupted: float | tuple[int, ...] = Field(
        0.0, description="clients with two of their labels swapped: a share of all, or their numbers (FedLAW, Table 8)"
    )

    work: tuple[Share, Share] = Field((1.0, 1.0), description="shares of the local steps between which a client draws")
    stops: float = Field(0.0, ge=0, lt=1, description="chance that a client stops in a round and sends nothing")
    late: int = Field(0, ge=0, le=100, description="rounds that a client is late at most: it started that much earlier")

    @model_validator(mode="before")
    @classmethod
    def _partition_options_beside_its_name(cls, values: Any) -> Any:
        """`partition = "dirichlet", concentration = 0.1` means `partition = {name = ..., concentration = ...}`."""
        named = isinstance(values, dict) and isinstance(values.get("partition"), str | dict)
        return partition_gathered(values) if named else values

    @field_validator("corrupted", mode="before")
    @classmethod
    def _share_or_numbers(cls, value: Any) -> Any:
        share = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
        numbers = isinstance(value, list | tuple) and all(type(client) is int for client in value)
        if not share and not numbers:
            raise ValueError(f"{value!r} is neither a share of the clients, 0 to 1, nor a list of client numbers.")
        return value or 0.0

    @model_validator(mode="after")
    def _options_fit(self) -> Clients:
        if self.per_round > self.number:
            raise ValueError(f"per_round is {self.per_round} but there are only {self.number} clients; lower it.")
        if self.work[0] > self.work[1]:
            raise ValueError(f"work is {list(self.work)}; give the smaller share first, as in [0.2, 1.0].")
        if isinstance(self.corrupted, tuple):
            wrong = [client for client in self.corrupted if not 0 <= client < self.number]
            if wrong or len(set(self.corrupted)) < len(self.corrupted):
                raise ValueError(
                    f"corrupted is {list(self.corrupted)}; give different client numbers from 0 to {self.number - 1}."
                )
        if self.corrupted and self.partition.moves:
            raise ValueError(
                f"corrupted is {self.corrupted}, and the partition redistributes the data of the cohort each round, so "
                "that no client has data of its own; leave corrupted out."
            )
        return self


class Local(SettingsTable):
    """Local training: optimiser, learning rate, epochs over the client's data (or steps), batch size."""

    optimizer: Literal["sgd", "adam"] = "sgd"
    lr: float = Field(0.01, gt=0)
    lr_decay: float = Field(1.0, gt=0, le=1, description="the rate is multiplied by this every round")
    momentum: float = Field(0.9, ge=0, lt=1)
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    weight_decay: float = Field(0.0, ge=0)
    epochs: int = Field(5, gt=0)
    steps: int | None = Field(None, gt=0, description="minibatch steps instead of epochs")
    batch: int = Field(50, gt=0)
    drop_last: bool = False
    persist_optimizer: bool = Field(False, description="clients keep their moments between rounds")
    compress: Literal["none", "top-k", "8-bit"] = Field("none", description="how clients compress their update")
    topk: Share = Field(0.1, description="share of the entries that top-k sends")


class Proxy(SettingsTable):
    """The server's proxy set: class-balanced, moved from the test set."""

    per_class: int = Field(10, gt=0)
    long_tail: float | None = Field(None, ge=1, description="ratio of the largest to the smallest class")


class Init(SettingsTable):
    """A checkpoint that training starts from in place of random values; `init = "path"` is short for its path.

    The digest is filled in when the experiment is read. It is part of the run's identity, the path is not.
    """

    path: str = Field(description="a state dict (.pt, .pth, .safetensors) or the folder of a run (its last model)")
    head: Literal["kept", "new"] = Field("kept", description="new: the head starts random, as for other classes")
    digest: str | None = Field(None, description="first 16 digits of the SHA-256 of its tensors")

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, values: Any) -> Any:
        return {"path": values} if isinstance(values, str) else values


class Experiment(SettingsTable):
    """All settings of a run; their hash is the run's identity."""

    rounds: int = Field(gt=0)
    seed: int = Field(0, ge=0)
    task: TaskSettings
    clients: Clients
    method: methods.NamedMethod = Field(default_factory=lambda: methods.load("fedavg")())
    local: Local = Local()
    keep: Keep = Keep()
    proxy: Proxy | None = None
    init: Init | None = Field(None, description="checkpoint to start from, as fedscape pretrain makes one")
    evaluate_every: int = Field(1, gt=0, description="rounds between evaluations on the test set")
    threads: int = Field(1, gt=0, le=1024, description="torch threads; the same bits need the same number")
    engine: Literal["serial", "batched", "auto"] = Field(
        "serial", description="one client after the other, the cohort at once, or the faster one by two timed steps"
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="where clients train; auto: a GPU that agrees with the CPU"
    )

    @model_validator(mode="after")
    def _method_fits(self) -> Experiment:
        if self.method.needs_proxy and self.proxy is None:
            raise ValueError(
                f"method {self.method.name()} learns on a proxy set and none is given; set proxy.per_class=10."
            )
        if self.clients.late and self.method.sends:
            raise ValueError(f"{self.method.name()} sends {self.method.sends} of one round alone; set clients.late=0.")
        self.method.check(self)
        return self

    def model_copy(self, *, update: Any = None, deep: bool = False) -> Experiment:
        """A copy with other values, which are checked as all are: an experiment is one that can be trained."""
        return type(self)(**{**dict(self), **(update or {})})

    def __repr__(self) -> str:
        """One line: the name of its run."""
        return f"Experiment({self.slug})"

    def _repr_html_(self) -> str:
        """A small table for notebooks: the name of its run, and the settings that differ from their defaults."""
        settings = self.model_dump(mode="json", exclude_defaults=True)
        settings["method"] = {"name": self.method.name(), **settings.get("method", {})}
        return notebook_table(repr(self), settings)

    def resolved(self) -> dict[str, Any]:
        """Every setting with its value, for JSON."""
        return self.model_dump(mode="json")

    def cohort_weights(self, sizes: Tensor) -> Tensor:
        """Weights (m,) of the clients of a round, float64; they sum to 1.

        They are proportional to the numbers of samples, or equal where `clients.weighting` is "uniform". A client
        without samples has weight 0; where no client has any, all weights are equal.

        Args:
            sizes: Training samples of each client, shape (m,).
        """
        weights = sizes.double() if self.clients.weighting == "samples" else (sizes > 0).double()
        if not bool(weights.any()):
            weights = torch.ones(len(sizes), dtype=torch.float64)
        return weights / weights.sum()

    @property
    def hash(self) -> str:
        """Eight hexadecimal digits that identify the settings (`drift.config.identity`)."""
        text = json.dumps(_without_folders(identifying(self)), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def slug(self) -> str:
        """Short readable name of a run of this experiment, with the hash."""
        names = self.method.name(), self.task.dataset, tables.name(self.clients.partition)
        return outside.file_text(*names, f"s{self.seed}", self.hash).replace("_", "-")


def _without_folders(content: Any) -> Any:
    """Settings with files of code from outside named without their folders, which are no part of the identity."""
    if isinstance(content, dict):
        return {key: _without_folders(value) for key, value in content.items()}
    has_path = isinstance(content, str) and ".py:" in content
    return outside.portable(content) if has_path else content
