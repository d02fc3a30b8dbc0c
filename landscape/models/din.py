"""Deep Interest Network for MovieLens-1M: attention over the films that a user has seen (FedEve; papers.md 5.3)."""

from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import Tensor, nn

from landscape.models._blocks import Classifier, dense

FIELDS = ("user", "gender", "age", "occupation", "zip", "item")
"""Columns in front of the history."""

SIZES = MappingProxyType({"user": 6041, "gender": 3, "age": 8, "occupation": 22, "zip": 3440, "item": 3953})
"""Values of each field in MovieLens-1M, the padding 0 included."""

WIDTHS = MappingProxyType({"user": 15, "gender": 2, "age": 3, "occupation": 5, "zip": 15, "item": 15})
"""Widths of their embeddings."""

HISTORY = 50
"""Films of a history in the paper, padded on the left by 0."""


def build(
    shape: tuple[int, ...], classes: int, *, sizes: Mapping[str, int] = SIZES, mask_padding: bool = True
) -> nn.Module:
    """Embeddings of six fields, the history's weighted sum, MLP 70-32-16 with ReLU (feature), one logit (n, 1).

    205,398 parameters with the sizes of MovieLens-1M (embeddings 201,650, attention 931, MLP 2,817). The logit is that
    of class 1 of two, for a binary cross-entropy. The attention scores each film of the history by
    FC(60, 15) ReLU FC(15, 1) of (candidate, film, their difference, their product) and takes a softmax over the
    history, as the author's code does; the original DIN has no softmax.

    Inputs are whole numbers: one tensor (n, 6 + h) with columns user, gender, age, occupation, zip, item and the
    history, latest film last; or these seven by name or in order, the history as (n, h).

    Source: Zhou et al. 2018, section 4; papers.md 5.3.

    Args:
        shape, classes: (6 + h,) for a history of h films, 56 in the paper; classes is 2.
        sizes: Values of each field, the padding 0 included; by default those of MovieLens-1M.
        mask_padding: Give films that are padding no weight. The author's code does not mask them: False.

    Raises:
        ValueError: If the shape has no place for a history, classes is not 2, or a size is missing.
    """
    if len(shape) != 1 or shape[0] <= len(FIELDS):
        raise ValueError(
            f"inputs have shape {shape}; din takes whole numbers of shape (6 + history,): {', '.join(FIELDS)} and the "
            f"films seen, ({len(FIELDS) + HISTORY},) for MovieLens-1M."
        )
    if classes != 2:
        raise ValueError(f"classes is {classes}; din has one logit for two classes (seen or not), give 2.")
    sizes = {**SIZES, **sizes}
    if wrong := [name for name in sizes if name not in FIELDS or type(sizes[name]) is not int or sizes[name] < 1]:
        raise ValueError(
            f"sizes[{wrong[0]!r}] is {sizes[wrong[0]]!r}; sizes are whole numbers for {', '.join(FIELDS)}."
        )
    return InterestNetwork(Interest(sizes, shape[0] - len(FIELDS), mask_padding), nn.Linear(16, 1))


class InterestNetwork(Classifier):
    """head(body(x)) of packed numbers (n, 6 + h), or of the fields and the history by name or in order."""

    def forward(self, *columns: Tensor, **fields_by_name: Tensor) -> Tensor:
        return self.head(self.body(*columns, **fields_by_name))


class Interest(nn.Module):
    """Features (n, 16) of packed numbers (n, 6 + h)."""

    def __init__(self, sizes: Mapping[str, int], history: int, mask_padding: bool) -> None:
        super().__init__()
        self.history, self.mask_padding = history, mask_padding
        self.embeddings = nn.ModuleDict({name: nn.Embedding(sizes[name], WIDTHS[name]) for name in FIELDS})
        width = WIDTHS["item"]
        self.attention = nn.Sequential(*dense(4 * width, width), nn.Linear(width, 1))
        self.mlp = nn.Sequential(*dense(sum(WIDTHS.values()) + width, 32, 16))

    def forward(self, *columns: Tensor, **fields_by_name: Tensor) -> Tensor:
        inputs = packed(*columns, **fields_by_name)
        if inputs.ndim != 2 or inputs.shape[1] != len(FIELDS) + self.history or inputs.is_floating_point():
            raise ValueError(
                f"inputs have shape {tuple(inputs.shape)} and type {inputs.dtype}; din takes whole numbers of shape "
                f"(n, {len(FIELDS) + self.history}): {', '.join(FIELDS)} and {self.history} films."
            )
        history = inputs[:, len(FIELDS) :]
        vectors = {name: self.embeddings[name](inputs[:, column]) for column, name in enumerate(FIELDS)}
        seen = self.embeddings["item"](history)
        weights = self.weights(vectors["item"], seen, history)
        return self.mlp(torch.cat([*vectors.values(), (weights[..., None] * seen).sum(1)], 1))

    def weights(self, candidate: Tensor, seen: Tensor, history: Tensor) -> Tensor:
        """Attention (n, h) of candidates (n, e) over films seen (n, h, e) with numbers (n, h).

        Each row sums to 1; with masking, one without any film has zeros.
        """
        query = candidate[:, None].expand_as(seen)
        scores = self.attention(torch.cat([query, seen, query - seen, query * seen], 2))[..., 0]
        if not self.mask_padding:
            return scores.softmax(1)
        there = history != 0
        return scores.masked_fill(~there, torch.finfo(scores.dtype).min).softmax(1) * there


def packed(*fields_in_order: Tensor, **fields_by_name: Tensor) -> Tensor:
    """Fields (n,) and history (n, h), in order or by name, as one tensor (n, 6 + h); one that is packed stays.

    Raises:
        ValueError: If a field is missing or unknown.
    """
    if len(fields_in_order) == 1 and not fields_by_name:
        return fields_in_order[0]
    columns = (*FIELDS, "history")
    fields = {**dict(zip(columns, fields_in_order, strict=False)), **fields_by_name}
    if len(fields_in_order) > len(columns) or set(fields) != set(columns):
        raise ValueError(f"inputs are {', '.join(fields)}; din takes {', '.join(columns)}.")
    return torch.cat([fields[name].reshape(len(fields[name]), -1) for name in columns], 1)
