"""Pickles read as plain data: their operations are interpreted, nothing is imported, called or given attributes.

Source: the operations as `pickletools` describes them (PEP 307, 3154, 574).
"""

import pickle
import pickletools
from collections.abc import Callable, Mapping
from typing import IO, Any, Protocol, cast

OPERATIONS = 3_000_000
"""Operations of one pickle; more than a checkpoint with its optimiser and settings has."""

TABLES = ("collections.OrderedDict", "collections.defaultdict", "builtins.dict", "__builtin__.dict")
"""Classes that are read as tables."""

_KEYS = (str, int, float, bool, bytes, type(None))
"""Types of keys; tuples may share parts so often that their hash never ends."""


class Inert:
    """What stands for a class, a function or an object, which is neither imported nor made.

    Attributes:
        name: Module and name of the class or function, such as `argparse.Namespace`.
        arguments: What it would be called with; None for the class or function itself.
        state: What its attributes would be.
        items: Entries of an object that is a table.
    """

    __slots__ = ("arguments", "items", "name", "state")

    def __init__(self, name: str, arguments: Any = None) -> None:
        self.name, self.arguments, self.state = name, arguments, None
        self.items: dict[Any, Any] = {}

    def __repr__(self) -> str:
        """The name alone: arguments may be nested without end."""
        return f"<{self.name}>"


Known = Mapping[str, Callable[..., Any]]
"""Functions of data that may stand for a global, by its name."""


class Readable(Protocol):
    """What is read of a file."""

    def read(self, number: int, /) -> bytes:
        """At most so many bytes."""

    def readline(self) -> bytes:
        """The bytes up to the end of the line."""


def read_pickle(file: Readable, known: Known, persistent: Callable[[Any], Any]) -> Any:
    """The value of the next pickle of a file, with `Inert` in place of everything but numbers, texts and containers.

    Args:
        file: Is read to the end of the pickle, and never asked for more bytes than it has.
        known: Is called with the arguments that the pickle states; may raise ValueError or TypeError.
        persistent: Value of a persistent identifier.

    Raises:
        ValueError: If the bytes are no pickle, or one of absurd length.
    """
    try:
        return _Machine(known, persistent).run(file)
    except (IndexError, KeyError, TypeError, AttributeError, OverflowError, pickle.UnpicklingError) as reason:
        raise ValueError(f"its pickle is broken: {type(reason).__name__} {reason}") from reason


class _Machine:
    def __init__(self, known: Known, persistent: Callable[[Any], Any]) -> None:
        self.known, self.persistent = known, persistent
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, file: Readable) -> Any:
        for count, (operation, argument, _) in enumerate(pickletools.genops(cast(IO[bytes], file))):
            if count > OPERATIONS:
                raise ValueError(f"its pickle has more than {OPERATIONS} operations")
            name = operation.name
            if name == "STOP":
                return self.stack.pop()
            if name in _PUSHED:
                self.stack.append(argument)
            elif name in _FRESH:
                self.stack.append(_FRESH[name]())
            elif name in _FIXED:
                self.stack.append(_FIXED[name])
            elif name in _HANDLERS:
                _HANDLERS[name](self, argument)
            elif name not in ("PROTO", "FRAME"):
                raise ValueError(f"its pickle has the operation {name}, which checkpoints do not have")
        raise ValueError("its pickle has no end")

    def pop(self, number: int) -> list[Any]:
        """The last values of the stack."""
        if not 0 <= number <= len(self.stack):
            raise IndexError("empty stack")
        taken = self.stack[len(self.stack) - number :]
        del self.stack[len(self.stack) - number :]
        return taken

    def to_mark(self, _: Any = None) -> list[Any]:
        return self.pop(len(self.stack) - self.marks.pop())

    def drop(self, _: Any) -> None:
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.pop(1)

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def mark(self, _: Any) -> None:
        self.marks.append(len(self.stack))

    def get(self, index: Any) -> None:
        self.push(self.memo[int(index)])

    def put(self, index: Any) -> None:
        self.memo[len(self.memo) if index is None else int(index)] = self.stack[-1]

    def tuple_of(self, number: int | None) -> None:
        self.push(tuple(self.to_mark() if number is None else self.pop(number)))

    def extend(self, values: list[Any]) -> None:
        if isinstance(target := self.stack[-1], list):
            target.extend(values)

    def update(self, values: list[Any]) -> None:
        target = self.stack[-1]
        table = target.items if isinstance(target, Inert) else target
        if isinstance(table, dict):
            table.update(_table(values))

    def call(self, function: Any, arguments: Any) -> None:
        """What the call would return: a table, what a known function makes of the data, or `Inert`."""
        name = function.name if isinstance(function, Inert) and function.arguments is None else "an object"
        stated = tuple(arguments) if isinstance(arguments, tuple | list) else ()
        if name in TABLES:
            pairs = stated[0] if stated and isinstance(stated[0], list) else []
            self.push(_table([item for pair in pairs for item in tuple(pair)[:2]]))
        elif name in self.known:
            self.push(self.known[name](*stated))
        else:
            self.push(Inert(name, stated))

    def build(self, _: Any) -> None:
        (state,) = self.pop(1)
        if isinstance(target := self.stack[-1], Inert):
            target.state = state


