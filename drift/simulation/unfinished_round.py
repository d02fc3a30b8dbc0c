"""A trained round whose Gram matrix is computed by the thread that writes it, as no later round needs it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from drift.store.round_record import Round


@dataclass(frozen=True)
class UnfinishedRound:
    """A round and what computes its Gram matrix.

    Args:
        record: The round, without the matrix if `products` is stated.
        products: Computes the matrix, shape (m + 3, m + 3); None where it is there.
    """

    record: Round
    products: Callable[[], Tensor] | None = None

    def finished(self) -> Round:
        """The round with its Gram matrix."""
        return self.record if self.products is None else replace(self.record, gram=self.products())
