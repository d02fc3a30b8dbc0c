"""Functions of the user's own Python files: metrics at the points of planes and lines, makers of tasks."""

from __future__ import annotations

import hashlib
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from landscape.model.task import PerSample


@dataclass(frozen=True)
class UserMetric:
    """A metric of the user's own.

    Args:
        name: Name of the metric.
        function: (outputs, targets) -> one value per sample (n,), or several (n, v).
        digest: First 16 hexadecimal digits of the SHA-256 of its file.
    """

    name: str
    function: PerSample = field(compare=False, repr=False)
    digest: str

    @classmethod
    def load(cls, text: str) -> UserMetric:
        """The metric of the text `my_code.py:top5_error`; the function's name is the metric's.

        Raises:
            LookupError: If there is no such file or function.
            ValueError: If the text has another form.
        """
        function, (path, _, name) = load_function(text, "metric", "top5_error"), text.rpartition(":")
        return cls(name, function, hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16])


def load_function(text: str, what: str, example: str) -> Callable[..., Any]:
    """A function of a Python file, by the text FILE.py:FUNCTION; the file is run.

    Args:
        text: The file and the function.
        what, example: Purpose and example name of the function, for messages.

    Raises:
        LookupError: If there is no such file or function.
        ValueError: If the text has another form.
    """
    path, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier() or not path.endswith(".py"):
        raise ValueError(f"cannot read {what} {text!r}; write FILE.py:FUNCTION, as in my_code.py:{example}.")
    if not Path(path).is_file():
        raise LookupError(f"no file {path}; a {what} is given as FILE.py:FUNCTION.")
    folder = str(Path(path).resolve().parent)
    sys.path.insert(0, folder)  # the file can import modules of its folder
    try:
        function: Callable[..., Any] | None = runpy.run_path(path, run_name=Path(path).stem).get(name)
    finally:
        sys.path.remove(folder)
    if not callable(function):
        raise LookupError(f"{path} has no function {name!r}; a {what} is given as FILE.py:FUNCTION.")
    return function
