"""Samples as cards on the page: a small picture or its first numbers, its class, and what was predicted."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

WIDTH = 66
"""Pixels of a card's picture."""


@dataclass(frozen=True)
class Card:
    """One sample.

    Args:
        number: Its number in the split.
        truth: Its class, in words.
        predictions: What each model predicts: the model and the class, in words.
        loss: Loss of the model, in the task's unit.
    """

    number: int
    truth: str
    predictions: tuple[tuple[str, str], ...]
    loss: float


def cards(samples: Sequence[Card], contents: Sequence[bytes] | np.ndarray) -> str:
    """The cards as HTML; texts are escaped.

    Args:
        samples: One per card.
        contents: PNG files, or numbers (n, f).
    """
    texts = [_card(card, content) for card, content in zip(samples, contents, strict=True)]
    style = "display: flex; flex-wrap: wrap; gap: 8px; align-items: flex-start"
    return f'<div class="cards" role="list" style="{style}">{"".join(texts)}</div>'


def _card(card: Card, content: bytes | np.ndarray) -> str:
    predicted = ", ".join(f"{model}: {name}" for model, name in card.predictions)
    words = html.escape(f"sample {card.number}, class {card.truth}; {predicted}; loss {card.loss:.3g}", quote=True)
    lines = "".join(
        f"<div>{'=' if name == card.truth else '&#8800;'} {html.escape(name)}</div>" for _, name in card.predictions
    )
    style = f"margin: 0; width: {WIDTH}px; font-size: 11px; line-height: 1.25; overflow-wrap: anywhere"
    caption = f"<figcaption><strong>{html.escape(card.truth)}</strong>{lines}</figcaption>"
    return f'<figure role="listitem" title="{words}" style="{style}">{_content(content, words)}{caption}</figure>'


def _content(content: bytes | np.ndarray, words: str) -> str:
    if isinstance(content, bytes):
        code = base64.b64encode(content).decode()
        style = f"width: {WIDTH}px; height: {WIDTH}px; object-fit: contain; image-rendering: pixelated"
        return f'<img src="data:image/png;base64,{code}" alt="{words}" style="{style}">'
    numbers = " ".join(f"{value:.3g}" for value in np.ravel(content))
    return f'<div role="img" aria-label="{words}"><code>{numbers}</code></div>'
