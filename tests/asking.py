"""A page of the explorer for tests: what it asks and gets, without a browser or a server."""

from __future__ import annotations

import base64
import json
import threading
import time
from contextlib import contextmanager
from itertools import count

import numpy as np

from figures.explore.session import Session
from figures.explore.work.workspace import Workspace


class Page:
    """A page.

    Args:
        workspace: Whose runs it asks about.
    """

    def __init__(self, workspace):
        self.messages, self._numbers, self._news = [], count(1), threading.Condition()
        self.workspace, self.session = workspace, Session(workspace, self._take)

    def _take(self, message):
        json.dumps(message, allow_nan=False)  # what cannot be sent fails here
        with self._news:
            self.messages.append(message)
            self._news.notify_all()

    def send(self, kind, **args):
        """Ask, and return the number of the ask."""
        number = next(self._numbers)
        self.session.receive({"id": number, "ask": kind, "args": args})
        return number

    def wait(self, suits, seconds=60):
        """The first message that suits, once it is there."""
        ends = time.monotonic() + seconds
        with self._news:
            while True:
                for message in self.messages:
                    if suits(message):
                        return message
                assert self._news.wait(ends - time.monotonic()), f"no such message among {len(self.messages)}"

    def answer(self, number):
        """The answer of an ask."""
        return self.wait(lambda message: message.get("id") == number and ("value" in message or "error" in message))

    def ask(self, kind, **args):
        """The value of an ask."""
        message = self.answer(self.send(kind, **args))
        assert "error" not in message, message["error"]
        return message["value"]

    def error(self, kind, **args):
        """The line by which an ask is refused."""
        message = self.answer(self.send(kind, **args))
        line = message["error"]
        assert "\n" not in line and "Errno" not in line and "Traceback" not in line
        return line

    def rough(self, number):
        """The rough values of an ask."""
        return [message["rough"] for message in self.messages if message.get("id") == number and "rough" in message]

    def pushed(self, kind):
        """What was pushed of a kind."""
        return [message["value"] for message in self.messages if message.get("push") == kind]


@contextmanager
def page(*inputs, jobs, **options):
    """A page of runs or folders, with its own workspace."""
    workspace = Workspace(list(inputs), jobs=jobs, **options)
    one = Page(workspace)
    try:
        yield one
    finally:
        one.session.close()
        workspace.close()


def unpacked(text, *shape):
    """Numbers that a page got."""
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape or -1)
