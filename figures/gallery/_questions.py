"""Figures by the question that they answer, in the order of the gallery."""

from pathlib import Path

from landscape.results.parsed_text import from_toml

_TABLE = from_toml((Path(__file__).parent / "questions.toml").read_bytes())

QUESTIONS: dict[str, tuple[str, ...]] = {word: tuple(entry["figures"]) for word, entry in _TABLE.items()}
"""Names of figures by the word of their question."""

HEADINGS: dict[str, str] = {word: entry["heading"] for word, entry in _TABLE.items()}
"""Questions by their word."""
