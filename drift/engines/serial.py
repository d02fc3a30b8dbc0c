"""The cohort's clients one after the other in this process; the reference for every other engine."""

from collections.abc import Callable, Iterable

from drift.config.method import Method
from drift.training.arrivals import as_they_are
from drift.training.client import Client, Update


def train(
    method: Method, clients: Iterable[Client], receive: Callable[[int, Update], Update] = as_they_are
) -> list[Update]:
    """Local training of each client, in order; `receive` takes the update of a client's place as it comes back."""
    return [receive(index, client.sent(method.local(client))) for index, client in enumerate(clients)]
