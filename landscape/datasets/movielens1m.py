"""MovieLens-1M, 1,000,209 ratings of 3,883 films by 6,040 users, read from your own download (Harper, Konstan 2015)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from landscape.datasets import _movielens, _split
from landscape.datasets._dataset import Dataset, Groups, fingerprint
from landscape.datasets._movielens import FIELDS, Ratings
from landscape.samples import Samples


def load(
    folder: Path | None = None,
    *,
    history: int = 50,
    negatives: int = 4,
    test_negatives: int = 99,
    recent: int | None = None,
    seed: int = 0,
    any_size: bool = False,
) -> Dataset:
    """Which films a user has rated: positives, and films that the user never rated as negatives.

    All ratings count as positive. A user's films are sorted by time; the last one is the test positive, each other
    one a training positive whose history are the films before it. Negatives are drawn with replacement among the
    films that the user never rated, with the history of their positive; those drawn twice for a test positive count
    once. Inputs are whole numbers (n, 6 + history): user, gender, age, occupation, zip, item, and the history, padded
    on the left by 0, latest film last. Targets are 1 (rated) or 0. All training samples take 1.1 GB.

    Source: FedEve paper and methods.md 6.1; He et al. 2017, section 4.1 (leave one out).

    Args:
        folder: Data folder with movielens1m/ratings.dat, users.dat and movies.dat (or ml-1m/); else FEDSCAPE_DATA.
        history: Films of a history.
        negatives: For each training positive.
        test_negatives: For each test positive.
        recent: Training positives of each user, the latest ones; all where not given.
        seed: Of the negatives; each user has draws of its own.
        any_size: Accept files with other numbers of ratings, users and films, as in an excerpt.

    Raises:
        LookupError: If a file is absent; says where it was looked for and where it is to be had.
        ValueError: If an option is out of range or the files hold something else.
    """
    for option, value in (("history", history), ("test_negatives", test_negatives), ("recent", recent)):
        _split.require_count("movielens1m", option, value)
    if type(negatives) is not int or negatives < 0 or type(seed) is not int or seed < 0:
        raise ValueError(f"negatives is {negatives!r} and seed {seed!r}; movielens1m takes whole numbers >= 0.")
    ratings = _movielens.read(folder, any_size=any_size)
    parts: dict[str, list[np.ndarray]] = {"train": [], "test": []}
    for user, films in ratings.films.items():
        source = np.random.default_rng([seed, user])
        others = np.setdiff1d(ratings.items, films)
        if not len(others):
            raise ValueError(f"user {user} has rated all films of movies.dat; there is none to draw as a negative.")
        about = ratings.about[user]
        train, test = _user(about, films, others, source, history, negatives, test_negatives, recent)
        parts["train"].append(train)
        parts["test"].append(test)
    return _dataset(ratings, parts, history)


def _user(
    about: np.ndarray,
    films: np.ndarray,
    others: np.ndarray,
    source: np.random.Generator,
    history: int,
    negatives: int,
    test_negatives: int,
    recent: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of a user, the target in the last column, int32."""
    padded = np.concatenate([np.zeros(history, np.int32), films[:-1]])
    before = sliding_window_view(padded, history)  # row i: the films before the i-th one
    kept = np.arange(len(films) - 1)[slice(None) if recent is None else slice(-recent, None)]
    drawn = source.choice(others, (len(kept), negatives))
    candidates = np.concatenate([films[kept, None], drawn], axis=1)
    train = _rows(about, candidates, before[kept])
    test = _rows(
        about, np.concatenate([films[-1:], np.unique(source.choice(others, test_negatives))])[None], before[-1:]
    )
    return train, test


def _rows(about: np.ndarray, candidates: np.ndarray, before: np.ndarray) -> np.ndarray:
    """A row for each candidate (positives, 1 + negatives), the positive first: user, candidate, history, target."""
    each = candidates.shape[1]
    rows = np.empty((candidates.size, len(about) + 2 + before.shape[1]), np.int32)
    rows[:, : len(about)] = about
    rows[:, len(about)] = candidates.ravel()
    rows[:, len(about) + 1 : -1] = np.repeat(before, each, axis=0)
    rows[:, -1] = np.tile(np.arange(each) == 0, len(candidates))
    return rows


def _dataset(ratings: Ratings, parts: dict[str, list[np.ndarray]], history: int) -> Dataset:
    users = tuple(map(str, ratings.films))
    numbers = [
        torch.arange(len(users)).repeat_interleave(torch.tensor([len(one) for one in own])) for own in parts.values()
    ]
    rows = [torch.from_numpy(np.concatenate(own)) for own in parts.values()]
    train, test = (Samples(own[:, :-1].contiguous(), own[:, -1].long()) for own in rows)
    groups = {"user": Groups(users, *numbers)}
    return Dataset(
        name="movielens1m",
        train=train,
        test=test,
        classes=("not rated", "rated"),
        shape=(len(FIELDS) + history,),
        fingerprint=fingerprint(train, test, groups),
        scale="default",
        levels=None,
        groups=groups,
        loss="binary",
    )