def _table(values: list[Any]) -> dict[Any, Any]:
    """A table of keys and values in turn; keys of other types than numbers and texts are left out with their values."""
    return {key: value for key, value in zip(values[::2], values[1::2], strict=True) if isinstance(key, _KEYS)}


def _class(text: str) -> Inert:
    return Inert(text.replace(" ", "."))


def _stack_class(module: Any, name: Any) -> Inert:
    if not isinstance(module, str) or not isinstance(name, str):
        raise TypeError("a class without a name")
    return Inert(f"{module}.{name}")


def _object(machine: _Machine, values: list[Any]) -> None:
    machine.call(values[0], values[1:])


_PUSHED = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
        *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    )
)
"""Operations that push their argument."""

_FRESH: dict[str, Callable[[], Any]] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": list, "EMPTY_TUPLE": tuple}

_FIXED = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}

_HANDLERS: dict[str, Callable[[_Machine, Any], Any]] = {
    "MARK": _Machine.mark,
    "POP": _Machine.drop,
    "POP_MARK": _Machine.to_mark,
    "DUP": lambda machine, _: machine.push(machine.stack[-1]),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.get),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.put),
    "TUPLE": lambda machine, _: machine.tuple_of(None),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    **dict.fromkeys(("LIST", "FROZENSET"), lambda machine, _: machine.push(machine.to_mark())),
    "DICT": lambda machine, _: machine.push(_table(machine.to_mark())),
    "APPEND": lambda machine, _: machine.extend(machine.pop(1)),
    **dict.fromkeys(("APPENDS", "ADDITEMS"), lambda machine, _: machine.extend(machine.to_mark())),
    "SETITEM": lambda machine, _: machine.update(machine.pop(2)),
    "SETITEMS": lambda machine, _: machine.update(machine.to_mark()),
    "GLOBAL": lambda machine, text: machine.push(_class(text)),
    "STACK_GLOBAL": lambda machine, _: machine.push(_stack_class(*machine.pop(2))),
    **dict.fromkeys(("REDUCE", "NEWOBJ"), lambda machine, _: machine.call(*machine.pop(2))),
    "NEWOBJ_EX": lambda machine, _: machine.call(*machine.pop(3)[:2]),
    "INST": lambda machine, text: machine.call(_class(text), machine.to_mark()),
    "OBJ": lambda machine, _: _object(machine, machine.to_mark()),
    "BUILD": _Machine.build,
    "PERSID": lambda machine, text: machine.push(machine.persistent(text)),
    "BINPERSID": lambda machine, _: machine.push(machine.persistent(machine.pop(1)[0])),
}
