"""What is looked at: one value that all views read, change and follow, and that the address of the page contains."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import param

Follower = Callable[[set[str]], None]


class Selection(param.Parameterized):
    """What is looked at.

    Change it by `change`, which sets several fields at once and calls every follower once; read fields as attributes.
    """

    view = param.String("runs", doc="Name of the view that is shown.")
    second = param.String("", doc="Name of the view beside it; empty for none.")
    runs = param.List([], item_type=str, doc="Names of the selected runs; the first is looked at in detail.")
    round = param.Integer(None, allow_None=True, bounds=(0, None), doc="Number of a round; None for the last.")
    rounds = param.List([], item_type=int, doc="First and last of a span of rounds; empty for all.")
    clients = param.List([], item_type=int, doc="Selected clients, ids.")
    client = param.Integer(None, allow_None=True, bounds=(0, None), doc="The client that is looked at alone, an id.")
    corners = param.List([], item_type=str, doc="Names of models, as in `model`: the three of the plane.")
    point = param.List([], item_type=float, doc="The point looked at: coefficients of `corners`, sum 1; empty: none.")
    box = param.List([], item_type=float, doc="Part of the plane that is shown: four coordinates; empty: all of it.")
    model = param.String("end", doc="A model: end, start, aggregate, point, weights, client 3, round 12, RUN: round 2.")
    weights = param.List(
        [], item_type=float, doc="Aggregation weights of the cohort, ids ascending; empty: the round's."
    )
    gamma = param.Number(1.0, doc="Factor of the aggregate, FedLAW's gamma.")
    number = param.String("accuracy", doc="Recorded number that is shown over rounds.")
    quantity = param.String("loss", doc="What a map shows: loss, error, class 3, client 5 (loss of its own samples).")
    split = param.String("test", doc="Samples: test, train, proxy, or client for those of `client`.")
    truth = param.Integer(None, allow_None=True, bounds=(0, None), doc="A class; None for all.")
    predicted = param.Integer(None, allow_None=True, bounds=(0, None), doc="A predicted class; None for all.")
    layers = param.List([], item_type=str, doc="Names of layers that are shown; empty: all.")
    reference = param.String("", doc="Method that others are compared with; empty: none.")
    looks = param.Dict({}, doc="Settings of single views by VIEW.NAME, such as plane.depth: texts.")

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self._followers: list[Follower] = []
        self._changed: set[str] = set()
        self._calling = False

    @property
    def run(self) -> str:
        """Name of the run that is looked at in detail; empty where none is selected."""
        return str(self.runs[0]) if self.runs else ""

    def look(self, name: str, default: str = "") -> str:
        """The setting of a view by VIEW.NAME."""
        return str(self.looks.get(name, default))

    def fields(self) -> dict[str, Any]:
        """All fields by name, lists and tables copied."""
        return {name: copy(getattr(self, name)) for name in FIELDS}

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Call a function after every change with the names of changed fields and looks; returns what ends that."""
        self._followers.append(follower)
        return lambda: self._followers.remove(follower) if follower in self._followers else None

    def change(self, **fields: Any) -> None:
        """Set several fields, and looks by `**{"plane.depth": "3d"}` (empty: its default); followers are called once.

        Raises:
            ValueError: If there is no such field, or it does not accept the value; then nothing changes.
        """
        looks = {name: str(value) for name, value in fields.items() if "." in name}
        accepted = {name: _accepted(name, value) for name, value in fields.items() if "." not in name}
        if looks:
            merged = {**self.looks, **accepted.get("looks", {}), **looks}
            accepted["looks"] = {name: value for name, value in merged.items() if value}
        before = self.fields()
        self.param.update(**accepted)
        changed = {name for name in accepted if before[name] != getattr(self, name)}
        if "looks" in changed:
            names = {*before["looks"], *self.looks}
            changed |= {name for name in names if before["looks"].get(name) != self.looks.get(name)}
        self._call(changed)

    @property
    def query(self) -> str:
        """The fields that differ from their defaults as the query of an address, without the question mark."""
        stated = {name: value for name, value in self.fields().items() if name != "looks" and value != DEFAULTS[name]}
        pairs = [(name, _text(value)) for name, value in [*stated.items(), *sorted(self.looks.items())]]
        return urlencode(pairs, safe=",:")

    def read(self, query: str) -> list[str]:
        """Set all fields to what a query says, the others to their defaults; one line per part that is not accepted."""
        fields = {name: copy(value) for name, value in DEFAULTS.items()}
        problems = []
        for name, text in parse_qsl(query.removeprefix("?")):
            try:
                if "." in name:
                    fields["looks"][name] = text
                elif name in FIELDS and name != "looks":
                    fields[name] = _accepted(name, _value(name, text))
                elif name not in FOREIGN:
                    problems.append(f"the address has {name}, which is no field of the selection; it is left out.")
            except ValueError:
                problems.append(f"the address has {name}={text}, which is not accepted; it is left out.")
        self.change(**fields)
        return problems

    def _call(self, changed: set[str]) -> None:
        """Call the followers; what one of them changes is reported after this round of calls, in the next one."""
        self._changed |= changed
        if self._calling:
            return
        self._calling = True
        try:
            while self._changed:
                now, self._changed = self._changed, set()
                for follower in list(self._followers):
                    follower(now)
        finally:
            self._calling = False


FOREIGN = {"token"}
"""Names in an address that are no part of the selection."""
FIELDS = [name for name in Selection.param if name != "name"]
DEFAULTS: dict[str, Any] = {name: Selection.param[name].default for name in FIELDS}


def _accepted(name: str, value: Any) -> Any:
    """A value as its field stores it: lists for tuples and arrays, numbers of Python for those of numpy.

    Raises:
        ValueError: If there is no such field, or it does not accept the value.
    """
    if name not in FIELDS:
        raise ValueError(f"the selection has no field {name!r}; it has {', '.join(FIELDS)}.")
    field = Selection.param[name]
    plain = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(field, param.List) and isinstance(plain, list | tuple):
        plain = [item.item() if hasattr(item, "item") else item for item in plain]
        if field.item_type is float:
            plain = [float(item) if isinstance(item, int) else item for item in plain]
    numbers = [item for item in (plain if isinstance(plain, list) else [plain]) if isinstance(item, float)]
    try:
        if not all(map(math.isfinite, numbers)):
            raise ValueError("not finite")
        Selection(**{name: plain})
    except (ValueError, TypeError) as reason:
        raise ValueError(f"{name} = {value!r} is not accepted; it is: {field.doc}") from reason
    return plain


def _text(value: Any) -> str:
    """A value as text: commas between the entries of a list, those inside of them escaped."""
    if isinstance(value, list):
        return ",".join(_text(item).replace("%", "%25").replace(",", "%2C") for item in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _value(name: str, text: str) -> Any:
    """The value of a field that stands in an address as text.

    Raises:
        ValueError: If it is no number where the field takes numbers.
    """
    field = Selection.param[name]
    if isinstance(field, param.List):
        kind: Any = field.item_type
        return [kind(unquote(item)) for item in text.split(",") if item]
    return {param.Integer: int, param.Number: float}.get(type(field), str)(text)


def span(ends: list[float]) -> list[int]:
    """First and last round between two places of an axis; empty where there is none."""
    first, last = max(0, math.ceil(min(ends))), math.floor(max(ends))
    return [first, last] if last >= first else []
