"""Options with which every figure of the gallery is drawn in seconds: few points, rounds, draws."""

import inspect
from pathlib import Path
from typing import Any

from figures import gallery
from landscape.results.parsed_text import from_toml

_TABLE = from_toml((Path(__file__).parent / "tiny_options.toml").read_bytes())

LEAST: dict[str, float] = _TABLE["least"]
"""Values of options by name, for figures where they are numbers and not smaller by themselves."""

TINY: dict[str, dict[str, Any]] = _TABLE["figures"]
"""Where a figure takes other values than these, by its name."""


def options(name: str) -> dict[str, Any]:
    """Options of a figure's data() that cost least and still show what it shows."""
    accepted = inspect.signature(gallery.load(name).data).parameters
    defaults = {option: parameter.default for option, parameter in accepted.items()}
    low = {
        option: least
        for option, least in LEAST.items()
        if isinstance(defaults.get(option), int | float) and least < defaults[option]
    }
    return {**low, **TINY.get(name, {})}
