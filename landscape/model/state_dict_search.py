"""`searched`: the state dicts in the content of a file, by their places; what is no tensor is passed by."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from torch import Tensor

from landscape.model.guarded_load import TENSORS, Refused
from landscape.model.inert_pickle import Inert
from landscape.model.torch_files import Stored

KeyedState = tuple[tuple[Any, ...], dict[str, Any]]
"""Keys under which a state dict lies, and its tensors by name."""

FLAT = ""
"""Name of the only tensor of a file that is one vector of all parameters."""

QUANTISED = "a quantised model (the one that it was made from can be read)"

MAX_DEPTH, MAX_LAYERS = 4, 60
"""Depth of tables that are searched for state dicts, and of modules in a module."""


class Position(int):
    """A place in a list; `from_end` counts it from there, -1 for the last."""

    from_end = 0


def searched(content: Any, known: Callable[[Any], Any] = lambda entry: entry) -> list[KeyedState]:
    """State dicts in the content of a file, with their places; one that occurs twice has two places.

    Args:
        content: Tables, lists, modules, tensors and anything else.
        known: Makes tensors of other entries.

    Raises:
        Refused: If there are more than `TENSORS`.
    """
    content = known(content)
    if isinstance(content, Tensor | Stored) and len(content.shape) == 1:
        return [((), {FLAT: content})]
    below: dict[tuple[int, int], list[KeyedState]] = {}
    tensors_by_id: dict[int, dict[str, Any]] = {}

    def search(value: Any, depth: int) -> list[KeyedState]:
        if not isinstance(value, Mapping | list | tuple | Inert) or depth > MAX_DEPTH:
            return []
        if (key := (id(value), depth)) not in below:
            below[key] = []  # of a container in itself
            pairs, tensors = _entries(value, known)
            located = [((), tensors_by_id.setdefault(id(value), tensors))] if tensors else []
            for name, entry in pairs:
                located += [((name, *keys), state) for keys, state in search(entry, depth + 1)]
                if len(located) > TENSORS:
                    raise Refused(f"it has more than {TENSORS} state dicts; save each in a file of its own")
            below[key] = located
        return below[key]

    return search(content, 0)


def _entries(value: Any, known: Callable[[Any], Any]) -> tuple[list[tuple[Any, Any]], dict[str, Any]]:
    """Entries of a container by key, and the state dict that it is itself; none of the state of an optimiser."""
    if isinstance(value, Inert) and "_modules" in _table(value.state):
        return [], dict(_of_module(value, "", MAX_LAYERS, set()))
    table: Any = (value.items or value.state) if isinstance(value, Inert) else value
    if isinstance(table, Mapping) and {"state", "param_groups"} <= set(table):
        return [], {}
    pairs: list[tuple[Any, Any]] = list(table.items()) if isinstance(table, Mapping) else []
    for number, entry in enumerate(table if _is_list(table) else ()):
        pairs.append((Position(number), entry))
        pairs[-1][0].from_end = number - len(table)
    pairs = [(key, known(entry)) for key, entry in pairs]
    tensors = {key: entry for key, entry in pairs if isinstance(entry, Tensor | Stored) and not is_quantised(entry)}
    if _is_list(table) and tensors and len(tensors) == len(table):
        return pairs, {f"arr_{number}": entry for number, entry in tensors.items()}
    named = {key: entry for key, entry in tensors.items() if isinstance(key, str)}
    return pairs, named if any(len(entry.shape) for entry in named.values()) else {}


def is_quantised(value: Any) -> bool:
    """Whether a value is a quantised tensor, in memory or in a file."""
    return value.is_quantized if isinstance(value, Tensor) else isinstance(value, Inert) and "qtensor" in value.name


def _is_list(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple)


def _of_module(module: Inert, prefix: str, depth: int, above: set[int]) -> Iterator[tuple[str, Any]]:
    """Parameters and persistent buffers of a module that was saved whole; its class is not needed."""
    state: dict[Any, Any] = module.state if isinstance(module.state, dict) else {}
    if depth == 0 or id(module) in above:
        raise Refused("a module that contains itself")
    if ".quantized." in module.name:
        raise Refused(f"it has {QUANTISED}")
    if module.name.startswith("peft."):
        raise Refused("it has a model of peft saved whole, whose settings are not read; save it by save_pretrained")
    hidden = state.get("_non_persistent_buffers_set")
    named = hidden.arguments[0] if isinstance(hidden, Inert) and hidden.arguments else hidden
    left_out = named if _is_list(named) else ()
    for kind in ("_parameters", "_buffers"):
        for name, value in _table(state.get(kind)).items():
            if isinstance(value, Tensor | Stored) and not (kind == "_buffers" and name in left_out):
                yield f"{prefix}{name}", value
    for name, inner in _table(state.get("_modules")).items():
        if isinstance(inner, Inert):
            yield from _of_module(inner, f"{prefix}{name}.", depth - 1, above | {id(module)})


def _table(value: Any) -> Mapping[Any, Any]:
    table = value.items if isinstance(value, Inert) else value
    return table if isinstance(table, Mapping) else {}
