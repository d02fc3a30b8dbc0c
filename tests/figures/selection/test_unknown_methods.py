"""A method that this package does not know is asked what it is, and takes its place in the figures of its kind."""

from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

from drift.analyses.rounds.cost import _epochs, _pool_factor
from drift.config.method import Method
from figures.gallery import _pools, _runs
from figures.selection import setting_text


class Grown(Method):
    """Each client grows a pool of `members` models, and trains them one after the other."""

    pool_option: ClassVar[str] = "members"
    members: int = 3

    @property
    def trainings(self) -> int:
        return self.members


def run(method: Method, seed: int = 0, **more) -> SimpleNamespace:
    local = SimpleNamespace(epochs=2, steps=None)
    clients = SimpleNamespace(weighting="samples")
    experiment = SimpleNamespace(local=local, seed=seed, task="t", clients=clients, rounds=2, init=None)
    name = f"{method.label}-{getattr(method, 'members', '')}-{seed}"
    return SimpleNamespace(
        method=method, label=method.label, experiment=experiment, name=name, folder=Path(__file__).parent, **more
    )


def test_pools_of_an_unknown_method_are_compared_by_their_size():
    runs = [run(Grown(members=size), seed) for size in (2, 5) for seed in (0, 1)]
    assert setting_text.value(runs[-1], "pool") == f"{runs[0].label}, M = 5"
    pools, others = _pools.split_by_candidates(runs)
    assert {size: len(group) for size, group in pools.items()} == {2: 2, 5: 2} and not others
    assert _pool_factor(runs[-1]) == 3.0 and _epochs(runs[-1], 10) == 10.0
    assert _pool_factor(run(Method())) == 1.0 and setting_text.value(run(Method()), "pool") == run(Method()).label


class Learning(Method):
    """The server learns the sum of the weights."""

    learns_weights: ClassVar[bool] = True


@pytest.mark.parametrize(
    ("method", "ratio", "learned"),
    [(Method(), [1.0, 1.0], False), (Method(), [1.2, np.nan], True), (Learning(), [1.0, 1.0], True)],
)
def test_weights_of_an_unknown_method_are_learned_where_it_says_so_or_they_are_not_those_by_size(
    method, ratio, learned
):
    values = xr.Dataset({"weight_ratio": (("round", "client"), [ratio, ratio]), "gamma": ("round", [0.9, 0.9])})
    one = run(method, cached=lambda analysis: values)
    if learned:
        assert _runs.select_learned([one]) == [one]
    else:
        with pytest.raises(LookupError, match="none of 1 runs learned its weights"):
            _runs.select_learned([one])
