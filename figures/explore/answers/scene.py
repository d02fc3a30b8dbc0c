"""The scene: all runs with what is read of them so far."""

from typing import Any

from figures.explore.ask import Ask


def scene(ask: Ask) -> dict[str, Any]:
    """What `figures.page.scene.scene` returns, each run as `figures.explore.answers.run_entry` has it.

    Returns:
        Also suggested: keys of the runs that are on the stage at first; none_yet: what to do where there is no run;
        problems: a line for each run that cannot be read.
    """
    return ask.scene.value()
