"""Models of any framework as vectors of parameters and floating buffers, with numpy alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Self

import numpy as np

from drift.record.tensor_parts import Narrow, entry_index
from landscape.model.tensor_names import adapters_in, adapters_of, matched_names, nearest

State = Any
"""A state dict or other mapping by name (torch tensors or arrays), a sequence of arrays in its order, or a module."""

Entry = tuple[str, tuple[int, ...]]

Vectors = tuple[np.ndarray, np.ndarray]
"""Parameters (d,) and floating buffers (b,) of a model."""

STATISTICS = ("running_mean", "running_var")
"""Last part of the names of floating buffers in a state dict."""


@dataclass(frozen=True)
class FlatArrays:
    """Places of parameters (theta) and floating buffers in vectors; other tensors are left out.

    Args:
        names: All tensors of a model, in the order of its state dict.
        parameters, buffers: Names and shapes, in the order of the vectors.
        constants: Buffers that are not in the state dict, by name.
        dtype: Type of the vectors: float64 if all parameters have it, else float32.
        adapters: Names of peft's adapters in the names, which `get_peft_model_state_dict` leaves out.
    """

    names: tuple[str, ...]
    parameters: tuple[Entry, ...]
    buffers: tuple[Entry, ...] = ()
    constants: dict[str, np.ndarray] = field(default_factory=dict, compare=False)
    dtype: str = "float32"
    adapters: frozenset[str] = frozenset()

    @classmethod
    def of(cls, model: State, parameters: Iterable[str] | None = None, buffers: Iterable[str] | None = None) -> Self:
        """The layout of a model.

        Of a torch module, parameters that require a gradient and floating buffers are taken. Of a state dict,
        floating tensors named `running_mean` or `running_var` are buffers, integers and `num_batches_tracked` are
        left out, and all others are parameters; `parameters` and `buffers` override these rules. Of tied tensors, which
        share their memory, the first counts.

        Raises:
            ValueError: If a name is unknown, a parameter is complex, or no parameter is left.
        """
        arrays = arrays_by_name(model)
        constants: dict[str, np.ndarray] = {}
        if hasattr(model, "named_parameters"):
            trained = [name for name, value in model.named_parameters() if value.requires_grad]
            model_buffers = {name: array(value) for name, value in model.named_buffers() if value.is_floating_point()}
            statistics = list(model_buffers)
            constants = {name: value for name, value in model_buffers.items() if name not in arrays}
        else:
            floating = [name for name, value in arrays.items() if _is_parameter_or_buffer(name, value)]
            statistics = [name for name in floating if name.rpartition(".")[2] in STATISTICS]
            items = list(model.items()) if isinstance(model, Mapping) else []  # held: freed memory is another's
            first = {_address(value): str(name) for name, value in reversed(items)}
            again = {str(name) for name, value in items if first[_address(value)] != str(name)}
            trained = [name for name in floating if name not in statistics and name not in again]
            trained += [name for name, value in arrays.items() if np.iscomplexobj(value) and parameters is None]
        if buffers is not None:
            statistics = list(buffers)
            trained = [name for name in trained if name not in statistics]
        if parameters is not None:
            trained = list(parameters)
            statistics = [name for name in statistics if name not in trained]
        tensors = arrays | constants
        if unknown := [name for name in (*trained, *statistics) if name not in tensors]:
            raise ValueError(f"the model has no tensor {unknown[0]!r}; it has {', '.join(list(tensors)[:8])}.")
        if complexes := [name for name in trained if np.iscomplexobj(tensors[name])]:
            raise ValueError(
                f"tensor {complexes[0]!r} is complex, and models are recorded as real numbers; record its real and "
                "imaginary parts (torch.view_as_real), or name the parameters without it."
            )
        if not trained:
            raise ValueError(f"the model has no parameters; it has {', '.join(list(tensors)[:8]) or 'nothing'}.")
        theta, rest = (tuple((name, tensors[name].shape) for name in group) for group in (trained, statistics))
        dtype = "float64" if all(tensors[name].dtype == np.float64 for name in trained) else "float32"
        adapters = adapters_of(model) if hasattr(model, "modules") else adapters_in(arrays)
        return cls(tuple(arrays), theta, rest, constants, dtype, frozenset(adapters))

    @property
    def size(self) -> int:
        """Length d of theta."""
        return sum(prod(shape) for _, shape in self.parameters)

    def vectors(self, state: State) -> Vectors:
        """theta (d,) and floating buffers (b,) of a model, copied, in `dtype`.

        Raises:
            ValueError: If a tensor is absent or has another shape; it is named.
        """
        arrays = self._arrays(state)
        return self._join(arrays, self.parameters), self._join(arrays, self.buffers)

    def completed(self, state: State, start: Vectors, narrow: Narrow = False) -> tuple[*Vectors, list[str]]:
        """The same of a client that sent a part of the tensors: the others are those of `start`, and are named.

        Args:
            narrow: Whether, or where, smaller tensors are parts of those of `start`.

        Raises:
            ValueError: If it sent none of them, one under another name, an adapter more, or one of another shape; if
                `narrow` names a tensor that there is not; or as `entry_index`.
        """
        arrays = self._arrays(state)
        names = [name for name, _ in (*self.parameters, *self.buffers)]
        stated = () if isinstance(narrow, bool) else [name for name in narrow if name not in (*names, *self.names)]
        if stated:
            near = nearest(str(stated[0]), names)
            raise ValueError(
                f"narrow states tensor {stated[0]!r}, and the run has none of this name (nearest: {near})."
            )
        remaining = [name for name in names if name not in arrays]
        foreign = [
            name for name in arrays if name not in (*names, *self.names) and _is_parameter_or_buffer(name, arrays[name])
        ]
        if remaining and (foreign or len(remaining) == len(names)):
            raise ValueError(self._absent(remaining[0], arrays))
        if more := [name for name in foreign if ".lora_" in name]:
            raise ValueError(f"the run has no adapter {more[0]!r}; record unlike adapters by `landscape.products`.")
        filled = {**(received := self.named(*start)), **arrays}
        for name in received.keys() & arrays.keys() if narrow else ():
            tensor, block = received[name].copy(), entry_index(narrow, name, received[name].shape, arrays[name].shape)
            if tensor[block].shape == arrays[name].shape:
                tensor[block], filled[name] = arrays[name], tensor
        return self._join(filled, self.parameters), self._join(filled, self.buffers), remaining

    def _arrays(self, state: State) -> dict[str, np.ndarray]:
        """Arrays by the names of the layout; wrappers and adapters may have changed those of the state."""
        stated = arrays_by_name(state, self.names)
        wanted = dict.fromkeys((*self.names, *(name for name, _ in (*self.parameters, *self.buffers))))
        names = matched_names(stated, wanted, self.adapters)
        others = stated.keys() - set(names.values())
        return (
            self.constants
            | {name: stated[spelling] for name, spelling in names.items()}
            | {name: stated[name] for name in others}
        )

    def _absent(self, name: str, arrays: Mapping[str, np.ndarray]) -> str:
        near = nearest(name, [other for other in arrays if other not in self.names] or list(arrays))
        return f"the model has no tensor {name!r} (nearest: {near}); it has {len(arrays)}, the run {len(self.names)}."

    def vectors_of(self, models: int) -> tuple[np.ndarray, np.ndarray]:
        """Zeros for a number of models, shape (models, d) and (models, b)."""
        width = sum(prod(shape) for _, shape in self.buffers)
        return np.zeros((models, self.size), self.dtype), np.zeros((models, width), self.dtype)

    def named(self, theta: np.ndarray, buffers: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters and floating buffers by name, views of the vectors."""
        views = {}
        for vector, entries in ((theta, self.parameters), (buffers, self.buffers)):
            start = 0
            for name, shape in entries:
                views[name] = vector[start : start + prod(shape)].reshape(shape)
                start += prod(shape)
        return views

    def _join(self, arrays: Mapping[str, np.ndarray], entries: Iterable[Entry]) -> np.ndarray:
        vectors = []
        for name, shape in entries:
            if name not in arrays:
                raise ValueError(self._absent(name, arrays))
            if arrays[name].shape != shape:
                raise ValueError(f"tensor {name!r} has shape {arrays[name].shape}, the run has {shape} (see `narrow`).")
            vectors.append(arrays[name].reshape(-1))
        return np.concatenate([np.zeros(0, self.dtype), *vectors], dtype=self.dtype, casting="same_kind")


