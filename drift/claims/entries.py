"""Claims as the papers' TOML files state them, one entry each, with the function that measures the effect."""

import inspect
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from drift.claims.claim import Claim, Effects, Test
from drift.claims.select_runs import extreme_effects, method_effects, of_variant, pair_effects
from drift.plugins.toml_models import Entry, read_toml
from drift.runs.run import Run

FOLDER = Path(__file__).resolve().parent


HOW = {"measure", "options", "methods", "over", "where", "variant"}
"""Fields that say how an effect is measured."""


class ClaimEntry(Entry):
    """A claim: its words, how it is judged, and what is measured on which runs."""

    name: str = Field(pattern=r"^[a-z0-9-]+$", description="short name, the paper first")
    item: str = Field(description="figure or table")
    statement: str = Field(description="the statement of the paper")
    effect: str = Field(description="what is measured, positive as claimed")
    unit: str
    test: Test = "more"
    margin: float | None = Field(None, gt=0, description="largest effect that counts as none, in the unit")
    across: bool = Field(False, description="whether several items of a campaign are judged together")
    section: str = Field("", description="of docs/findings.md")
    measure: str = Field(pattern=r"^\w+\.\w+$", description="FILE.FUNCTION in drift/claims")
    options: dict[str, Any] = Field({}, description="of the function, by name")
    methods: tuple[str, ...] = Field((), max_length=2, description="labels of runs that it is given; all if empty")
    over: str = Field("", description="setting: where it is smallest minus where it is largest, all else equal")
    where: str = Field("", pattern=r"^(\w+\.\w+)?$", description="FILE.FUNCTION that says whether a run suits")
    correlation: bool = Field(False, description="whether the effect is one, whose interval is that of Fisher's z")
    instead: str = Field("", description="what the measure takes of a file that lacks the results of several rounds")
    variant: dict[str, Any] = Field(  # `how` calls it ima, as in the digests of plans
        {}, serialization_alias="ima", description="options of a method; runs that have them otherwise are left out"
    )

    @model_validator(mode="after")
    def _functions_are_known(self) -> Self:
        if (self.where and len(self.methods) != 1) or (self.over and not self.methods):
            needs = "where needs one method, over one or a pair"
            raise ValueError(f"{self.name} names methods {list(self.methods)}; {needs}.")
        if self.across and not self.over:
            raise ValueError(f"{self.name} compares items of a campaign; say in over which setting differs.")
        try:
            inspect.signature(_function(self.measure)).bind(*(self.methods or ("runs",)), **self.options)
        except TypeError as problem:
            raise ValueError(f"{self.name} cannot call {self.measure} with these options: {problem}") from None
        if self.where:
            _function(self.where)
        self.claim()
        return self

    def claim(self) -> Claim:
        """The claim with its measure."""
        texts = {name: getattr(self, name) for name in ("name", "item", "statement", "effect", "unit", "section")}
        number = partial(_function(self.measure), **self.options)
        return Claim(
            **texts,
            test=self.test,
            margin=self.margin,
            across=self.across,
            methods=self.methods,
            takes=self._takes,
            measure=self._effects,
            of_run=number if self.across and len(self.methods) == 1 else None,
            correlation=self.correlation,
            instead=self.instead,
            how=self.model_dump_json(include=HOW, by_alias=True),
        )

    def _takes(self, run: Run) -> bool:
        suits = not self.where or _function(self.where)(run)
        return bool(suits and of_variant([run], self.variant) and run.label in (self.methods or [run.label]))

    def _effects(self, runs: Sequence[Run]) -> Effects:
        number = partial(_function(self.measure), **self.options)
        suited = of_variant(runs, self.variant)
        match self.methods:
            case methods if self.over:
                return extreme_effects(suited, methods, self.over, number)
            case (label,):
                return method_effects(suited, label, number, where=_function(self.where) if self.where else None)
            case (label, base):
                return pair_effects(suited, label, base, number)
        effects: Effects = number(suited)
        return effects


class _Claims(Entry):
    claims: tuple[ClaimEntry, ...] = Field(min_length=1)


@cache
def read_claims(name: str) -> tuple[Claim, ...]:
    """The claims of a file of this folder, in its order.

    Raises:
        ValueError: If the file is wrong: which entry and key.
    """
    return tuple(entry.claim() for entry in read_toml(FOLDER / f"{name}.toml", _Claims).claims)


def _function(name: str) -> Callable[..., Any]:
    """The function of a FILE.FUNCTION of this folder.

    Raises:
        ValueError: If there is none.
    """
    file, _, function = name.partition(".")
    module = import_module(f"drift.claims.{file}") if find_spec(f"drift.claims.{file}") else None
    if not callable(measure := getattr(module, function, None)):
        raise ValueError(f"there is no function {function} in drift/claims/{file}.py; write it there, or name another.")
    return measure
