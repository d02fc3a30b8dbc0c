"""The plan of a campaign: its runs, their claims, cost and order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from drift.analyses.over_seeds import VERDICT
from drift.plugins.toml_models import Entry, read_toml
from drift.store.digests import json_digest
from landscape.plugins import unknown

if TYPE_CHECKING:
    from drift.config.experiment import Experiment


class PlanRow(Entry):
    """Runs of one method of an item, one per seed."""

    set: tuple[str, ...] = Field(description="settings added to the item's, KEY=VALUE, the method first")
    seeds: int = Field(ge=1, description="number of seeds, counted from the item's first_seed")
    minutes: float = Field(gt=0, description="core-minutes of one run, measured on the processor that the plan names")


class PlanItem(Entry):
    """A table or figure of a paper: a preset, the rows that are compared on it, and the claims that they bear on."""

    name: str = Field(pattern=r"^[a-z0-9-]+$")
    paper: str
    item: str = Field(description="as the paper calls it")
    value: float = Field(gt=0, description="worth of one seed of all rows; runs are ordered by value per core-hour")
    experiment: str
    set: tuple[str, ...] = ()
    reason: str = Field("", description="where the setting differs from the paper's: how, and why")
    prepare: str = Field("", description="command to run once before the item, where runs start from a checkpoint")
    original: tuple[str, ...] = Field((), description="the paper's setting: a preset, then changes KEY=VALUE of it")
    claims: tuple[str, ...] = Field((), description="names of `fedscape claims`")
    printed: dict[str, float] = Field({}, description="effect that the paper prints, by claim, in the claim's unit")
    first_seed: int = Field(0, ge=0)
    rows: tuple[PlanRow, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _departures_have_reasons(self) -> PlanItem:
        if self.set and not self.reason:
            raise ValueError(f"{self.name} changes its preset ({', '.join(self.set)}); give a reason.")
        return self

    @model_validator(mode="after")
    def _printed_are_claims(self) -> PlanItem:
        if strange := sorted(set(self.printed) - set(self.claims)):
            raise ValueError(f"{self.name} has printed effects of {', '.join(strange)}, which are not claims of it.")
        return self

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def units(self) -> list[list[Unit]]:
        """Its runs, by seed; kept, as each looks up its identity once."""
        seeds = range(max(row.seeds for row in self.rows))
        return [[Unit(self, row, self.first_seed + seed) for row in self.rows if seed < row.seeds] for seed in seeds]

    @cached_property
    def digest(self) -> str:
        """Of all that is fixed before its runs begin: settings, seeds, the paper's, how claims are measured and judged.

        Worth, minutes and reason are left out. The file of a run states it, so that a later change shows. What stands
        behind "-" is of the measures and the runs that they select; files of an earlier version lack it.
        """
        from drift.claims import claims, questions

        asked = {claim.name: claim for claim in (*claims(), *questions())}
        about = ("name", "item", "statement", "effect", "unit", "test", "margin")
        content = {
            "runs": [(identity(self.trained(row)), row.seeds) for row in self.rows],
            "paper": (self.paper, self.item, self.original, sorted(self.printed.items())),
            "claims": [[getattr(asked[name], field) for field in about] for name in self.claims if name in asked],
        }
        how = [asked[name].how for name in self.claims if name in asked]
        return f"{json_digest(content)[:16]}-{json_digest(how)[:8]}"

    def trained(self, row: PlanRow, seed: int | None = None) -> Experiment:
        """The experiment of a row, of the first seed by default; a checkpoint to start from need not be there."""
        from drift.config.load import read

        texts = [*self.set, *row.set]
        if any(text.partition("=")[0].strip() in ("init", "init.path") for text in texts):
            texts.append("init.digest=any")  # stands for that of the file, which is not read then
        return read(self.experiment, *texts, seed=self.first_seed if seed is None else seed)


@dataclass(frozen=True, eq=False)
class Unit:
    """One run of the plan; two are the same if they are one object, as an item keeps its own.

    Args:
        item: The item that it belongs to.
        row: Its row.
        seed: Its seed.
    """

    item: PlanItem
    row: PlanRow
    seed: int

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that it trains.

        Raises:
            LookupError: If the item starts from a checkpoint that is not there yet; names the command that makes it.
        """
        from drift.config.load import read

        try:
            return read(self.item.experiment, *self.item.set, *self.row.set, seed=self.seed)
        except LookupError as reason:
            if not self.item.prepare:
                raise
            raise LookupError(f"{self.item.name} starts from a checkpoint; make it by: {self.item.prepare}") from reason

    @cached_property
    def identity(self) -> str:
        """`identity` of its experiment."""
        return identity(self.item.trained(self.row, self.seed))


