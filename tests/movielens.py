"""A tiny made-up rating table in the format of MovieLens-1M."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SIZES = {"user": 6, "zip": 5, "item": 24}
"""Numbers of values with the padding 0, as `task.model_options.sizes` of din."""

TASK = {
    "dataset": "movielens1m",
    "model": "din",
    "dataset_options": {"any_size": True, "history": 4},
    "model_options": {"sizes": SIZES},
}
"""A small network that ranks the films."""


def write(folder: Path, *, seed: int = 0) -> dict[int, list[int]]:
    """Writes the three files; returns the films of each of the 5 users in the order of time (user 4 rated one)."""
    source = np.random.default_rng(seed)
    items = np.arange(1, 24)
    films = {
        user: source.permutation(items)[:count].tolist()
        for user, count in zip(range(1, 6), (7, 12, 3, 1, 9), strict=True)
    }
    lines = [
        (f"{user}::{film}::{source.integers(1, 6)}::{978300000 + 10 * place}")
        for user, own in films.items()
        for place, film in enumerate(own)
    ]
    people = [
        ("F", 1, 10, "48067"),
        ("M", 56, 16, "70072"),
        ("M", 25, 15, "55117"),
        ("F", 45, 7, "02460"),
        ("M", 25, 20, "55117"),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ratings.dat").write_text("\n".join(source.permutation(lines)) + "\n")
    (folder / "users.dat").write_text(
        "".join(f"{user}::{'::'.join(map(str, about))}\n" for user, about in enumerate(people, start=1))
    )
    (folder / "movies.dat").write_text(
        "".join(f"{item}::Amélie {item} (2001)::Comedy|Drama\n" for item in items), encoding="latin-1"
    )
    return films
