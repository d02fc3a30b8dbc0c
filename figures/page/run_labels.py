"""Short labels of runs on the stage: the method, and the settings that tell a run from others of its method."""

from collections.abc import Sequence

MOST, LONGEST = 2, 24
"""Settings in a label, and letters of a value in it."""

TASK = ("task.dataset", "task.model")
"""Settings that are in every label where they differ: numbers of other data or models are not compared unawares."""


def run_labels(methods: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The label of each run: its method, those of `TASK` that differ, and at most two settings, those that few others
    of the method share.

    Args:
        methods: Label of the method of each run.
        rows: Settings that differ: name and the value of each run as a text, empty where the run has none. Labels of
            runs that two settings do not tell from each other are equal.
    """
    labels, task = [], [(name, values) for name, values in rows if name in TASK]
    firsts = [
        ", ".join(
            [method, *(_words(name, values[index]) for name, values in task if 0 < len(values[index]) <= LONGEST)]
        )
        for index, method in enumerate(methods)
    ]
    for index, first in enumerate(firsts):
        rest = [other for other, name in enumerate(firsts) if name == first and other != index]
        words = [first]
        while rest and len(words) <= MOST:
            same = {
                name: [other for other in rest if values[other] == values[index]]
                for name, values in rows
                if 0 < len(values[index]) <= LONGEST
            }
            best = min(same, key=lambda name: len(same[name]), default="")
            if not best or len(same[best]) == len(rest):
                break
            words.append(_words(best, dict(rows)[best][index]))
            rest = same[best]
        labels.append(", ".join(words))
    return labels


def _words(setting: str, value: str) -> str:
    """A setting in words: clients.partition.name is partition, local.lr is lr, keep.clients is kept clients."""
    *above, last = setting.split(".")
    word = above[-1] if above and last in ("name", "number") else f"kept {last}" if above == ["keep"] else last
    return f"{value} {'round' if value == '1' else word}" if word == "rounds" else f"{word.replace('_', ' ')} {value}"
