"""Which public function is compared with which independent computation, and how far the two were apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True)
class Reference:
    """A public function, what computes its numbers independently, and the test that compares the two."""

    function: str
    by: str
    test: str


REFERENCES: list[Reference] = []
"""Filled when the test files of this folder are imported."""

ERRORS: dict[str, float] = {}
"""Largest relative error per function in this session."""


def reference(*functions: str, by: str) -> Callable[[Test], Test]:
    """Mark a test as the reference of public functions ("landscape.hessian", "drift.coherence").

    Args:
        by: The independent computation, such as "dense float64 Hessian, numpy.linalg.eigvalsh".
    """

    def mark(test: Test) -> Test:
        place = f"{test.__module__.rpartition('.')[2]}.py::{test.__name__}"
        REFERENCES.extend(Reference(function, by, place) for function in functions)
        return test

    return mark


def agree(function: str, actual: Any, expected: Any, *, relative: float, absolute: float = 0.0) -> None:
    """Compare with the reference, relative to its largest entry, and note the error for docs/results/references.csv.

    NaN must stand where the reference has NaN. An empty comparison fails.
    """
    found = np.asarray(actual, dtype=np.float64)
    wanted = np.asarray(expected, dtype=np.float64)
    assert found.shape == wanted.shape, f"{function}: shape {found.shape}, the reference has {wanted.shape}"
    assert found.size, f"{function}: nothing to compare"
    missing = np.isnan(wanted)
    assert np.array_equal(np.isnan(found), missing), f"{function}: {found}, the reference has {wanted}"
    if missing.all():
        return
    scale, off = float(np.abs(wanted[~missing]).max()), float(np.abs(found - wanted)[~missing].max())
    if off > absolute:
        ERRORS[function] = max(ERRORS.get(function, 0.0), off / scale if scale else np.inf)
    assert off <= relative * scale + absolute, f"{function}: {found}, the reference has {wanted}: {off:.2e} apart"
