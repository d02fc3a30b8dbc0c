"""Values that were used last, made once even if several threads ask for them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class Shelf:
    """The values used last.

    Args:
        number: Most values.
        size: Most bytes of all, where their sizes are known; the last one stays whatever its size.
    """

    def __init__(self, number: int, size: int | None = None) -> None:
        self._number, self._size = number, size
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any], size: Callable[[Any], int] = lambda value: 0) -> Any:
        """The value of a key, made by the first who asks; others wait for it."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._values:
                    return self._values[key][0]
            value = make()
            with self._lock:
                self._values[key] = value, size(value)
                self._making.pop(key, None)
                while len(self._values) > 1 and (len(self._values) > self._number or self._bytes() > self._most):
                    self._values.popitem(last=False)
            return value

    @property
    def _most(self) -> float:
        return float("inf") if self._size is None else self._size

    def _bytes(self) -> int:
        return sum(size for _, size in self._values.values())
