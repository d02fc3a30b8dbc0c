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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", [damage, exchanges, disk, places, clients, writers, kills])
def test_no_fault_is_lost(part):
    found = list(part(Budget(seed=1, kills=3, places=1, until=time.monotonic() + (40 if part is kills else 8))))
    assert found
    assert [outcome for outcome in found if outcome.what == LOST] == []
