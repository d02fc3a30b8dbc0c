"""Batch-normalisation statistics, as clients and servers use them; `landscape.model.batchnorm` computes them."""

from __future__ import annotations

from landscape.model.batchnorm import normalisers, recompute_statistics, use_batches

__all__ = ["normalisers", "recompute_statistics", "use_batches"]
