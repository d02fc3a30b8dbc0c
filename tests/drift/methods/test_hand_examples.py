"""Every method has an example of two clients in float64 that is written out by hand, under its own name."""

from pathlib import Path

import pytest

from drift.config import method as methods
from tests.drift.methods import test_hand_averaging, test_hand_clients, test_hand_servers

EXAMPLES = {
    name: getattr(module, f"test_{name}")
    for name in methods.names()
    for module in (test_hand_clients, test_hand_servers, test_hand_averaging)
    if hasattr(module, f"test_{name}")
}


@pytest.mark.parametrize("name", methods.names())
def test_every_method_has_a_two_client_example(name):
    own = Path(__file__).with_name(f"test_{name}.py")
    assert name in EXAMPLES or own.exists(), f"write {own.name}, or test_{name} in one of the files test_hand_*.py"
