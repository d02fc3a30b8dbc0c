"""The short form of the torture suite: few faults of every kind, none lost. The long one: make torture."""

import time

import pytest
from torture.clients import clients
from torture.damage import damage
from torture.disk import disk
from torture.exchanges import exchanges
from torture.kills import kills
from torture.outcome import LOST, Budget
from torture.places import places
from torture.writers import writers

ELSEWHERE = (damage, exchanges, disk, places, clients)
"""Faults that quick tests try one by one: drift/store/test_flipped_bits.py and drift/simulation/test_verify.py,
drift/store/test_exchanges.py, test_memory_budget.py and drift/simulation/test_stopped_runs.py,
drift/runs/test_read_only.py, drift/simulation/test_non_finite_clients.py."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", [kills, writers, *(pytest.param(part, marks=pytest.mark.slow) for part in ELSEWHERE)])
def test_no_fault_is_lost(part):
    found = list(part(Budget(seed=1, kills=3, places=1, until=time.monotonic() + (40 if part is kills else 4))))
    assert found
    assert [outcome for outcome in found if outcome.what == LOST] == []
