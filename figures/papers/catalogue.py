"""What the papers' files say, as frozen pydantic models."""

import re
from functools import cache
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from drift.plugins.toml_models import Entry, read_toml
from landscape import plugins

Grid = dict[str, list[Any]]
"""Values by setting, as `fedscape sweep --grid` crosses them; without an entry, one run."""

FOLDER = Path(__file__).resolve().parent


class PaperSetting(Entry):
    """One setting of an item: the preset with the paper's values and its quick variant."""

    experiment: str
    quick: str | None = None
    label: str = Field("", description="what columns call it; needed where an item has several settings")
    set: tuple[str, ...] = Field((), description="settings of its runs that change the preset, KEY=VALUE")
    quick_set: tuple[str, ...] | None = Field(None, description="in place of `set` in the quick variant")
    prepare: str = Field("", description="command that comes first where runs start from a checkpoint (init in a set)")

    def overrides(self, *, quick: bool) -> tuple[str, ...]:
        """Settings that change the preset, KEY=VALUE."""
        return self.quick_set if quick and self.quick_set is not None else self.set

    def started(self, *, quick: bool) -> bool:
        """Whether runs start from a checkpoint."""
        return any(text.partition("=")[0].partition(".")[0] == "init" for text in self.overrides(quick=quick))


class Number(Entry):
    """A cell of a table as the paper prints it."""

    row: str = Field(description="label of a run (fedavg, ima, fedprox+ima), or what the figure's option rows gives")
    column: str = Field("", description="label of the setting and values of the keys `over`, joined by comma and blank")
    value: float
    std: float | None = None
    units: str = Field("%", description="of value and std; % stands beside measured fractions")


class Item(Entry):
    """A figure or table of a paper."""

    item: str
    shows: str
    claim: str = ""
    figure: str
    options: dict[str, Any] = Field({})
    settings: tuple[PaperSetting, ...] = Field(min_length=1)
    grid: tuple[Grid, ...] = ({},)
    quick_grid: tuple[Grid, ...] | None = None
    quick_options: dict[str, Any] = Field({}, description="of the figure where a run is of a quick variant")
    numbers: tuple[Number, ...] = ()
    measured: tuple[str, ...] = Field((), description="items of `fedscape reproduce` whose runs stand in for its own")
    measured_options: dict[str, Any] = Field({}, description="of the figure where such runs are drawn")

    @model_validator(mode="before")
    @classmethod
    def _one_setting_in_short(cls, values: Any) -> Any:
        """What belongs to a setting and stands beside the item is its only setting."""
        if not isinstance(values, dict) or "experiment" not in values:
            return values
        if "settings" in values:
            raise ValueError("has both experiment and settings; give one of them.")
        only = {name: value for name, value in values.items() if name in PaperSetting.model_fields}
        return {**{name: value for name, value in values.items() if name not in only}, "settings": [only]}

    @field_validator("grid", "quick_grid", mode="before")
    @classmethod
    def _one_grid_in_short(cls, value: Any) -> Any:
        return (value,) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _many_settings_have_labels(self) -> Self:
        labels = [setting.label for setting in self.settings]
        if len(labels) > 1 and (not all(labels) or len(set(labels)) < len(labels)):
            raise ValueError(f"{self.item} has {len(labels)} settings; give each a label of its own.")
        return self

    @property
    def slug(self) -> str:
        """The item in file names, like fig6a or table1."""
        return re.sub(r"[^a-z0-9]", "", self.item.lower())

    def grids(self, *, quick: bool) -> tuple[Grid, ...]:
        """What is crossed in the paper's setting, or in its quick variant."""
        return self.quick_grid if quick and self.quick_grid is not None else self.grid


class Paper(Entry):
    """A paper's figures and tables in its order."""

    title: str
    items: tuple[Item, ...]

    def item(self, name: str) -> Item:
        """The item of a name such as "Fig. 6a" or "fig6a".

        Raises:
            ValueError: If there is none; lists what there is.
        """
        for entry in self.items:
            if name.lower() in (entry.item.lower(), entry.slug):
                return entry
        listed = "fedscape figures list --paper PAPER"
        raise ValueError(plugins.unknown("item of this paper", name, [item.slug for item in self.items], listed=listed))


def names() -> list[str]:
    """Papers whose items are known, by short name."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@cache
def load(name: str) -> Paper:
    """The items of a paper.

    Raises:
        ValueError: If there is no such paper, or its file is wrong.
    """
    if name not in names():
        raise ValueError(plugins.unknown("paper", name, names()))
    return read_toml(FOLDER / f"{name}.toml", Paper)


def of_figure(figure: str) -> list[str]:
    """Papers' items that a figure of the gallery draws, like "ima Fig. 6a"."""
    return [
        f"{name} {item.item}"
        for name in names()
        for item in load(name).items
        if item.figure.replace("_", "-") == figure.replace("_", "-")
    ]
