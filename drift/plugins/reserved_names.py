"""Names with a meaning of their own: of a task that the user supplies, of what is unknown, and of settings."""

from collections.abc import Mapping
from typing import Any

USER_TASK = "given"
"""Name of dataset and model in a run that was recorded without them: the task is supplied when it is opened."""


UNKNOWN = "not said"
"""Method, data, partition or seed of a run of another program that does not state it."""


def require_free(what: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError for an option (of "dataset_options" or "model_options") that is a setting, with the setting."""
    settings = _SETTINGS[what]
    if reserved := [option for option in options if option in settings]:
        raise ValueError(f"{reserved[0]!r} is not one of the {what}; it is {settings[reserved[0]]}.")


_DATA = {"name": "the setting task.dataset", "scale": "the setting task.scale"}
_DATA |= dict.fromkeys(("data", "folder"), "--data DIR, or data=DIR in Python")
_MODEL = {"name": "the setting task.model", "seed": "the setting seed", "shape": "that of the dataset's inputs"}
_MODEL |= {"classes": "the number of the dataset's classes"}
_SETTINGS = {"dataset_options": _DATA, "model_options": _MODEL}
"""Options that settings have already, and where to set them."""
