"""The cohort's clients one after the other in this process; the reference for every other engine."""

from __future__ import annotations

from collections.abc import Iterable

from drift.config.method import Method
from drift.training.client import Client, Update


def train(method: Method, clients: Iterable[Client]) -> list[Update]:
    """Local training of each client, in order."""
    return [method.local(client) for client in clients]
