"""Sliders for the weights of a cohort and for gamma."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import param
from panel.custom import JSComponent

STYLE = """
.sliders { display: flex; flex-direction: column; gap: 2px; max-height: 420px; overflow-y: auto; color: var(--text); }
.sliders label { display: grid; gap: 8px; align-items: center;
  grid-template-columns: 76px minmax(80px, 1fr) 46px 74px; }
.sliders input { width: 100%; min-width: 0; accent-color: var(--accent); }
.sliders output { text-align: right; font-variant-numeric: tabular-nums; }
.sliders button { font: inherit; font-size: 12px; padding: 1px 6px; color: var(--muted); background: none;
  border: 1px solid var(--line); border-radius: 6px; cursor: pointer; }
"""


class Sliders(JSComponent):
    """One slider per name, whose values sum to 1, and one for gamma.

    Args:
        on_move: Called with (weights, gamma, done) while a slider moves, and with done when it is released.
    """

    names = param.List([], item_type=str)
    weights = param.List([], item_type=float)
    gamma = param.Number(1.0)
    stamp = param.Integer(0, doc="Raised when weights and gamma are set from here.")

    _esm = Path(__file__).with_name("sliders.js")
    _stylesheets: ClassVar[list[str]] = [STYLE]

    def __init__(self, on_move: Callable[[list[float], float, bool], Any], **options: Any) -> None:
        super().__init__(**options)
        self._on_move = on_move

    def move(self, names: Sequence[str], weights: Sequence[float], gamma: float) -> None:
        """Set the sliders; nothing is reported."""
        values = [float(weight) for weight in weights]
        if list(names) == self.names and values == self.weights and gamma == self.gamma:
            return
        self.param.update(weights=values, gamma=float(gamma), names=list(names), stamp=self.stamp + 1)

    def _handle_msg(self, data: dict[str, Any]) -> None:
        weights, gamma = [float(value) for value in data.get("weights", [])], float(data.get("gamma", 1))
        try:
            if len(weights) == len(self.names):
                with param.discard_events(self):
                    self.weights, self.gamma = weights, gamma
                self._on_move(weights, gamma, bool(data.get("done")))
        finally:
            self._send_msg({"ack": True})
