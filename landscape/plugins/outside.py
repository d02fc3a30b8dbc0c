"""Plug-ins outside the package: FILE.py:NAME, module:NAME, or the name of an entry point.

Callers decide whether code may be run: `drift.plugins.trust`.
"""

import hashlib
import importlib
import inspect
import re
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

GROUPS = {
    "drift.methods": "fedscape.methods",
    "drift.partitions": "fedscape.partitions",
    "landscape.datasets": "fedscape.datasets",
    "landscape.models": "fedscape.models",
    "figures.gallery": "fedscape.figures",
    "drift.analyses": "fedscape.analyses",
}
"""Groups of entry points, by the package of the built-in plug-ins."""


def is_outside(name: str) -> bool:
    """Whether a name is FILE.py:NAME or module:NAME; those of built-in plug-ins have no colon."""
    return ":" in name


def entry_points(package: str) -> dict[str, str]:
    """module:NAME, by name, of the entry points of installed packages for `package`; nothing is imported."""
    offered = metadata.entry_points(group=GROUPS[package]) if package in GROUPS else ()
    return {point.name: point.value.replace(" ", "") for point in sorted(offered, key=lambda point: point.name)}


def absolute_name(name: str) -> str:
    """FILE.py:NAME with the whole path of the file; module:NAME as it is."""
    source, _, what = name.rpartition(":")
    return f"{Path(source).resolve()}:{what}" if source.endswith(".py") else name


def portable(name: str) -> str:
    """The same without the folder of the file, as it identifies a run."""
    source, _, what = name.rpartition(":")
    return f"{Path(source).name}:{what}" if source.endswith(".py") else name


def short(name: str) -> str:
    """The short name: the part behind the colon, or the whole name of a built-in plug-in."""
    return name.rpartition(":")[2]


def file_text(*names: str) -> str:
    """Names, without their folders, as a part of a file's name: letters, digits, dots and dashes."""
    return "-".join(re.sub(r"[^\w.-]+", "-", short(name)).strip("-.") for name in names)


def load(name: str) -> Any:
    """The object FILE.py:NAME or module:NAME; the file is run once, the module imported.

    Raises:
        LookupError: If there is no such file.
        ValueError: If there is no such module, it has nothing of that name, or the text is incomplete. Errors of the
            code itself are not caught.
    """
    source, _, what = name.rpartition(":")
    if not source or not what:
        raise ValueError(f"{name!r} is incomplete; name code of your own as FILE.py:NAME or module:NAME.")
    value: Any = _file(Path(source)) if source.endswith(".py") else _module(source)
    for word in what.split("."):
        if not hasattr(value, word):
            raise ValueError(
                f"{source} has no function {what!r} and no such class; name it as FILE.py:NAME or module:NAME."
            )
        value = getattr(value, word)
    return value


def digest(name: str) -> str:
    """First 16 hexadecimal digits of the SHA-256 of the file that holds the code; what it imports is not in it.

    A module must be one that may be imported.
    """
    source, _, _ = name.rpartition(":")
    if not source.endswith(".py"):
        value = load(name)
        has_module = inspect.isclass(value) or inspect.isfunction(value)  # it may come from another module
        source = str(sys.modules[value.__module__ if has_module else source].__file__)
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16]


def class_reference(cls: type) -> str:
    """The text FILE.py:CLASS or module:CLASS that loads a class again.

    It contains `<` if that is impossible: for a class inside a function or in a session without a file.
    """
    module = sys.modules.get(cls.__module__)
    path = getattr(module, "__file__", None)
    if cls.__module__ == "__main__" and getattr(module, "__spec__", None) is not None:
        return f"{module.__spec__.name}:{cls.__qualname__}"  # type: ignore[union-attr]  # python -m package.module
    if cls.__module__ in ("__main__", "__mp_main__") or cls.__module__.startswith(_PREFIX):
        return f"{Path(path).resolve()}:{cls.__qualname__}" if path else f"<session>.py:{cls.__qualname__}"
    return f"{cls.__module__}:{cls.__qualname__}"


def require_lasting(name: str) -> None:
    """Refuse a class that no other process could load.

    Raises:
        ValueError: Names where to put it.
    """
    if "<" in name:
        raise ValueError(
            f"{short(name)} is defined inside a function or in a session, so its runs could not be opened again; put "
            "it at the top level of a file and name it FILE.py:CLASS. In a notebook, begin its cell with %%writefile "
            f"mine.py and its imports, run the cell, and give 'mine.py:{short(name)}' in place of the class."
        )


_PREFIX = "fedscape_file_"


def _file(path: Path) -> ModuleType:
    """The module of a file, run once per content of the file."""
    if not path.is_file():
        raise LookupError(f"no file {path}; give its path, as in FILE.py:NAME (for a run by --trust FILE.py:NAME).")
    main = sys.modules["__main__"]
    if (main_file := getattr(main, "__file__", None)) is not None and Path(main_file).resolve() == path.resolve():
        return main
    source = path.read_bytes()
    content = hashlib.sha256(str(path.resolve()).encode() + source).hexdigest()[:8]
    called = f"{_PREFIX}{re.sub(r'[^a-zA-Z0-9]', '_', path.stem)}_{content}"
    if called in sys.modules:
        return sys.modules[called]
    module = ModuleType(called)
    module.__file__ = str(path.resolve())
    sys.modules[called] = module
    sys.path.insert(0, str(path.resolve().parent))  # the file can import its neighbours
    try:
        code = compile(source, module.__file__, "exec", dont_inherit=True)  # a .pyc of the same second may be older
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[called]
        raise
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as reason:
        if reason.name is None or not f"{name}.".startswith(f"{reason.name}."):
            raise  # an import of the user's module
        remedy = f"name its file: --trust FILE.py:{short(name)}, or put its folder in PYTHONPATH"
        raise ValueError(f"no module named {reason.name!r} for {name}; {remedy}.") from reason
