"""`read_state`: the state dict of a task's model from a file, a folder, a module, or tensors by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from landscape.model import foreign_tensors as foreign
from landscape.model.adapters import adapter_settings, require_same_adapter, settings_beside
from landscape.model.copies import HALF
from landscape.model.counters import require_same_counters
from landscape.model.file_formats import SUFFIXES, refuse_folder, weight_map
from landscape.model.fitted_names import Fitted, Names, equal_values
from landscape.model.state_dict_search import QUANTISED
from landscape.model.tensor_names import unwrapped_names
from landscape.model.unnamed_tensors import are_unnamed, name_tensors
from landscape.model.vectors import as_tensor

if TYPE_CHECKING:
    from landscape.model.task import Task

IN_FOLDER = (
    *("model.safetensors", "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin"),
    "diffusion_pytorch_model.safetensors",
)
"""Files with the weights in a folder that `save_pretrained` of transformers, peft or diffusers writes."""

INDEX = ".index.json"
"""End of the name of a table of files, over which `save_pretrained` distributes large models."""


class State(dict[str, Tensor]):
    """Tensors of a model by name; `stored_in` is the type of half precision that they come from, or ""."""

    stored_in = ""


def read_state(path: str | Path, task: Task) -> State:
    """Tensors of a checkpoint by the names of the task's model, floating ones in its type; no code is run.

    A file may hold more than a state dict. Of several state dicts one must fit the model, or be chosen by
    `m.pt[ema]`. Words of wrappers, the name of a module around the model, either name of tied weights, earlier names
    of weight norm, and names without those of adapters are read. Buffers that are not saved, and frozen parameters
    that the file lacks, are those of the task's model.

    Args:
        path: A file (torch.save, .safetensors, .npz), or a folder that `save_pretrained` wrote.
        task: Its model has the names and shapes.

    Raises:
        LookupError: If there is no such file.
        ValueError: If the file cannot be read or does not fit the model; the message names it.
    """
    file = weight_files(path)[0]
    require_same_adapter(file.parent, settings_beside(file), task.model)
    state, dtype = _of_model(_found_at(path), task), task.theta.dtype
    return _typed(state, lambda value: value.to(dtype) if value.is_floating_point() else value, task)


def read_tensors(path: str | Path) -> dict[str, Tensor]:
    """Tensors of the only state dict of a checkpoint, by its own names without the words of wrappers.

    Args:
        path: File, or folder that `save_pretrained` wrote.

    Raises:
        LookupError: If there is no such file.
        ValueError: If the file cannot be read, or has several state dicts: `m.pt[ema]` chooses one.
    """
    tensors = foreign.only(_found_at(path)).tensors()
    names = unwrapped_names(tensors)
    return {names[name]: value for name, value in tensors.items()}


def state_of(model: nn.Module | Mapping[str, Any] | list[Any], task: Task) -> State:
    """The same of a module, a state dict or the list of its values; half precision becomes float32.

    Raises:
        ValueError: If it does not fit the task's model.
    """
    if isinstance(model, nn.Module):
        require_same_adapter("the model given", adapter_settings(model), task.model)
        if any(".quantized." in type(module).__module__ for module in model.modules()):
            raise ValueError(f"{foreign.IN_MEMORY} is {QUANTISED}.")
        candidates = [foreign.FoundState(foreign.IN_MEMORY, (), Names(model).tensors, foreign.in_memory)]
    else:
        dtype = task.theta.dtype
        if isinstance(model, Mapping):
            values: Any = {name: as_tensor(value, dtype) for name, value in model.items()}
        else:
            values = [as_tensor(value, dtype) for value in model]
        candidates = foreign.state_dicts(foreign.IN_MEMORY, values, foreign.in_memory)
    return _typed(_of_model(candidates, task), lambda value: value.float() if value.dtype in HALF else value, task)


def weight_files(path: str | Path) -> list[Path]:
    """The file of a checkpoint, or the files with the weights in a folder; what is chosen in it is left out.

    Raises:
        LookupError: If there is none.
        ValueError: If the folder has a format that is not read, or a broken table of its files.
    """
    if not path:
        raise LookupError("the path of a checkpoint is empty; give that of a file or folder.")
    path, _ = foreign.split_choice(path)
    if path.is_file():
        return _named_files(path) if path.name.endswith(INDEX) else [path]
    if not path.is_dir():
        raise LookupError(
            f"no checkpoint {path}; give a file ({', '.join(SUFFIXES)}) or a folder that save_pretrained wrote."
        )
    for name in IN_FOLDER:
        if (path / name).is_file():
            return [path / name]
        if (index := path / f"{name}{INDEX}").is_file():
            return _named_files(index)
    if len(adapters := list(path.glob("*/adapter_config.json"))) == 1:  # of an adapter with a name, as peft saves it
        return weight_files(adapters[0].parent)
    refuse_folder(path, " or ".join(IN_FOLDER[:3]))
    return []


def _named_files(index: Path) -> list[Path]:
    """Files that a table of files names, in its folder."""
    files = [index.parent / name for name in weight_map(index)]
    if absent := [file.name for file in files if not file.is_file()]:
        raise LookupError(f"{index.parent} has no {absent[0]}, which its {index.name} names; copy the whole folder.")
    return files


def _typed(state: Mapping[str, Tensor], typed: Callable[[Tensor], Tensor], task: Task) -> State:
    half = [value.dtype for name, _ in task.layout.parameters if (value := state[name]).dtype in HALF]
    state_read = State({name: typed(value) for name, value in state.items()})
    state_read.stored_in = str(half[0]).removeprefix("torch.") if half else ""
    return state_read


def _found_at(path: str | Path) -> list[foreign.FoundState]:
    """State dicts of a checkpoint, or the one chosen; those of several files are one."""
    file, keys = foreign.split_choice(path)
    files = [foreign.found_in(candidate) for candidate in weight_files(path)]
    if len(files) == 1:
        return foreign.selected(files[0], keys)
    entries = {name: value for candidates in files for name, value in foreign.only(candidates).tensors().items()}
    return foreign.selected([foreign.FoundState(file, (), entries, foreign.in_memory)], keys)


def _of_model(candidates: list[foreign.FoundState], task: Task) -> dict[str, Tensor]:
    """Tensors of the state dict that fits the model, completed by what no checkpoint has."""
    named = [candidate for candidate in candidates if not are_unnamed(candidate.entries)]
    if not named:
        candidate = foreign.only(candidates)
        named = [replace(candidate, entries=name_tensors(candidate.path, candidate.tensors(), task))]
    model = Names(task.model)
    fits = [(candidate, model.fitted(candidate.entries)) for candidate in foreign.distinct(named)]
    fitting = [(candidate, fit) for candidate, fit in fits if fit.fits]
    if len(fitting) > 1:
        fitting_ids = {id(candidate.entries) for candidate, _ in fitting}
        raise ValueError(foreign.choice([candidate for candidate in named if id(candidate.entries) in fitting_ids]))
    if not fitting:
        candidate, fit = max(fits, key=lambda pair: len(pair[1].names))
        others = f" It has {len(fits)} state dicts; this one is the nearest." if len(fits) > 1 else ""
        others += f" It is of {QUANTISED}." if any(name.endswith("zero_point") for name in candidate.entries) else ""
        raise ValueError(f"{candidate.name}: {fit.reason(candidate.entries)}{others}{_advice(candidate, model)}")
    candidate, fit = fitting[0]
    require_same_counters(candidate.name, state := _completed(candidate, fit, model), task)
    return state


def _advice(candidate: foreign.FoundState, model: Names) -> str:
    """How to choose the part of a state dict that has the model's first parameter, if there is one."""
    if any("lora_" in name or name == "prompt_embeddings" for name in candidate.entries) and not model.adapters:
        return " It is an adapter: make the task of the PeftModel."
    first = next(iter(model.required), "")
    stems = sorted(
        {name.removesuffix(f".{first}") for name in candidate.entries if first and name.endswith(f".{first}")}
    )
    if stems and candidate.path == foreign.IN_MEMORY:
        return f" Give the tensors below {' or '.join(stems[:3])} alone."
    ways = " or ".join(f"'{candidate.name}{''.join(f'[{word}]' for word in stem.split('.'))}'" for stem in stems[:3])
    return f" Choose a part of it by {ways}." if stems else ""


