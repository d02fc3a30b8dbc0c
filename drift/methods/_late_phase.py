"""Local settings of the late phase of IMA."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from drift.config.experiment import Local

if TYPE_CHECKING:
    from drift.methods.ima import IMA


def late_local(ima: IMA, plain: Callable[[int], Local], start: int, since: int) -> Local:
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
        ima: The method.
        plain: Settings of a round as they would be without IMA.
        start: First round of the late phase.
        since: Rounds since then, from 0.
    """
    now, at_start = plain(start + since), plain(start)
    if ima.late == "na":
        return now
    if ima.late == "epoch":
        epochs = max(1, now.epochs - since // ima.epoch_every)
        rate = plain(since).lr if ima.restart_lr else now.lr
        return now.model_copy(update={"epochs": epochs, "lr": rate})
    if ima.late == "exp":
        rate = at_start.lr * ima.late_factor**since
    elif ima.late == "const":
        rate = ima.const_lr
    elif ima.late == "stage":
        rate = at_start.lr * 0.5 ** (since // ima.halve_every)
    elif ima.cyclic == "sawtooth":
        rate = ima.lr_max - (ima.lr_max - ima.lr_min) * (since % ima.cycle) / (ima.cycle - 1)
    else:
        rate = ima.lr_min + (at_start.lr - ima.lr_min) * abs(1 - 2 * (since / ima.cycle % 1))
    return now.model_copy(update={"lr": rate})
