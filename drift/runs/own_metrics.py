"""Numbers of the user's own at every point of a plane or line, beside loss and error."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from drift.runs.own_task import load_function
from landscape.model.task import PerSample


@dataclass(frozen=True)
class Measure:
    """A metric: its name, (outputs, targets) -> a value a sample (n,) or several (n, v), and a digest of its code."""

    name: str
    function: PerSample = field(compare=False, repr=False)
    digest: str

    @classmethod
    def loaded(cls, text: str) -> Measure:
        """From the text `my_code.py:top5_error`; the function's name is the metric's.

        Raises:
            LookupError: If there is no such file or function.
            ValueError: If the text is something else.
        """
        function, (path, _, name) = load_function(text, "metric", "top5_error"), text.rpartition(":")
        return cls(name, function, hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16])
