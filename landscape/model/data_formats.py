"""`samples_from`: `Samples` of tensors, arrays, a Dataset, a DataLoader or a Hugging Face dataset."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    default_collate,
)

from landscape.model.samples import Inputs, Samples, tensors_in

TARGETS = ("labels", "label", "targets", "target")
"""Names of the column of targets in a table, the first of which counts."""

SPAN = ("start_positions", "end_positions")
"""Names of the two columns of targets of models that answer questions."""

FORMS = (
    "(inputs, targets), a Dataset or list of pairs, a DataLoader, a Hugging Face dataset, a DataFrame or a mapping of "
    "arrays with a column `labels`"
)


def samples_from(data: Any, model: nn.Module, name: str) -> Samples:
    """All samples of a split, in memory.

    Whole numbers become int64, floating numbers the type of the model's parameters. Of a table, the inputs are the
    columns that the model's `forward` names, else the column of arrays beside the targets, or the columns of single
    numbers in their order as one array (n, columns). A DataLoader is read once, in the order of its dataset where it
    draws from the whole of it; random transforms have a fixed seed.

    Args:
        data: One split.
        model: Says which columns are inputs, and its parameters have the type of floating numbers.
        name: Of the split, for messages.

    Raises:
        ValueError: If the data has another kind, or its samples differ in shape; the message names the split.
    """
    if isinstance(data, Samples):
        return data
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    try:
        inputs, targets = _pair(data, model)
        labels = _typed(targets, dtype)
        samples = Samples(_with_decoder(_typed_inputs(inputs, dtype), labels, _inner(model)), labels)
    except (ValueError, TypeError) as reason:
        raise ValueError(f"split {name!r}: {reason}") from reason
    if not len(samples):
        raise ValueError(f"split {name!r} has no samples.")
    return samples


def _pair(data: Any, model: nn.Module) -> tuple[Any, Any]:
    if isinstance(data, Mapping):
        return _split_columns(dict(data), model)
    if hasattr(data, "column_names") and hasattr(data, "with_format"):
        return _split_columns(_hugging_face_columns(data), model)
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):  # a DataFrame
        return _split_columns({str(name): np.asarray(data[name]) for name in data.columns}, model)
    if isinstance(data, TensorDataset):
        return _split_batch(data.tensors, model)
    if isinstance(data, DataLoader):
        _warn_of_draws(data.dataset, data.sampler, data.collate_fn)
        return _split_batch(_joined(_batches(data)), model)
    pairs = isinstance(data, list) and data and isinstance(data[0], tuple) and _is_array(data[0][0])
    if isinstance(data, Dataset) or pairs:
        _warn_of_draws(data)
        items = data if isinstance(data, IterableDataset) else (data[index] for index in range(len(data)))
        with _fixed_seed():
            return _split_batch(_joined(default_collate([item]) for item in items), model)
    if isinstance(data, tuple | list) and len(data) == 2 and _is_array(data[1]):
        return _split_batch(data, model)
    if isinstance(data, tuple | list) and any(isinstance(entry, DataLoader | Dataset) for entry in data):
        raise ValueError("several sets of samples were given; give one, or splits as {'train': .., 'test': ..}.")
    if isinstance(data, tuple | list) and len(data) == 2:
        raise ValueError(
            f"its targets are a {type(data[1]).__name__}; give one tensor or array of numbers. Weights of samples can "
            "be a column of it, or make_task(..., weight=...)."
        )
    raise ValueError(f"a {type(data).__name__} was given; give {FORMS}.")


def _inner(model: Any) -> Any:
    """The model, or that in a PeftModel, whose `forward` names nothing."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _with_decoder(inputs: Inputs, labels: Tensor, model: Any) -> Inputs:
    """Inputs of an encoder and a decoder of transformers: the decoder reads the labels before the one to predict."""
    shifted = getattr(model, "prepare_decoder_input_ids_from_labels", None)
    if shifted is None or isinstance(inputs, tuple):
        return inputs
    named = inputs if isinstance(inputs, dict) else {model.main_input_name: inputs}
    return named if "decoder_input_ids" in named else {**named, "decoder_input_ids": shifted(labels=labels)}


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__array__")


def _typed_inputs(inputs: Any, dtype: torch.dtype) -> Inputs:
    if isinstance(inputs, Mapping):
        return {str(name): _typed(leaf, dtype) for name, leaf in inputs.items()}
    return tuple(_typed(leaf, dtype) for leaf in inputs) if isinstance(inputs, tuple) else _typed(inputs, dtype)


def _typed(leaf: Any, dtype: torch.dtype) -> Tensor:
    """A tensor on its own memory: floating numbers in `dtype`, whole ones in int64, but pixels and truth values."""
    tensor = leaf if isinstance(leaf, Tensor) else torch.from_numpy(np.array(leaf))
    if tensor.is_floating_point():
        return tensor.to(dtype)
    return tensor if tensor.dtype in (torch.uint8, torch.bool) or tensor.is_complex() else tensor.long()


def _split_batch(batch: Any, model: nn.Module) -> tuple[Any, Any]:
    """Inputs and targets of a batch: the last part of a tuple, or a column."""
    if isinstance(batch, Mapping):
        return _split_columns(dict(batch), model)
    if not isinstance(batch, tuple | list) or len(batch) < 2:
        raise ValueError(f"its samples are a {type(batch).__name__} without targets; give (inputs, targets).")
    *inputs, targets = batch
    first = inputs[0] if len(inputs) == 1 else tuple(inputs)
    return (tuple(first) if isinstance(first, list) else first), targets


