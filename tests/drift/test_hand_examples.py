"""Every method has an example of two clients in float64 that is written out by hand, under its own name."""

import pytest

from drift import method as methods
from tests.drift import test_hand_averaging, test_hand_clients, test_hand_servers

EXAMPLES = {
    name: getattr(module, f"test_{name}")
    for name in methods.names()
    for module in (test_hand_clients, test_hand_servers, test_hand_averaging)
    if hasattr(module, f"test_{name}")
}


@pytest.mark.parametrize("name", methods.names())
def test_every_method_has_a_two_client_example(name):
    assert name in EXAMPLES, f"write test_{name} in tests/drift/test_hand_clients.py, _servers.py or _averaging.py"
