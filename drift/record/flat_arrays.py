"""Models of any framework as vectors: names and shapes of parameters and floating buffers, with numpy alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

State = Any
"""A state dict or other mapping by name (torch tensors or arrays), a sequence of arrays in its order, or a module."""

Entry = tuple[str, tuple[int, ...]]

STATISTICS = ("running_mean", "running_var")
"""Last part of the names of floating buffers, where a state dict alone says what is one."""


@dataclass(frozen=True)
class FlatArrays:
    """Where parameters (theta) and floating buffers lie; what is in neither is left out.

    Args:
        names: Everything that a model holds, in the order of its state dict.
        parameters, buffers: Names and shapes, in the order in which they lie in the vectors.
        constants: Buffers that a state dict does not hold, by name.
        dtype: Of the vectors: float64 where all parameters are, else float32.
    """

    names: tuple[str, ...]
    parameters: tuple[Entry, ...]
    buffers: tuple[Entry, ...] = ()
    constants: dict[str, np.ndarray] = field(default_factory=dict, compare=False)
    dtype: str = "float32"

    @classmethod
    def of(
        cls, model: State, parameters: Iterable[str] | None = None, buffers: Iterable[str] | None = None
    ) -> FlatArrays:
        """The layout of a model.

        A torch module says itself what its parameters (that require a gradient) and floating buffers are. Of a state
        dict, floating tensors named `running_mean` or `running_var` are buffers, integers and `num_batches_tracked`
        are left out, and all else are parameters; `parameters` and `buffers` name them where that is wrong.

        Raises:
            ValueError: If a name is unknown, or no parameter is left.
        """
        held = named(model)
        constants: dict[str, np.ndarray] = {}
        if hasattr(model, "named_parameters"):
            found = [name for name, value in model.named_parameters() if value.requires_grad]
            own = {name: array(value) for name, value in model.named_buffers() if value.is_floating_point()}
            statistics = list(own)
            constants = {name: value for name, value in own.items() if name not in held}
        else:
            floating = [name for name, value in held.items() if _counts(name, value)]
            statistics = [name for name in floating if name.rpartition(".")[2] in STATISTICS]
            found = [name for name in floating if name not in statistics]
        if buffers is not None:
            statistics = list(buffers)
            found = [name for name in found if name not in statistics]
        if parameters is not None:
            found = list(parameters)
            statistics = [name for name in statistics if name not in found]
        known = held | constants
        if unknown := [name for name in (*found, *statistics) if name not in known]:
            raise ValueError(f"the model has no tensor {unknown[0]!r}; it has {', '.join(list(known)[:8])}.")
        if not found:
            raise ValueError(f"the model has no parameters; it has {', '.join(list(known)[:8]) or 'nothing'}.")
        theta, rest = (tuple((name, known[name].shape) for name in group) for group in (found, statistics))
        dtype = "float64" if all(known[name].dtype == np.float64 for name in found) else "float32"
        return cls(tuple(held), theta, rest, constants, dtype)

    @property
    def size(self) -> int:
        """Length d of theta."""
        return sum(prod(shape) for _, shape in self.parameters)

    def vectors(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """theta (d,) and floating buffers (b,) of a model, copied, in `dtype`.

        Raises:
            ValueError: If a tensor is absent or has another shape; it is named.
        """
        held = self.constants | named(state, self.names)
        return self._joined(held, self.parameters), self._joined(held, self.buffers)

    def vectors_of(self, models: int) -> tuple[np.ndarray, np.ndarray]:
        """Room for so many models, shape (models, d) and (models, b)."""
        width = sum(prod(shape) for _, shape in self.buffers)
        return np.zeros((models, self.size), self.dtype), np.zeros((models, width), self.dtype)

    def named(self, theta: np.ndarray, buffers: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters and floating buffers by name, views of the vectors."""
        found = {}
        for vector, entries in ((theta, self.parameters), (buffers, self.buffers)):
            start = 0
            for name, shape in entries:
                found[name] = vector[start : start + prod(shape)].reshape(shape)
                start += prod(shape)
        return found

    def _joined(self, held: Mapping[str, np.ndarray], entries: Iterable[Entry]) -> np.ndarray:
        parts = []
        for name, shape in entries:
            if name not in held:
                raise ValueError(f"the model has no tensor {name!r}; it has {', '.join(list(held)[:8])}.")
            if held[name].shape != shape:
                raise ValueError(f"tensor {name!r} has shape {held[name].shape}, the run has {shape}.")
            parts.append(held[name].reshape(-1))
        return np.concatenate([np.zeros(0, self.dtype), *parts], dtype=self.dtype, casting="same_kind")


def named(state: State, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Arrays of a model by name; those of a sequence are called `names`, or by their numbers.

    Raises:
        ValueError: If it is no model, or a sequence of another length.
    """
    if hasattr(state, "state_dict"):
        state = state.state_dict()
    if isinstance(state, Mapping):
        return {str(name): array(value) for name, value in state.items()}
    if not isinstance(state, Sequence) or isinstance(state, str | bytes):
        raise ValueError(f"a model is a {type(state).__name__}; give a state dict, a module or a list of arrays.")
    if names and len(names) != len(state):
        raise ValueError(f"a model has {len(state)} arrays, the run has {len(names)}.")
    return {name: array(value) for name, value in zip(names or map(str, range(len(state))), state, strict=True)}


def array(value: Any) -> np.ndarray:
    """A tensor or array as a numpy array; bfloat16 becomes float32."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
        value = value.numpy()
    elif not isinstance(value, np.ndarray) and callable(getattr(value, "numpy", None)):
        value = value.numpy()
    return np.asarray(value)


def gram(start: np.ndarray, previous: np.ndarray, step: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Inner products of [start, previous update, global step, client updates], shape (m + 3, m + 3), float64.

    The numbers of `drift.store.gram.gram`, with numpy: the sum runs over blocks of the parameters, in float64.
    """
    total = np.zeros((3 + len(deltas), 3 + len(deltas)))
    for low in range(0, len(start), _BLOCK):
        part = np.empty((len(total), min(_BLOCK, len(start) - low)))
        for row, vector in enumerate((start, previous, step)):
            part[row] = vector[low : low + _BLOCK]
        part[3:] = deltas[:, low : low + _BLOCK]
        total += part @ part.T
    return total


_BLOCK = 1 << 16


def _counts(name: str, value: np.ndarray) -> bool:
    return np.issubdtype(value.dtype, np.floating) and not name.endswith("num_batches_tracked")