def _completed(candidate: foreign.FoundState, fit: Fitted, model: Names) -> dict[str, Tensor]:
    read = candidate.tensors(fit.names)
    state: dict[str, Tensor] = {}
    for name, value in read.items():
        first, expected = model.first[name], model.tensors[name]
        if first in state and not equal_values(state[first], value):
            both = [spelling for spelling, known in fit.names.items() if model.first[known] == first]
            raise ValueError(
                f"{candidate.name} has other values in {both[1]!r} than in {both[0]!r}, which are one tensor in the "
                "model; its model does not tie them."
            )
        if expected.is_floating_point() and not value.is_floating_point():
            raise ValueError(
                f"{candidate.name}: {name!r} is {value.dtype}, the model has {expected.dtype}; save it unquantised."
            )
        if not _is_moved(name, expected) and not equal_values(expected, value):
            raise ValueError(
                f"{candidate.name}: {name!r}, which is not trained in the task's model, has other values there; load "
                "them into the model before make_task, or make it trainable (requires_grad_())."
            )
        state[first] = value
    statistics = [name for name in model.required if name.endswith("running_mean")]
    if statistics and any(name.rpartition(".")[2] == "n_averaged" for name in candidate.entries):
        warnings.warn(
            f"{candidate.name} is an AveragedModel: unless it was made with use_buffers=True, its statistics of "
            "BatchNorm are those of the model that it began with; torch.optim.swa_utils.update_bn computes them again.",
            stacklevel=2,
        )
    return {name: value.detach() for name, value in model.tensors.items() if model.first[name] == name} | state


def _is_moved(name: str, expected: Tensor) -> bool:
    """Whether a tensor differs between models of one task: it is trained, a statistic, or a counter."""
    if isinstance(expected, nn.Parameter):
        return expected.requires_grad
    return expected.is_floating_point() or expected.ndim == 0
