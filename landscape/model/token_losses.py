"""Loss and error of models of text: means over the tokens of all texts, of which a label of -100 does not count."""

import torch
import torch.nn.functional as F
from torch import Tensor

from landscape.model.losses import IGNORED, SampleLoss


def counted_tokens(targets: Tensor) -> Tensor:
    """Number of labels (n, T) of every text that count, shape (n,)."""
    return (targets != IGNORED).flatten(1).sum(1)


def _entropies(outputs: Tensor, targets: Tensor) -> Tensor:
    values = F.cross_entropy(outputs.flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="none")
    return values.view(targets.shape).sum(1)


def _errors(outputs: Tensor, targets: Tensor) -> Tensor:
    wrong = (outputs.argmax(-1) != targets) & (targets != IGNORED)
    return wrong.sum(1).to(outputs.dtype).where(outputs.amax(-1).flatten(1).isfinite().all(1), torch.nan)


token_cross_entropy = SampleLoss(_entropies, counted_tokens, name="token_cross_entropy")
"""Cross-entropy of logits (n, T, V) for labels (n, T), in nats: of the next tokens or of masked ones, as labels say."""

token_error = SampleLoss(_errors, counted_tokens, name="token_error")
"""Share of tokens whose largest logit is another one than the label's: 1 minus the accuracy of tokens."""
