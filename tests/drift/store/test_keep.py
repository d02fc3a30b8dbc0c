"""What a run keeps of each round."""

import pytest
from pydantic import ValidationError

from drift.store.keep import Keep


def kept(policy: str, rounds: int = 12) -> list[int]:
    keep = Keep(clients=policy)
    return [index for index in range(rounds) if keep.keeps_clients(index, rounds)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("all", list(range(12))),
        ("none", []),
        ("every 5", [0, 5, 10]),
        ("last 3", [9, 10, 11]),
        ("first 2", [0, 1]),
        ("at 4 7", [4, 7]),
        ("every 10, last 3", [0, 9, 10, 11]),
    ],
)
def test_policies(policy, expected):
    assert kept(policy) == expected


@pytest.mark.parametrize("policy", ["evry 3", "every", "every 0", "last -1", "", "all and more"])
def test_a_policy_that_cannot_be_read_is_refused(policy):
    with pytest.raises(ValidationError, match="cannot read"):
        Keep(clients=policy)


def test_globals_are_kept_wherever_clients_are():
    keep = Keep(clients="at 3", globals="none")
    assert [index for index in range(6) if keep.keeps_globals(index, 6)] == [3]
