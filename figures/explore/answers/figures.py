"""The figures of the gallery, by the question that they answer."""

from typing import Any

from figures import gallery
from figures.explore.ask import Ask
from figures.gallery._questions import HEADINGS, QUESTIONS
from landscape import plugins


def figures(ask: Ask) -> list[dict[str, Any]]:
    """name, question (a sentence), shows, needs and cost of each, in the order of the gallery."""
    ordered = [(name, HEADINGS[question]) for question, names in QUESTIONS.items() for name in names]
    return [
        {"name": name, "question": question, "shows": plugins.describe("figures.gallery", name)}
        | {field: gallery.constant(name, field.upper()) for field in ("needs", "cost")}
        for name, question in ordered
    ]
