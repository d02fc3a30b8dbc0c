"""`Model`: a parameter vector that carries the floating buffers of its model, such as running statistics."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from landscape.results.notebook_table import notebook_table

_SAME: frozenset[Any] = frozenset(
    getattr(Tensor, name) for name in ("clone", "detach", "to", "cpu", "cuda", "double", "float", "half")
)
"""Operations whose result is the same model."""


class Model(Tensor):
    """Parameters (d,) of a model with its floating buffers (b,); or those of m models, (m, d) with (m, b).

    It is a tensor, and is calculated with as one. Copies, conversions, rows and stacks of models keep their buffers.
    The result of any other operation, such as a mean, is a plain tensor: which batch statistics a combination of models
    has is to be said, not guessed.

        end = run.round(-1).end
        end.buffers                      # running statistics
        end - run.round(-1).start        # a plain vector (d,)
        landscape.Model(vector, end.buffers)

    Args:
        theta: Parameters, shape (d,) or (m, d); shared, not copied.
        buffers: Floating buffers in the order of `task.layout`, shape (b,) or (m, b).

    Raises:
        ValueError: If there are not as many rows of buffers as models.
    """

    buffers: Tensor

    def __new__(cls, theta: Tensor, buffers: Tensor) -> Model:
        if theta.ndim not in (1, 2) or buffers.shape[:-1] != theta.shape[:-1] or buffers.ndim != theta.ndim:
            raise ValueError(
                f"parameters have shape {tuple(theta.shape)} and buffers {tuple(buffers.shape)}; give (d,) and (b,) of "
                "one model, (m, d) and (m, b) of several."
            )
        model = theta.as_subclass(cls)
        model.buffers = buffers
        return model

    def __repr__(self) -> str:  # type: ignore[override] # torch's takes contents
        """One line: models, parameters and buffer entries."""
        models = f"{len(self)} models" if self.ndim == 2 else "a model"
        return f"Model({models} of {self.shape[-1]} parameters and {self.buffers.shape[-1]} buffer entries)"

    def _repr_html_(self) -> str:
        """A small table for notebooks: shapes and type of number."""
        rows = {"parameters": tuple(self.shape), "buffers": tuple(self.buffers.shape), "type": str(self.dtype)}
        return notebook_table(repr(self), rows)

    @property
    def theta(self) -> Tensor:
        """The parameters as a plain tensor, which shares their memory."""
        return self.as_subclass(Tensor)

    def __iter__(self) -> Iterator[Any]:
        """Models one by one; of one model, its parameters."""
        return iter([self[row] for row in range(len(self))]) if self.ndim == 2 else super().__iter__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return Model(copy.deepcopy(self.theta, memo), copy.deepcopy(self.buffers, memo))

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        result = Tensor.__torch_function__(func, (), args, options)
        first, *rest = args or (None,)
        if func in (torch.stack, torch.cat):
            models = list(first) if isinstance(first, Sequence) else []
            if models and not rest and not options and all(isinstance(model, Model) for model in models):
                return Model(result, func([model.buffers for model in models]))
        elif isinstance(first, Model):
            if func in _SAME:
                return Model(result, func(first.buffers, *rest, **options))
            if func is Tensor.__getitem__ and _keeps_rows(rest[0], first.ndim):
                return Model(result, first.buffers[rest[0]])
        return result


def plain(theta: Tensor) -> Tensor:
    """Parameters as a plain tensor, which shares their memory."""
    return theta.theta if isinstance(theta, Model) else theta


def with_buffers(theta: Tensor, buffers: Tensor) -> Tensor:
    """A `Model` of parameters and buffers; the plain parameters where a model has no buffers."""
    return Model(theta, buffers) if buffers.shape[-1] else plain(theta)


def buffers_of(theta: Tensor) -> Tensor | None:
    """The buffers that models carry; None for plain vectors."""
    return theta.buffers if isinstance(theta, Model) else None


def _keeps_rows(key: Any, dimensions: int) -> bool:
    """Whether an index takes models as they are: rows of several, or one with a dimension before it."""
    if dimensions == 1:
        return key is None
    if isinstance(key, Tensor | np.ndarray):
        return key.ndim <= 1 and not (key.ndim == 0 and key.dtype in (torch.bool, np.bool_))
    return isinstance(key, slice | list | int | np.integer) and not isinstance(key, bool)
