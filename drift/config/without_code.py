"""Methods and partitions whose code is absent, not trusted or changed: read by recorded name and options.

What needs the code refuses with the reason. Hooks that the method did not override are those of `Method`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import new_class
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

from drift import partitions
from drift.config import method as methods
from drift.config.method import Method
from drift.partitions import Partitioner
from drift.plugins import tables
from landscape.plugins import outside


class StandIn:
    """What stands for a plug-in without its code.

    Args:
        public: Its recorded name.
        why: Why it has no code, and how to give it.
        hooks: Hooks that it overrides; None: any.
    """

    public: ClassVar[str]
    why: ClassVar[str]
    hooks: ClassVar[tuple[str, ...] | None]

    def __reduce__(self) -> tuple[Any, ...]:
        kind = Method if isinstance(self, Method) else Partitioner
        options = self.model_dump(mode="json")  # type: ignore[attr-defined]
        return stand_in, (kind, self.public, options, self.why, self.hooks)


class _StandInMethod(StandIn, Method):
    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _as_published(cls, values: Any) -> Any:
        return values  # the bundle of `like` is part of the recorded options

    @property
    def label(self) -> str:
        """The short name; a run records the label of its method."""
        return outside.short(self.public)


class _StandInPartition(StandIn, Partitioner):
    model_config = ConfigDict(extra="allow")


_KINDS: dict[type[BaseModel], type[BaseModel]] = {Method: _StandInMethod, Partitioner: _StandInPartition}

_READING = ("check", "label")
"""Hooks by which settings are read."""


def overridden(method: Method) -> list[str]:
    """The hooks that a method from outside overrides, for run.json.

    The momentum is that of the base where there is one, as `drift.analyses.rounds.variance` takes it.
    """
    return [
        hook
        for hook in _hooks(Method)
        if getattr(type(method.unwrapped if hook == "momentum" else method), hook) is not getattr(Method, hook)
    ]


def readable(content: Mapping[str, Any], hooks: Any = None) -> dict[str, Any]:
    """Settings in which methods and partitions from outside are built; those that cannot be have stand-ins.

    Args:
        content: The experiment of a run.json.
        hooks: Those that its method overrides, where that is recorded.
    """
    known = tuple(map(str, hooks)) if isinstance(hooks, list) else None
    content = dict(content)
    if "method" in content:
        content["method"] = _built(content["method"], Method, methods.load, known)
    if isinstance(clients := content.get("clients"), Mapping) and "partition" in clients:
        partition = _built(clients["partition"], Partitioner, partitions.load, None)
        content["clients"] = {**clients, "partition": partition}
    return content


def stand_ins(*plugins: Any) -> Iterator[StandIn]:
    """The stand-ins among plug-ins and their bases."""
    for plugin in plugins:
        if isinstance(plugin, StandIn):
            yield plugin
        if isinstance(base := getattr(plugin, "base", None), BaseModel):
            yield from stand_ins(base)


def stand_in(
    kind: type[BaseModel], name: str, options: Mapping[str, Any], why: str, hooks: Sequence[str] | None
) -> BaseModel:
    """The stand-in of a method or partition with its recorded options."""
    return _class(kind, name, why, None if hooks is None else tuple(hooks))(**options)


def _built(
    table: Any, kind: type[BaseModel], load: Callable[[str], type[BaseModel]], hooks: tuple[str, ...] | None
) -> Any:
    """The plug-in of a table; the table itself where it names one of this package."""
    table = {"name": table} if isinstance(table, str) else table
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        return table
    settings = dict(table)
    if isinstance(table.get("base"), Mapping):
        settings["base"] = _built(table["base"], kind, load, hooks)
    if not outside.is_outside(table["name"]):
        return settings
    try:
        return tables.build(settings, load)
    except (ValueError, LookupError) as reason:
        options = {key: value for key, value in table.items() if key != "name"}
        return stand_in(kind, outside.absolute_name(table["name"]), options, " ".join(str(reason).split()), hooks)


@lru_cache(maxsize=64)
def _class(kind: type[BaseModel], name: str, why: str, hooks: tuple[str, ...] | None) -> type[BaseModel]:
    def refuse(self: Any, *_: Any, **__: Any) -> Any:
        raise ValueError(why)

    refused = {hook: refuse for hook in _hooks(kind) if hooks is None or hook in hooks}
    body = {**refused, "public": name, "why": why, "hooks": hooks, "__module__": __name__}
    return new_class(outside.short(name), (_KINDS[kind],), exec_body=lambda space: space.update(body))


def _hooks(kind: type[BaseModel]) -> list[str]:
    names = [name for name, value in vars(kind).items() if inspect.isfunction(value) and name not in _READING]
    return [name for name in names if not name.startswith("_")]
