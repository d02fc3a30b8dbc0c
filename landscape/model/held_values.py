"""All that tasks, models and functions hold: tensors, numbers, texts and code; and a digest of it."""

import hashlib
import sys
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Set
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from landscape.model.loss_failures import FAILS

PLAIN = (str, bytes, int, float, complex, type(None), np.generic, torch.dtype)
OUR_PACKAGES = {"builtins", "landscape", "drift", "figures", "fedscape"}


def digest(*values: Any, besides: Iterable[Tensor] = ()) -> str:
    """First 16 hexadecimal digits of the SHA-256 of all that values hold, besides these tensors."""
    total = hashlib.sha256()
    for value in held_values(*values, besides=besides):
        if isinstance(value, Tensor):
            dense = value.detach().cpu().to_dense().resolve_conj().contiguous()
            total.update(f"{dense.dtype} {tuple(dense.shape)};".encode())
            total.update(dense.reshape(-1).view(torch.uint8).numpy().data)
        else:
            total.update(f"{value!r};".encode())
    return total.hexdigest()[:16]


def held_values(*values: Any, besides: Iterable[Tensor] = ()) -> Iterator[Any]:
    """Tensors, numbers and texts that values hold: each object once, outer ones first, in one order in all processes.

    Of a function they are its code, defaults, closure and the globals that it uses, of an object its attributes and
    class. Code of Python and of installed packages counts by its name, and no module by its mode.
    """
    queue, seen = deque(values), {id(tensor): (index, tensor) for index, tensor in enumerate(besides)}
    while queue:
        value = queue.popleft()
        if isinstance(value, PLAIN):
            yield value
        elif id(value) in seen:
            yield f"object {seen[id(value)][0]}"
        else:
            if not isinstance(value, tuple | frozenset | CodeType):  # equal constants may be one object, or several
                seen[id(value)] = len(seen), value  # which is kept, so that no other gets its id
            if isinstance(value, Tensor):
                yield value
            else:
                yield getattr(value, "__name__", type(value).__name__)
                queue.extend(_components(value))


def _components(value: Any) -> Iterable[Any]:
    match value:
        case Mapping():
            return [len(value), *(item for entry in value.items() for item in entry)]
        case list() | tuple():
            return [len(value), *value]
        case Set():
            return sorted(value, key=repr)
        case MethodType() | staticmethod() | classmethod() | property():
            return [getattr(value, name, None) for name in ("__self__", "__func__", "fget")]
        case CodeType():
            return value.co_code, value.co_names, value.co_consts
        case FunctionType() | type() if _is_installed(value.__module__):
            return [value.__module__]
        case FunctionType():
            return _of_function(value)
        case type():
            body = {name: item for name, item in vars(value).items() if callable(item) or not name.startswith("__")}
            return value.__bases__, body
        case nn.Module():
            return _of_module(value)
    try:
        return value.__reduce_ex__(2)[1:3]
    except FAILS:  # it cannot be pickled
        return []


def _of_function(function: FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
    names, scope = sorted(_names(function.__code__)), function.__globals__
    modules = [module for name in names if isinstance(module := scope.get(name), ModuleType)]
    scopes = [scope, *(vars(module) for module in modules if not _is_installed(module.__name__))]
    used = [scope[name] for scope in scopes for name in names if name in scope]
    return [cells, used, function.__code__, function.__defaults__, function.__kwdefaults__]


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _of_module(module: nn.Module) -> list[Any]:
    named = module.named_parameters(recurse=False), module.named_buffers(recurse=False), module.named_children()
    members = {name: value for name, value in vars(module).items() if name not in _USUAL}
    hooks = [list(value.values()) for value in vars(module).values() if isinstance(value, OrderedDict)]
    return [*map(dict, named), members, hooks, type(module)]


_USUAL = set(vars(nn.Module()))
"""Attributes of every module."""


def _is_installed(module: str | None) -> bool:
    """Whether a module belongs to Python, to an installed package or to this library; None is of compiled code."""
    top = (module or "builtins").partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top in OUR_PACKAGES or top in sys.stdlib_module_names or "-packages" in file
