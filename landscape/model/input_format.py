"""Memory format that a module accepts for its inputs, measured by calling a copy of it on a few samples.

Convolutions are faster on channels-last images. All layers of torch return the same values for them, but `x.view(...)`
behind a convolution fails, and code that reads the memory directly reads other values.
"""

import multiprocessing
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from landscape.model.copies import copy_module
from landscape.model.samples import Inputs, call_module, leaves, map_leaves, tensors_in
from landscape.model.value_watch import ValueWatch, address
from landscape.probe import probed

PROBE = 2
"""Samples that a module is tried on; all samples if it fails on so few."""


@dataclass(frozen=True)
class Habits:
    """Requirements of a module on its inputs.

    Args:
        channels_last: It accepts channels-last images.
        copies: It changes its inputs in place, so it must be called on copies.
    """

    channels_last: bool = True
    copies: bool = False


def habits(module: nn.Module, inputs: Inputs) -> Habits:
    """Requirements of a module, measured in eval and train mode, forward and backward, without changing random states.

    Warns where images must be contiguous, which is slower.
    """
    devices = {leaf.device for leaf in leaves(inputs) if leaf.is_cuda}
    with torch.random.fork_rng(devices=list(devices)), torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = _probe_module(module, inputs)
    if not result.channels_last and multiprocessing.parent_process() is None:
        warnings.warn(
            f"{type(module).__name__} does not work on images with channels last in memory (`x.view(...)` behind "
            "a convolution does not), so images stay contiguous, and its convolutions are slower on a CPU. "
            "`x.flatten(1)` or `x.reshape(...)` instead of `view` avoids this.",
            stacklevel=2,
        )
    return result


def _probe_module(module: nn.Module, inputs: Inputs) -> Habits:
    few = map_leaves(lambda leaf: leaf[:PROBE], inputs)
    trial = _Trial(module, few)
    if trial.output(False, last=False) is None and trial.output(True, last=False) is None:
        trial = _Trial(module, inputs)
    images = any(leaf.ndim == 4 and leaf.is_floating_point() for leaf in leaves(inputs))
    return Habits(not images or all(trial.works_channels_last(training) for training in (False, True)), trial.changed)


def _unknown(leaf: Tensor) -> object:
    """Another value at each call: the tensor may have been written to."""
    return object()


def _counts(writes: Callable[[Tensor], object]) -> bool:
    tensor = torch.zeros(2)
    before = writes(tensor)
    same = before == writes(tensor)
    tensor[:1].add_(0)
    return same and before != writes(tensor)


@probed(_unknown, _counts)
def writes(leaf: Tensor) -> object:
    """Value that changes when a tensor is written to."""
    return leaf._version


class _Trial:
    """A copy of a module, called on a few inputs; `changed` records whether a call changed them."""

    def __init__(self, module: nn.Module, inputs: Inputs) -> None:
        self.module, self.inputs, self.changed = copy_module(module), inputs, False

    def works_channels_last(self, training: bool) -> bool:
        """Whether it also works on channels-last images, with the same values."""
        plain = self.output(training, last=False)
        if plain is None:
            return True  # it fails in both formats
        last_output = self.output(training, last=True)
        if last_output is None or training or _close(last_output, plain):
            return last_output is not None
        again = self.output(training, last=True)
        return again is None or not _close(last_output, again)  # random outputs cannot be compared

    def output(self, training: bool, *, last: bool) -> list[Tensor] | None:
        """Output tensors, after a backward pass from them; None if either pass fails."""
        form = torch.channels_last if last else torch.contiguous_format
        inputs = map_leaves(lambda leaf: _copy_in_format(leaf, form), self.inputs)
        before = [writes(leaf) for leaf in leaves(inputs)]
        self.module.train(training)
        watch = ValueWatch(leaves(inputs)[0])
        try:
            with watch:
                output = call_module(self.module, inputs)
            tensors = tensors_in(output)
            slopes = [leaf for leaf in tensors if leaf.requires_grad and leaf.is_floating_point()]
            if slopes:
                sum(leaf.square().sum() for leaf in slopes).backward()  # type: ignore[union-attr]
        except Exception:  # noqa: BLE001 - any error of a user's module; the real call raises it again
            return None
        finally:
            self.changed |= before != [writes(leaf) for leaf in leaves(inputs)]
            self.changed |= bool(watch.wrote & {*map(address, leaves(inputs))})
            self.module.zero_grad(set_to_none=True)
        return [leaf.detach() for leaf in tensors]


def _copy_in_format(leaf: Tensor, form: torch.memory_format) -> Tensor:
    """A copy of a tensor, in the memory format `form` if it holds images."""
    images = leaf.ndim == 4 and leaf.is_floating_point()
    return leaf.clone(memory_format=form if images else torch.contiguous_format)


def _close(actual: list[Tensor], expected: list[Tensor]) -> bool:
    return len(actual) == len(expected) and all(map(alike, actual, expected))


def alike(actual: Tensor, expected: Tensor, ulps: float = 100) -> bool:
    """Whether two outputs of a module are equal up to `ulps` times the rounding of a long sum."""
    if actual.shape != expected.shape or not (actual.is_floating_point() or actual.is_complex()):
        return torch.equal(actual, expected)
    scale = float(expected[expected.isfinite()].abs().max()) if bool(expected.isfinite().any()) else 0.0
    tolerance = ulps * torch.finfo(expected.dtype).eps ** 0.75 * scale
    return torch.allclose(actual, expected, rtol=0, atol=tolerance, equal_nan=True)
