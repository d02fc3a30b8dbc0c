"""Loss and error of binary classifiers with one output, the logit of class 1."""

import torch.nn.functional as F
from torch import Tensor


def binary_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """-log p of the target, p = sigmoid(logit) for 1 and 1 - sigmoid(logit) for 0, in nats.

    Args:
        outputs: Logits, shape (n, 1) or (n,).
        targets: 0 or 1, shape (n,).
    """
    logits = outputs.reshape(len(targets))
    return F.binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction="none")


def binary_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """1 where the sign of the logit (n, 1) or (n,) is not that of the target (n,), else 0; a logit of 0 is class 0."""
    return ((outputs.reshape(len(targets)) > 0) != (targets > 0)).to(outputs.dtype)
