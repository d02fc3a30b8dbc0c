"""Adam on a few tensors, by the function that `torch.optim.Adam` itself calls."""

from collections.abc import Iterable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.optim.adam import adam

_plain = partial(adam, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)


class Adam:
    """First and second moments of some tensors, which are changed in place.

    The bits are those of `torch.optim.Adam`; its class loads torch's compiler first, which takes longer than many
    trainings.

    Args:
        tensors: Of any shapes.
        betas: Decay of both moments.
    """

    def __init__(self, tensors: Iterable[Tensor], betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.tensors, self.betas = list(tensors), betas
        self._means, self._squares = ([torch.zeros_like(tensor).detach() for tensor in self.tensors] for _ in range(2))
        self._steps = [torch.tensor(0.0) for _ in self.tensors]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], lr: float) -> None:
        """One step against the gradients of the tensors, at this rate."""
        largest: list[Tensor] = []
        beta1, beta2 = self.betas
        steps = (self._means, self._squares, largest, self._steps)
        _plain(self.tensors, list(gradients), *steps, lr=lr, beta1=beta1, beta2=beta2)
