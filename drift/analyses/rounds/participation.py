"""The cohort size at which period drift equals the drift of local steps."""

from __future__ import annotations

from math import nan

import xarray as xr


def balanced_cohort(exact: xr.Dataset, number: int) -> float:
    """Cohort size m at which period drift is as large as the part of the mean step from local steps; NaN: unknown.

    A cohort of m of K clients drawn without replacement has

        E |period|^2 = T^2 (1/m - 1/K),    T^2 = K^2 / (K - 1) sum_k (q_k |D_k - full|)^2

    (S^2 (1/m - 1/K), with S^2 the sample variance of the updates, where all q_k are 1/K). The part of
    the mean step from local steps, L^2 = |local|^2, does not shrink with m. They are equal at

        m = 1 / (L^2 / T^2 + 1 / K)

    Below it more clients help most, above it shorter or better local training. Client drift itself cannot be compared
    with period drift in this way: the variance of a mean of m random clients is S^2 / m, so period drift over client
    drift is 1 - m/K in every run.

    Source: sampling without replacement, Cochran 1977, chapter 2; parts as in `drift.counterfactual`.

    Args:
        exact: Result of `counterfactual`; the mean over its rounds is used.
        number: K.
    """
    squares = (exact.share * exact.distance).fillna(0) ** 2
    total = number**2 / max(1, number - 1) * float(squares.sum("client").mean())
    local = float((exact.norm.sel(part="local") ** 2).mean())
    return 1 / (local / total + 1 / number) if total > 0 else nan
