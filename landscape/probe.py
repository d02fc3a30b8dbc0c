"""The one way to private parts of other libraries: trusted once they agree with a public way, left for good if not.

    @probed(_by_mask)
    def relu_slope(gradient: Tensor, outputs: Tensor) -> Tensor:
        return torch.ops.aten.threshold_backward(gradient, outputs, 0)

`tests/test_habits.py` refuses private parts of other libraries anywhere else. docs/architecture.md lists them.
"""

from collections.abc import Callable, Hashable
from typing import Any, Generic, ParamSpec, TypeVar

import torch
from torch import Tensor

from landscape.out_of_memory import is_out_of_memory

P = ParamSpec("P")
R = TypeVar("R")

ROUNDING = 1e-4
"""Largest difference of two ways to compute the outputs of a model, relative to the largest one.

A single function of a library may differ by 64 units in the last place of its largest value.
"""


class Probe(Generic[P, R]):
    """A function by a private part of a library, with a public way that takes over for good.

    The public way takes over if the private one raises, where the public one does not, or if its value is another one.
    Values are compared at the first call with each shape of the arguments, or by `check`. An error for want of memory
    is the caller's, who tries less with the same function.

    Attributes:
        works: False once the public way has taken over.
    """

    def __init__(
        self, private: Callable[P, R], public: Callable[P, R], check: Callable[[Callable[P, R]], bool] | None = None
    ) -> None:
        self.private, self.public, self.check = private, public, check
        self.works = True
        self._compared: set[Hashable] = set()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The value, from the private part where that can be trusted."""
        if not self.works:
            return self.public(*args, **kwargs)
        key = None if self.check else tuple(map(_shape, args))
        try:
            if self.check is not None and key not in self._compared and not self.check(self.private):
                raise ValueError("the private part does not do what is expected of it")
            value = self.private(*args, **kwargs)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            value = self.public(*args, **kwargs)  # where this raises too, the caller is wrong
            self.works = False
            return value
        if self.check is None and key not in self._compared:
            expected = self.public(*args, **kwargs)
            same = _same(value, expected)
            if not same:
                self.works = same is None  # None: nothing to compare
                return expected
        self._compared.add(key)
        return value


def probed(
    public: Callable[P, R], check: Callable[[Callable[P, R]], bool] | None = None
) -> Callable[[Callable[P, R]], Probe[P, R]]:
    """Decorator of a function that uses a private part of a library.

    Args:
        public: The same function by public parts.
        check: Whether the private function is right on an example, where values cannot be compared with the public way.
    """
    return lambda private: Probe(private, public, check)


def close_outputs(outputs: Tensor, plain: Tensor, rounding: float = ROUNDING) -> bool:
    """Whether outputs equal finite ones up to rounding."""
    scale = float(plain.abs().max()) if plain.numel() else 0.0
    return outputs.shape == plain.shape and torch.allclose(outputs, plain, rtol=0, atol=rounding * scale + 1e-30)


def _same(value: Any, expected: Any) -> bool | None:
    """Whether a tensor equals the expected one up to rounding; None where that one is not finite."""
    if type(value) is not type(expected) or value.shape != expected.shape or value.dtype != expected.dtype:
        return False
    rounding = min(ROUNDING, 64 * torch.finfo(expected.dtype).eps) if expected.is_floating_point() else 0
    return close_outputs(value, expected, rounding) if bool(torch.isfinite(expected).all()) else None


def _shape(argument: Any) -> Hashable:
    if isinstance(argument, Tensor):
        return argument.shape, argument.stride(), argument.dtype, argument.device
    return argument if isinstance(argument, str | int | float | tuple) else type(argument).__qualname__
