"""Several rounds in one figure: a slider that shows one of them, and a button that plays all."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

Traces = list[Any]

STEP = 350
"""Milliseconds per round while the rounds are played."""


def sliding(
    figure: go.Figure, frames: Sequence[Traces], rounds: Sequence[int], layouts: Sequence[dict[str, Any]] | None = None
) -> None:
    """Add the traces of every round to a figure, and a slider that selects the round shown, at first the last one.

    Args:
        frames: Traces of each round.
        rounds: Their numbers.
        layouts: What changes in the layout with the round.
    """
    before, last = len(figure.data), len(frames) - 1
    owners = [-1] * before
    for index, traces in enumerate(frames):
        for trace in traces:
            trace.visible = index == last
            figure.add_trace(trace)
            owners.append(index)
    if len(frames) < 2:
        return
    steps = []
    for index, number in enumerate(rounds):
        visible = {"visible": [owner in (-1, index) for owner in owners]}
        changes = layouts[index] if layouts else {}
        steps.append({"label": str(number), "method": "update", "args": [visible, changes]})
    figure.update_layout(sliders=[{**_slider(steps), "x": 0.03, "len": 0.94}], margin={"b": 124})


def playing(figure: go.Figure, frames: Sequence[Traces], rounds: Sequence[int]) -> None:
    """Add the traces of the last round to a figure, a slider over the rounds, and buttons that play and pause them.

    All traces of a round come in one frame without a transition, so that none of them runs behind another. Nothing
    moves before the button is pressed; for a file of its own, write it with `write_html(path, auto_play=False)`.

    Args:
        frames: Traces of each round, of the same kinds in the same order.
        rounds: Their numbers.
    """
    first = len(figure.data)
    moving = list(range(first, first + len(frames[-1])))
    figure.add_traces(frames[-1])
    figure.frames = [
        go.Frame(name=str(number), data=traces, traces=moving) for number, traces in zip(rounds, frames, strict=True)
    ]
    if len(frames) < 2:
        return
    at_once = {"mode": "immediate", "transition": {"duration": 0}}
    steps = [
        {
            "label": str(number),
            "method": "animate",
            "args": [[str(number)], {**at_once, "frame": {"duration": 0, "redraw": True}}],
        }
        for number in rounds
    ]
    ongoing = {**at_once, "fromcurrent": True, "frame": {"duration": STEP, "redraw": True}}
    buttons = [
        {"label": "Play", "method": "animate", "args": [None, ongoing]},
        {"label": "Pause", "method": "animate", "args": [[None], {**at_once, "frame": {"duration": 0}}]},
    ]
    menu = {
        "type": "buttons",
        "direction": "left",
        "showactive": False,
        "buttons": buttons,
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yanchor": "top",
        "pad": {"t": 62},
    }
    slider = {**_slider(steps), "x": 0.24, "len": 0.76}
    figure.update_layout(sliders=[slider], updatemenus=[menu], margin={"b": 120})


def _slider(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"active": len(steps) - 1, "steps": steps, "currentvalue": {"prefix": "round "}, "pad": {"t": 40}}
