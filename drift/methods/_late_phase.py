"""Local settings late in training, as IMA changes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from drift.config.experiment import Local
    from drift.methods.ima import IMA

Late = Literal["exp", "const", "cyclic", "epoch", "na", "stage"]


def late_local(options: IMA, plain: Callable[[int], Local], start: int, since: int) -> Local:
    """Local settings of round start + since; with u = since and lr_s the plain rate of round start:

        exp     lr = lr_s late_factor^u
        const   lr = const_lr
        cyclic  sawtooth: lr = lr_max - (lr_max - lr_min) (u mod c) / (c - 1)
                triangular: down from lr_s to lr_min in c / 2 rounds, and up again
        epoch   E = max(1, E - floor(u / epoch_every)), the rate as without IMA
        na      nothing changes
        stage   lr = lr_s 0.5^floor(u / halve_every)

    Source: Zhou et al. 2024, section 6.3; stage and triangular from the released code.

    Args:
        options: Factors, periods and bounds.
        plain: Settings of a round as they would be without IMA.
        start: First round of the late phase.
        since: Rounds since then, from 0.
    """
    now, at_start = plain(start + since), plain(start)
    if options.late == "na":
        return now
    if options.late == "epoch":
        epochs = max(1, now.epochs - since // options.epoch_every)
        rate = plain(since).lr if options.restart_lr else now.lr
        return now.model_copy(update={"epochs": epochs, "lr": rate})
    if options.late == "exp":
        rate = at_start.lr * options.late_factor**since
    elif options.late == "const":
        rate = options.const_lr
    elif options.late == "stage":
        rate = at_start.lr * 0.5 ** (since // options.halve_every)
    elif options.cyclic == "sawtooth":
        rate = options.lr_max - (options.lr_max - options.lr_min) * (since % options.cycle) / (options.cycle - 1)
    else:
        rate = _triangle(at_start.lr, options.lr_min, since / options.cycle)
    return now.model_copy(update={"lr": rate})


def _triangle(top: float, bottom: float, cycles: float) -> float:
    """Value after a number of cycles, each from top to bottom and back."""
    return bottom + (top - bottom) * abs(1 - 2 * (cycles % 1))