class Plan(Entry):
    """All items of a campaign, and the processor on which their minutes were measured."""

    processor: str
    items: tuple[PlanItem, ...]

    @model_validator(mode="after")
    def _names_differ(self) -> Plan:
        names = [item.name for item in self.items]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two items are called {', '.join(twice)}; give each its own name.")
        return self

    def of_items(self, papers: Sequence[str] = (), names: Sequence[str] = ()) -> Plan:
        """The items of some papers and of some names; of all where none is named.

        Raises:
            ValueError: If the plan has no item of a paper or of a name.
        """
        known = {"paper": {item.paper for item in self.items}, "item": {item.name for item in self.items}}
        for what, asked in (("paper", papers), ("item", names)):
            for entry in set(asked) - known[what]:
                raise ValueError(unknown(what, entry, sorted(known[what]), listed="fedscape reproduce --list"))
        items = (item for item in self.items if not papers or item.paper in papers)
        return self.model_copy(update={"items": tuple(item for item in items if not names or item.name in names)})

    def sets(self) -> list[list[Unit]]:
        """Paired sets in the order in which they are trained: all rows of an item with one seed.

        They are ordered by value per core-hour; from the fourth seed on the value is that of the item times
        VERDICT / (number of the seed), as later seeds only narrow the interval.
        """
        sets: list[tuple[float, int, list[Unit]]] = []
        for index, item in enumerate(self.items):
            for number, units in enumerate(item.units, start=1):
                sets.append((-item.value * min(1.0, VERDICT / number) / hours(units), index, units))
        return [units for _, _, units in sorted(sets, key=lambda entry: entry[:2])]


def load(path: str | Path) -> Plan:
    """The plan of a TOML file.

    Raises:
        LookupError: If there is no such file.
        ValueError: If it is wrong; what and where.
    """
    path = Path(path)
    if not path.is_file():
        raise LookupError(f"there is no plan {path}; give the path of a TOML file (--plan FILE).")
    return read_toml(path, Plan)


def identity(experiment: Experiment) -> str:
    """Settings of a run as text, without what changes no number of it: how much is stored, and where it trains.

    A checkpoint that it starts from counts by its file name: the plan knows how it is made, not what comes out. Later
    settings count where they differ from their defaults, so that they leave the digests of plans as they are.
    """
    from drift.config.identity import identifying  # with torch, which names of papers do not need

    content = {name: value for name, value in identifying(experiment).items() if name not in ("keep", "device", "init")}
    if experiment.init is not None:
        content["init"] = Path(experiment.init.path).name
    return json.dumps(content, sort_keys=True)


def portable(experiment: Experiment) -> dict[str, Any]:
    """Every setting, for JSON; a checkpoint to start from without the folder in which a machine has it."""
    content = experiment.resolved()
    if content["init"] is not None:
        content["init"]["path"] = Path(content["init"]["path"]).name
    return content


def hours(units: Iterable[Unit]) -> float:
    """Core-hours of runs, as the plan states them."""
    return sum(unit.row.minutes for unit in units) / 60
