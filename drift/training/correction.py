"""What a method adds to the gradients of a client, and which entries it keeps fixed; for one client or a cohort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Correction:
    """g <- clipped(g + pull (w - anchor) + shift); entries in `hold` keep their bits.

    Tensors are (d,) for one client, and (m, d) for a cohort (`stack_corrections`). After a step, entries that must not
    move are restored by `pinned`: rounding, weight decay and moments change entries whatever their gradient is.

    Args:
        pull: Weight mu of mu/2 |w - anchor|^2; its gradient is added.
        anchor: What w is pulled to.
        unit: The penalty is mu/2 |w - anchor|, so that its gradient has length mu/2.
        shift: Added as it is.
        clip: Largest norm of the corrected gradient; None: any.
        hold: Entries that stay as they are, bool (d,).
        decay: Weight decay that their gradient takes back, so that moments of SGD forget them.
    """

    pull: float = 0.0
    anchor: Tensor | None = None
    unit: bool = False
    shift: Tensor | None = None
    clip: float | None = None
    hold: Tensor | None = None
    decay: float = 0.0

    def __call__(self, gradient: Tensor, theta: Tensor) -> None:
        """Correct the gradient (.., d) at theta (.., d) in place."""
        if self.anchor is not None and self.pull != 0:
            away = theta - self.anchor
            if self.unit:
                away /= 2 * _norms(away)
            gradient.add_(away, alpha=self.pull)
        if self.shift is not None:
            gradient.add_(self.shift)
        if self.clip is not None:
            gradient.mul_((self.clip / _norms(gradient)).clamp(max=1))
        if self.hold is not None:
            gradient.copy_(torch.where(self.hold, -self.decay * theta, gradient))

    def pinned(self, theta: Tensor) -> Pinned | None:
        """The entries of models (.., d) that stay as they are now; None where all move."""
        return None if self.hold is None else Pinned(self.hold.nonzero().flatten(), theta)

    def first(self, count: int) -> Correction:
        """The correction of the first rows of a cohort."""
        anchor, shift = (None if rows is None else rows[:count] for rows in (self.anchor, self.shift))
        return replace(self, anchor=anchor, shift=shift)


class Pinned:
    """Fixed entries of models (.., d), restored after every step.

    Args:
        places: Numbers of the entries, shape (n,).
        theta: The models.
    """

    def __init__(self, entries: Tensor, theta: Tensor) -> None:
        self.entries, self.values = entries, theta[..., entries]

    def restore(self, theta: Tensor) -> None:
        """Restore the values in one model (d,), or in the first rows (.., d) of the models."""
        theta[..., self.entries] = self.values if theta.ndim == 1 else self.values[: len(theta)]


def stack_corrections(corrections: Sequence[Correction | None]) -> Correction | None:
    """Corrections of several clients as one of their rows; those of one method differ in tensors only.

    Raises:
        ValueError: If some have a tensor that others lack, or other numbers.
    """
    present = [correction for correction in corrections if correction is not None]
    if not present:
        return None
    first = present[0]
    kinds = {(c.pull, c.unit, c.clip, c.decay, c.anchor is None, c.shift is None, c.hold is None) for c in present}
    if len(present) < len(corrections) or len(kinds) > 1:
        raise ValueError("clients of one cohort have corrections of different kinds; train them by the serial engine.")
    rows: dict[str, Any] = {
        name: torch.stack([getattr(correction, name) for correction in present])
        for name in ("anchor", "shift")
        if getattr(first, name) is not None
    }
    return replace(first, **rows)


def _norms(rows: Tensor) -> Tensor:
    return rows.norm(dim=-1, keepdim=True).clamp(min=1e-12)