def _split_columns(columns: dict[str, Any], model: nn.Module) -> tuple[Any, Any]:
    if set(SPAN) <= set(columns):
        columns[TARGETS[0]] = torch.stack([torch.as_tensor(columns.pop(name)) for name in SPAN], 1)
    target = next((name for name in TARGETS if name in columns), None)
    if target is None:
        raise ValueError(
            f"it has the columns {', '.join(columns)}; call the column of targets one of {', '.join(TARGETS)}."
        )
    accepted = [name for name in inspect.signature(_inner(model).forward).parameters if name not in ("args", "kwargs")]
    numbers = {name: value for name, value in columns.items() if name not in TARGETS and _is_array(value)}
    named = {name: value for name, value in numbers.items() if name in accepted}
    if len(numbers) == 1 and (not named or list(named) == accepted[:1]):
        return next(iter(numbers.values())), columns[target]
    if not named and numbers and len(accepted) == 1 and all(np.ndim(value) == 1 for value in numbers.values()):
        return torch.stack([_typed(value, torch.float64).double() for value in numbers.values()], 1), columns[target]
    if not named:
        raise ValueError(
            f"its columns of numbers are {', '.join(numbers) or 'none'}; the model's forward takes "
            f"{', '.join(accepted)}: name the columns alike, or give one column of inputs."
        )
    return named, columns[target]


def _hugging_face_columns(data: Any) -> dict[str, Any]:
    """Columns of a Hugging Face dataset as tensors; a transform or format that it has is used."""
    formatted = data if data.format["type"] is not None else data.with_format("torch")
    columns = {}
    with _fixed_seed():
        table = formatted[:]
    for name, column in dict(table).items():
        if isinstance(column, list) and column and isinstance(column[0], Tensor):
            if len({tuple(row.shape) for row in column}) > 1:
                raise ValueError(f"the rows of column {name!r} differ in shape; pad or resize them.")
            column = torch.stack(column)
        columns[name] = column
    return columns


def _batches(loader: DataLoader) -> Iterable[Any]:
    """Batches of a loader: all samples in the order of the dataset, unless its sampler selects some."""
    covers_all = isinstance(loader.sampler, SequentialSampler | RandomSampler) and loader.batch_sampler is not None
    if covers_all and not isinstance(loader.dataset, IterableDataset):
        loader = DataLoader(loader.dataset, batch_size=loader.batch_size or 1, collate_fn=loader.collate_fn)
    with _fixed_seed():
        yield from loader


def _warn_of_draws(dataset: Any, sampler: Any = None, collate: Callable[[list[Any]], Any] = default_collate) -> None:
    """Say so where a sample has other values when it is read again, or samples are drawn by chance."""
    if isinstance(dataset, IterableDataset) or not len(dataset):
        return
    selected = sampler is not None and not isinstance(sampler, SequentialSampler | RandomSampler)
    with torch.random.fork_rng(devices=[]):
        reads = [tensors_in([collate([dataset[i]]) for i in range(min(4, len(dataset)))]) for _ in range(2)]
        orders = [sorted(sampler) for _ in range(2)] if selected else [[], []]
    same = all(torch.equal(once.nan_to_num(), again.nan_to_num()) for once, again in zip(*reads, strict=True))
    if not same or orders[0] != orders[1]:
        what = "its samples are drawn by chance" if same else "a sample has other values when it is read again"
        remedy = "for the loss of the data itself give it without random transforms and samplers."
        warnings.warn(f"the data is random ({what}), and one draw is taken for it; {remedy}", stacklevel=2)


def _joined(batches: Iterable[Any]) -> Any:
    """One batch of all batches: tensors in tuples and tables are concatenated."""
    listed = list(batches)
    if not listed:
        raise ValueError("it has no samples.")
    return _concatenated(listed)


def _concatenated(batches: list[Any]) -> Any:
    first = batches[0]
    if isinstance(first, Mapping):
        batches = _padded(batches) if "attention_mask" in first else batches
        return {name: _concatenated([batch[name] for batch in batches]) for name in first}
    if isinstance(first, tuple | list) and not isinstance(first[0], str):
        return tuple(_concatenated(list(column)) for column in zip(*batches, strict=True))
    if isinstance(first, int | float) or (isinstance(first, Tensor) and not first.ndim):
        raise ValueError("its loader returns single samples, not batches; give it a batch_size.")
    if not isinstance(first, Tensor):
        return [value for batch in batches for value in batch]  # texts and the like, which are no inputs
    if len({batch.shape[1:] for batch in batches}) > 1:
        raise ValueError("its batches differ in shape; pad all samples to one shape.")
    return torch.cat(batches)


def _padded(batches: list[Any]) -> list[Any]:
    """Batches of sequences at one length: places beyond a batch's own are masked, and their labels -100."""

    def at_length(batch: Any, name: str) -> Any:
        column, length = batch[name], batch["attention_mask"].shape[1]
        if not isinstance(column, Tensor) or column.ndim < 2:
            return column
        if column.shape[1] != length and name not in TARGETS and not name.startswith("decoder_"):
            return column
        longest = max(other[name].shape[1] for other in batches)
        padding = [0, 0] * (column.ndim - 2) + [0, longest - column.shape[1]]
        return torch.nn.functional.pad(column, padding, value=-100 if name in TARGETS else 0)

    return [{name: at_length(batch, name) for name in batch} for batch in batches]


@contextmanager
def _fixed_seed() -> Iterator[None]:
    """Random transforms draw the same values at every reading, and none from the user's generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
