"""The settings of an item of a plan beside those of its paper, read from both experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drift.claims.campaign.plan import PlanItem, PlanRow, portable
from drift.config.experiment import Experiment
from drift.config.load import read
from landscape.results.parsed_text import dotted

ALWAYS = (
    "task.dataset",
    "task.model",
    "task.train_samples",
    "clients.number",
    "clients.per_round",
    "clients.partition.name",
    "clients.partition.shards",
    "clients.partition.concentration",
    "clients.valid_ratio",
    "rounds",
    "local.optimizer",
    "local.lr",
    "local.lr_decay",
    "local.momentum",
    "local.weight_decay",
    "local.epochs",
    "local.steps",
    "local.batch",
)
"""Settings that are compared also where both are equal; all others where they differ."""

CORE = (
    "task.dataset",
    "task.model",
    "clients.number",
    "clients.per_round",
    "clients.partition.name",
    "clients.partition.shards",
    "clients.partition.concentration",
    "rounds",
    "local.lr",
    "local.epochs",
    "local.steps",
    "local.batch",
)
"""Settings that stand in every table of docs/results-settings.md, also where both are equal."""

SILENT = ("keep", "device", "engine", "threads", "seed", "evaluate_every")
"""Tables and settings that change no number beyond its last digits, or only which numbers there are.

No paper states how often it evaluates.
"""


@dataclass(frozen=True)
class Setting:
    """One setting of an item.

    Args:
        name: As in an experiment, `local.lr`; with the method before it where it is of one method.
        paper, ours: Its value in the paper's setting and in the item; "-" where there is none.
    """

    name: str
    paper: str
    ours: str

    @property
    def differs(self) -> bool:
        """Whether the item departs from the paper."""
        return self.paper != self.ours


def of_item(item: PlanItem) -> list[Setting]:
    """Settings of an item beside its paper's: those of all of its rows, then what rows alone have.

    A setting that is the same in every row is stated once. An item without a paper's setting has none.

    Raises:
        ValueError: If a row cannot be set in the paper's experiment.
    """
    if not item.original:
        return []
    tables = {_title(row): (of_paper(item.paper, _paper(item, row)), flat(item.trained(row))) for row in item.rows}
    names = [name for both in tables.values() for side in both for name in side]
    result: list[Setting] = []
    for name in dict.fromkeys((*ALWAYS, *names)):
        cells = {title: (paper.get(name, "-"), ours.get(name, "-")) for title, (paper, ours) in tables.items()}
        values = set(cells.values())
        if values == {("-", "-")}:
            continue
        if len(values) == 1:
            (cell,) = values
            result += [Setting(name, *cell)] if name in ALWAYS or cell[0] != cell[1] else []
        else:
            differing = [Setting(f"{title}: {name}", *cell) for title, cell in cells.items() if cell[0] != cell[1]]
            result += differing or (_of_rows(name, {title: ours for title, (_, ours) in cells.items()}))
    return result


def _of_rows(name: str, values: Mapping[str, str]) -> list[Setting]:
    """One of ALWAYS that is the paper's in each row, but differs between them: what most have, then other methods.

    Where rows of one method differ, their values stand together.
    """
    usual = max(values.values(), key=list(values.values()).count)
    others = {title: value for title, value in values.items() if value != usual}
    if name not in ALWAYS:
        return []
    if any("=" in title for title in others):
        usual, others = " or ".join(sorted({*values.values()})), {}
    return [Setting(name, usual, usual), *(Setting(f"{title}: {name}", one, one) for title, one in others.items())]


def _paper(item: PlanItem, row: PlanRow) -> Experiment:
    name, *changes = item.original
    return read(name, *changes, *row.set)


def _title(row: PlanRow) -> str:
    return ", ".join(text.removeprefix("method=").removeprefix("clients.").removeprefix("method.") for text in row.set)


def of_paper(paper: str, experiment: Experiment) -> dict[str, str]:
    """The same of a preset of a paper, with what the paper prints where the preset follows the authors' code.

    LSS trains eight steps from a frozen model (section 4.1, algorithm 1), its code eight epochs from one that it trains
    (FMA-3, LSS-1). IMA takes the best mu of FedProx (papers.md 2.1); FedEve cites a partition per client (6.2).
    """
    content = flat(experiment)
    if paper == "lss":
        content["local.steps"] = "8"
        content.pop("local.epochs", None)
        content |= {"method.pool_init": "frozen"} if "method.pool_init" in content else {}
    if paper == "ima" and "fedprox" in experiment.method.label:
        content |= {name: "best of 0.1, 0.01, 0.001" for name in ("method.mu", "method.base.mu") if name in content}
    if paper == "fedeve" and content["clients.partition.name"] == "dirichlet":
        content["clients.partition.name"] = "dirichlet_clients"
    return content


def flat(experiment: Experiment) -> dict[str, str]:
    """Settings as text by dotted name, without those of SILENT, and without the epochs where steps are counted."""
    content = {name: value for name, value in portable(experiment).items() if name not in SILENT}
    if content["init"] is not None:
        content["init"].pop("digest")
    if content["local"]["steps"]:
        content["local"].pop("epochs")
    return {name: _text(value) for name, value in dotted(content).items() if value not in (None, [])}


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
