"""Sharpness-aware gradients: the gradient at the worst point near the model instead of at the model."""

from dataclasses import dataclass

from torch import Tensor

from landscape.model.bound_model import Flat
from landscape.model.samples import Samples


@dataclass(frozen=True)
class Ascent:
    """The step to the worst point: rho T^2 g / |T g|, with T = |w| + eta on weights and 1 elsewhere, or 1 everywhere.

    Args:
        rho: Radius; 0 leaves the plain gradient.
        eta: Keeps T from 0; None: T is 1 everywhere (SAM), else ASAM.

    Source: Foret et al. 2021, equation 2; Kwon et al. 2021, equation 8. The norm is over all tensors jointly.
    """

    rho: float
    eta: float | None = None

    def gradient(self, flat: Flat, batch: Samples) -> Tensor:
        """Loss () of a minibatch at the model; the gradient at the worst point is left in the workspace.

        Batch statistics are those of the first pass.
        """
        value = flat.gradient(batch)
        if self.rho == 0:
            return value
        scale = self._scale(flat)
        scaled = flat.grad if scale is None else scale * flat.grad
        step = (scaled if scale is None else scale * scaled) * (self.rho / (scaled.norm() + 1e-16))
        theta, buffers = flat.theta.clone(), flat.buffers.clone()
        flat.theta.add_(step)
        flat.gradient(batch)
        flat.theta.copy_(theta)
        flat.buffers.copy_(buffers)
        return value

    def _scale(self, flat: Flat) -> Tensor | None:
        """T (d,), or None where it is 1."""
        if self.eta is None:
            return None
        scale = flat.theta.abs() + self.eta
        for name, span in flat.layout.slices().items():
            if "weight" not in name:
                scale[span] = 1
        return scale
