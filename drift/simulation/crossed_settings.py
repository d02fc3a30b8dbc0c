"""Experiments for all combinations of settings; refused combinations do not affect the others."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from drift.config.experiment import Experiment
from drift.config.load import read
from drift.plugins.tables import require_named


@dataclass(frozen=True)
class RefusedSettings:
    """A combination of settings that is not trained.

    Args:
        settings: The crossed settings with their values.
        reason: One line.
    """

    settings: Mapping[str, Any]
    reason: str

    def __str__(self) -> str:
        return f"{', '.join(f'{name}={value}' for name, value in self.settings.items())} is not trained: {self.reason}"


OnRefused = Callable[[RefusedSettings], None]
"""Called with every combination that is refused."""


def cross_settings(
    source: str | Path | Experiment, values: Mapping[str, Sequence[Any]], *overrides: str, hear: OnRefused | None = None
) -> list[Experiment]:
    """An experiment for each combination of the settings' values that is accepted; the last setting changes fastest.

    Args:
        values: By setting, such as {"method": ["fedavg", "ima"], "seed": [0, 1, 2]}.
        overrides: Settings of all of them, like "rounds=10".
        hear: Called with what is refused; a warning for each where it is left out.

    Raises:
        ValueError, LookupError: If a value names a method, partition, dataset or model that there is none of, or if
            every combination is refused: then with the reason of the first one.
    """
    for name, options in values.items():
        for value in options:
            if isinstance(value, str):
                require_named(f"{name}={value}")
    experiments: list[Experiment] = []
    errors: list[tuple[RefusedSettings, Exception]] = []
    for combination in product(*values.values()):
        settings = dict(zip(values, combination, strict=True))
        try:
            changes = {name.replace(".", "__"): value for name, value in settings.items()}
            experiments.append(read(source, *overrides, **changes))
        except (ValueError, LookupError) as error:
            errors.append((refusal(settings, error), error))
    if errors and not experiments:
        raise errors[0][1]
    for combination_refused, _ in errors:
        (hear or warn)(combination_refused)
    return experiments


def refusal(settings: Mapping[str, Any], error: ValueError | LookupError) -> RefusedSettings:
    """A combination with the reason that an error states.

    Raises:
        KeyError, IndexError: If that is what the error is: a mistake in the code, which keeps its traceback.
    """
    if isinstance(error, KeyError | IndexError):
        raise error
    return RefusedSettings(settings, " ".join(str(error).split()))


def warn(refused: RefusedSettings) -> None:
    """Warn of a refused combination."""
    warnings.warn(str(refused), stacklevel=3)