MODELS = "a state dict, a module or a list of arrays"


def is_model(state: Any) -> bool:
    """Whether it has arrays by name or in order."""
    ordered = isinstance(state, Sequence) and not isinstance(state, str | bytes)
    return ordered or isinstance(state, Mapping) or hasattr(state, "state_dict")


def arrays_by_name(state: State, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Arrays of a model by name; arrays of a sequence get the `names`, or their numbers.

    Raises:
        ValueError: If it is no model, or a sequence of another length.
    """
    if hasattr(state, "state_dict"):
        state = state.state_dict()
    if isinstance(state, Mapping):
        return {str(name): array(value) for name, value in state.items()}
    if not is_model(state):
        raise ValueError(f"a model is a {type(state).__name__}; give {MODELS}.")
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


def _address(value: Any) -> tuple[Any, ...]:
    """Where a tensor or array lies in memory, and its shape: tied tensors have one place."""
    if hasattr(value, "data_ptr"):
        return value.data_ptr(), tuple(value.shape)
    return (value.ctypes.data, value.shape, value.strides) if isinstance(value, np.ndarray) else (id(value),)


def gram(start: np.ndarray, previous: np.ndarray, step: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Inner products of [start, previous update, global step, client updates], shape (m + 3, m + 3), float64.

    The numbers of `drift.store.round_record.gram`, with numpy: the sum runs over blocks of the parameters, in float64.
    """
    total = np.zeros((3 + len(deltas), 3 + len(deltas)))
    for low in range(0, len(start), _BLOCK):
        block = np.empty((len(total), min(_BLOCK, len(start) - low)))
        for row, vector in enumerate((start, previous, step)):
            block[row] = vector[low : low + _BLOCK]
        block[3:] = deltas[:, low : low + _BLOCK]
        total += block @ block.T
    return total


_BLOCK = 1 << 16


def _is_parameter_or_buffer(name: str, value: np.ndarray) -> bool:
    return np.issubdtype(value.dtype, np.floating) and not name.endswith("num_batches_tracked")
