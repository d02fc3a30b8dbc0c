"""Public names of a package, imported from their modules at first use."""

import ast
import difflib
import importlib
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any


def lazy(package: str) -> list[str]:
    """Give a package the public names of its stub, imported from their modules at first use.

    The stub `__init__.pyi` of the package has a line `from MODULE import NAME as NAME` per name, which
    editors and type checkers read too; `import MODULE as MODULE` makes a module a name. A name stays the public object
    where a module has the same name.

    Args:
        package: Name of the package, imported already.

    Returns:
        The names, sorted.
    """
    stub = ast.parse(Path(str(sys.modules[package].__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    public: dict[str, str] = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            public |= {alias.name: f"{node.module}:{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            public |= {alias.name: alias.name for alias in node.names}

    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name == "__version__":
                return version("fedscape")
            if name not in public:
                raise AttributeError(f"module {package!r} has no attribute {name!r}{_hint(package, public, name)}")
            module, _, attribute = public[name].partition(":")
            imported = importlib.import_module(module)
            return getattr(imported, attribute) if attribute else imported

        def __setattr__(self, name: str, value: Any) -> None:  # the import system binds submodules here
            if isinstance(value, ModuleType) and name in public:
                value = self.__getattr__(name)
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *public})

    sys.modules[package].__class__ = Lazy
    return sorted(public)


def version(distribution: str) -> str:
    """Version of an installed distribution; "" where there is none."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _hint(package: str, public: Mapping[str, str], name: str) -> str:
    """The nearest public name of a package or of the packages that it names; empty where none is near.

    Names of Python and Jupyter, which ask for `_names`, import nothing.
    """
    if name.startswith("_"):
        return ""
    inner = {key: importlib.import_module(module).__all__ for key, module in public.items() if ":" not in module}
    full_names = {other: f"{key}.{other}" for key in sorted(inner, reverse=True) for other in inner[key]}
    full_names |= {name: name for name in public}
    near = difflib.get_close_matches(name, full_names, 1)
    return f". Did you mean {package}.{full_names[near[0]]}?" if near else ""
