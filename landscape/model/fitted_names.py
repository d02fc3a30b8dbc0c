"""`Fitted`: which tensors of a checkpoint are which of a model, by names that wrappers, ties and adapters change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from landscape.model.tensor_names import adapters_of, nearest, plain_names, spellings


@dataclass(frozen=True)
class Names:
    """Names of a model's tensors, and what checkpoints call them.

    Args:
        module: The model.
    """

    module: nn.Module

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Parameters and buffers by all their names: a tied one has two."""
        parameters = dict(self.module.named_parameters(remove_duplicate=False))
        return {**parameters, **dict(self.module.named_buffers(remove_duplicate=False))}

    @cached_property
    def first(self) -> dict[str, str]:
        """For every name, the first one of the same tensor, by which the layout knows it."""
        firsts: dict[int, str] = {}
        return {name: firsts.setdefault(id(value), name) for name, value in self.tensors.items()}

    @cached_property
    def required(self) -> list[str]:
        """Trainable parameters and floating buffers that a state dict of the model has."""
        trained = [name for name, value in self.module.named_parameters() if value.requires_grad]
        stored = self.module.state_dict(keep_vars=True)
        buffers = self.module.named_buffers()
        return trained + [name for name, value in buffers if value.is_floating_point() and name in stored]

    @cached_property
    def adapters(self) -> set[str]:
        """Names of its adapters."""
        return adapters_of(self.module)

    @cached_property
    def spellings(self) -> dict[str, str]:
        """Names of the model by what checkpoints may call them; what could be two of them is left out."""
        return spellings(self.tensors, self.adapters)

    @cached_property
    def ignored(self) -> list[re.Pattern[str]]:
        """Names that the model itself says its older checkpoints have in excess."""
        every = (getattr(module, "_keys_to_ignore_on_load_unexpected", None) or () for module in self.module.modules())
        return [re.compile(pattern) for patterns in every for pattern in patterns]

    def fitted(self, entries: Mapping[str, Any]) -> Fitted:
        """The best fit of tensors, of which shape and dtype are looked at, without and with names around the model."""
        plain = plain_names(entries)
        tries = [_Try(self, entries, plain, cut, added) for cut, added in self._around(plain.values())]
        return max(
            (first_of_two.result() for first_of_two in tries),
            key=lambda fit: (fit.fits, len(fit.names) - len(fit.shapes), not fit.extra),
        )

    def _around(self, stated: Any) -> Iterator[tuple[str, str]]:
        """What may be cut from given names, or put before them: nothing, or the path of the model in another one."""
        yield "", ""
        stated = list(stated)
        targets = [name for name in self.spellings if self.first.get(self.spellings[name]) in set(self.required[:1])]
        around = {name.removesuffix(target) for target in targets for name in stated if name.endswith(f".{target}")}
        for cut in sorted(around):
            yield cut, ""
        if stated:
            last = max(stated, key=lambda name: name.count("."))
            inside = {name.removesuffix(last) for name in self.spellings if name.endswith(f".{last}")}
            for added in sorted(inside):
                yield "", added


@dataclass(frozen=True)
class Fitted:
    """Tensors of a checkpoint and the model's that they are.

    Args:
        names: Names in the model, by names in the checkpoint.
        missing: Names of the model that the checkpoint lacks.
        extra: Names of floating tensors of the checkpoint that the model has not.
        shapes: For names in the checkpoint with another shape: that shape and the model's.
        given: Number of tensors in the checkpoint.
        model: Names of the model.
    """

    names: dict[str, str]
    missing: list[str]
    extra: list[str]
    shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
    stated: int
    model: Names

    @property
    def fits(self) -> bool:
        """Whether the checkpoint is one of the model."""
        return not (self.missing or self.extra or self.shapes)

    def reason(self, stated: Mapping[str, Any]) -> str:
        """Why the checkpoint is none of the model: the first name, the nearest ones, both counts."""
        if self.names and not self.missing and not self.extra:
            name, (shape, wanted) = next(iter(self.shapes.items()))
            return (
                f"tensor {name!r} has shape {shape}, the model has {wanted} ({len(self.shapes)} of {self.stated} "
                "tensors have another shape); was it trained with another model?"
            )
        matched = set(self.names.values())
        counts = (
            f"{len(matched)} of its {self.stated} tensors are among the model's {len(set(self.model.first.values()))}"
        )
        absent, excess = "", ""
        if self.missing:
            left = [name for name in stated if name not in self.names] or list(stated)
            absent = f"it has no {self.missing[0]!r} (nearest: {nearest(self.missing[0], left)})"
        if self.extra:
            left = [name for name in self.model.spellings if name not in matched] or list(self.model.spellings)
            excess = f"the model has no tensor {self.extra[0]!r} (nearest: {nearest(self.extra[0], left)})"
        both = "; ".join(text for text in (absent, excess) if text)
        return f"{counts}: {both}; was it trained with another model?"


@dataclass(frozen=True)
class _Try:
    """One way to cut or complete the names of a checkpoint."""

    model: Names
    entries: Mapping[str, Any]
    plain: Mapping[str, str]
    cut: str
    added: str

    def result(self) -> Fitted:
        names, extra, shapes, have = dict[str, str](), [], {}, set[str]()
        for stated, value in self.entries.items():
            known = self._known(stated)
            if known is None or known in have:
                if _is_number(value) and not any(pattern.search(stated) for pattern in self.model.ignored):
                    extra.append(stated)
                continue
            have.add(known)
            names[stated] = known
            if tuple(value.shape) != (wanted := tuple(self.model.tensors[known].shape)) and _is_number(value):
                shapes[stated] = tuple(value.shape), wanted
        firsts = {self.model.first[name] for name in have}
        missing = [name for name in self.model.required if name not in firsts]
        return Fitted(names, missing, extra, shapes, len(self.entries), self.model)

    def _known(self, stated: str) -> str | None:
        """The model's name of a tensor of the checkpoint."""
        spellings = self.model.spellings
        if not self.cut and not self.added:
            return stated if stated in self.model.tensors else spellings.get(self.plain[stated])
        plain = self.plain[stated]
        return spellings.get(self.added + plain.removeprefix(self.cut)) if plain.startswith(self.cut) else None


def _is_number(value: Any) -> bool:
    return bool(value.dtype.is_floating_point or value.dtype.is_complex)


def equal_values(first_of_two: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal in the less precise type of the two."""
    if first_of_two.shape != other.shape:
        return False
    kind = min((first_of_two.dtype, other.dtype), key=lambda dtype: dtype.itemsize)
    return torch.equal(first_of_two.detach().cpu().to(kind), other.detach().cpu().to(kind))
