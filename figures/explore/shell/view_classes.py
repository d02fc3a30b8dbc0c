"""The views by name."""

from __future__ import annotations

import importlib

from figures.explore.shell.view import View

VIEWS = ("runs", "round", "plane", "weights", "samples", "path", "drift", "diagnosis")
"""Names of the views, in their order; each is a file in `views/`."""


def _view(name: str) -> type[View]:
    """The view in the file of that name."""
    module = importlib.import_module(f"figures.explore.views.{name}")
    classes = [member for member in vars(module).values() if isinstance(member, type) and issubclass(member, View)]
    return next(member for member in classes if getattr(member, "name", "") == name)


CLASSES = {name: _view(name) for name in VIEWS}
"""The views, imported before the first page asks for them."""
