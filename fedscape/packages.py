"""Whether `landscape`, `drift` and `figures` are fedscape's own; other projects and files of users have these names."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

NAMES = ("landscape", "drift", "figures")

HOME = Path(__file__).resolve().parent.parent
"""The folder that holds fedscape and its three packages."""


def foreign() -> dict[str, str]:
    """What hides or has overwritten a package of fedscape: path by name; empty where all three are its own."""
    found = {}
    for name in NAMES:
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if origin != HOME / name / "__init__.py":
            found[name] = (
                "not installed" if spec is None else str(origin or list(spec.submodule_search_locations or []))
            )
        elif not _is_whole(HOME / name):
            found[name] = f"{origin}, which another project has overwritten"
    return found


def require_own() -> None:
    """Refuse to work with a package of somebody else.

    Raises:
        ImportError: If one of the three is not fedscape's; it says which file, and what to do.
    """
    for name, path in foreign().items():
        if path.endswith("overwritten") or path == "not installed":
            advice = (
                "install fedscape again, in a virtual environment of its own: pip install --force-reinstall fedscape"
            )
        else:
            advice = "rename that file or folder, start Python in another folder, or uninstall the project that has it"
        raise ImportError(f"fedscape needs its own package {name!r}, and Python finds {path}; {advice}.")


def _is_whole(folder: Path) -> bool:
    """Whether a package begins as ours do: its stub is there, and its `__init__.py` reads it."""
    stub = folder / "__init__.pyi"
    return stub.is_file() and "plugins.lazy(__name__)" in (folder / "__init__.py").read_text(encoding="utf-8")
