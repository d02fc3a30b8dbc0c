"""FedAdagrad, Adagrad on the server."""

from __future__ import annotations

from torch import Tensor

from drift.fedopt import FedOpt


class FedAdagrad(FedOpt):
    """V' = V + d^2 in w' = w + server_lr M' / (sqrt(V') + tau); the steps shrink for good.

    Source: Reddi et al. 2021, algorithm 2 (beta1 = 0 there); other defaults as for FedAdam.
    """

    def variance(self, before: Tensor, squares: Tensor) -> Tensor:
        """Sum of all squares."""
        return before + squares
