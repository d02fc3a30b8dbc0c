"""Which code of their own the models of runs may be made by: functions that the user named, none that a run names."""

from __future__ import annotations

import os

TRUSTED = "FEDSCAPE_TRUST"
"""Environment variable with the functions that may be called, MODULE:FUNCTION, joined by commas; workers inherit it."""


def allow(name: str) -> None:
    """Let this process, and processes that it starts, make the models of runs by a function.

    Raises:
        ValueError: If the name is not MODULE:FUNCTION.
    """
    module, _, function = name.partition(":")
    if not module or not function or "," in name:
        raise ValueError(f"cannot trust {name!r}; name the code as MODULE:FUNCTION, as in mine:net.")
    if name not in _allowed():
        os.environ[TRUSTED] = ",".join([*_allowed(), name])


def allow_own(model: str) -> None:
    """Let the models of runs be made by the function by which the caller has a model made; a plain name needs none."""
    if ":" in model.strip(":"):
        allow(model)


def require_trusted(name: str, run: str) -> None:
    """Refuse a run whose model would be made by code that the user has not named.

    A run may come from anywhere, and importing a module runs it. Names without a colon are of this package.

    Raises:
        ValueError: If the function is not trusted; says how to trust it.
    """
    if ":" in name and name not in _allowed():
        raise ValueError(
            f"run {run} makes its model by {name}, code that is no part of fedscape and would be run. If you trust it, "
            f"add --trust {name} (in Python: drift.open(folder, trust={name!r})), or set {TRUSTED}={name}."
        )


def _allowed() -> list[str]:
    return [name for name in os.environ.get(TRUSTED, "").split(",") if name]
