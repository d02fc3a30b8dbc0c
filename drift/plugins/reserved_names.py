"""Options of datasets and models that are settings of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GIVEN = "given"
"""Dataset and model of a run that was recorded without them: its task is named when the run is opened."""


def require_free(what: str, options: Mapping[str, Any]) -> None:
    """Refuse an option of a dataset or model ("dataset_options", "model_options") that is a setting of its own.

    Raises:
        ValueError: With the first such option and where it is set.
    """
    settings = _SETTINGS[what]
    if taken := [option for option in options if option in settings]:
        raise ValueError(f"{taken[0]!r} is none of the {what}; it is {settings[taken[0]]}.")


_SETTINGS = {
    "dataset_options": {
        "name": "the setting task.dataset",
        "scale": "the setting task.scale",
        "data": "--data DIR, or data=DIR in Python",
        "folder": "--data DIR, or data=DIR in Python",
    },
    "model_options": {
        "name": "the setting task.model",
        "seed": "the setting seed",
        "shape": "that of the dataset's inputs",
        "classes": "the number of the dataset's classes",
    },
}
"""What would be given twice, as an option and as the setting that it is."""
