"""Whether `landscape`, `drift` and `figures` are fedscape's own; other projects and files of users have these names."""

from collections.abc import Mapping
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

NAMES = ("landscape", "drift", "figures")

HOME = Path(__file__).resolve().parent.parent
"""The folder that holds fedscape and its three packages."""


def foreign() -> dict[str, str]:
    """What hides or has overwritten a package of fedscape: path by name; empty where all three are its own."""
    hidden = {}
    for name in NAMES:
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if origin != HOME / name / "__init__.py":
            hidden[name] = (
                "not installed" if spec is None else str(origin or list(spec.submodule_search_locations or []))
            )
        elif not _is_ours(HOME / name):
            hidden[name] = f"{origin}, which another project has overwritten"
    return hidden


def require_ours() -> None:
    """Refuse to work with a package of somebody else.

    Raises:
        ImportError: If one of the three is not fedscape's; it says which file, and what to do.
    """
    for name, path in foreign().items():
        what = advice(name, path, sharers())
        raise ImportError(f"fedscape needs its own package {name!r}, and Python finds {path}; {what}.")


def sharers() -> dict[str, list[str]]:
    """Other installed distributions that bring a package of one of these names, by name."""
    brought = packages_distributions()
    others = {name: sorted({project for project in brought.get(name, ()) if project != "fedscape"}) for name in NAMES}
    return {name: projects for name, projects in others.items() if projects}


def advice(name: str, path: str, shared: Mapping[str, list[str]]) -> str:
    """What to do about a package that is not ours, given who else brings one of its name."""
    if name in shared:
        return reinstall({name: shared[name]})
    if path.endswith("overwritten") or path == "not installed":
        return reinstall({})
    return "rename that file or folder, start Python in another folder, or uninstall the project that has it"


def reinstall(shared: Mapping[str, list[str]]) -> str:
    """How to have packages of these names from fedscape alone."""
    others = " ".join(sorted({project for projects in shared.values() for project in projects}))
    uninstall = f"pip uninstall {others}, then " if others else ""
    remedy = "in a virtual environment of its own: pip install --force-reinstall fedscape"
    return f"{uninstall}install fedscape again, {remedy}"


def _is_ours(folder: Path) -> bool:
    """Whether a package begins as ours do: its stub is there, and its `__init__.py` reads it."""
    stub = folder / "__init__.pyi"
    return stub.is_file() and "plugins.lazy(__name__)" in (folder / "__init__.py").read_text(encoding="utf-8")
