"""Values that were used last, made once even if several threads ask for them."""

import math
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
        self._number, self._most = number, math.inf if size is None else size
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
                sizes = [entry[1] for entry in self._values.values()]
                while len(self._values) > max(1, self._number) or (len(self._values) > 1 and sum(sizes) > self._most):
                    self._values.popitem(last=False)
                    sizes.pop(0)
            return value
