"""MovieLens-1M, 1,000,209 ratings of 3,883 films by 6,040 users, read from your own download (Harper, Konstan 2015)."""

from pathlib import Path

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from landscape.datasets import _movielens, _split
from landscape.datasets._dataset import Dataset, Groups, fingerprint
from landscape.datasets._movielens import FIELDS, Ratings
from landscape.model.samples import Samples


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

    Source: FedEve paper and papers.md 6.1; He et al. 2017, section 4.1 (leave one out).

    Args:
        folder: Data folder with movielens1m/ratings.dat, users.dat and movies.dat (or ml-1m/); else FEDSCAPE_DATA.
        history: Films of a history.
        negatives: For each training positive.
        test_negatives: For each test positive.
        recent: Training positives of each user, the latest ones; by default all.
        seed: Of the negatives; each user has its own random numbers.
        any_size: Accept files with other numbers of ratings, users and films, as in an excerpt.

    Raises:
        LookupError: If a file is absent; names its folder and its source.
        ValueError: If an option is out of range or the files hold something else.
    """
    _split.require_counts("movielens1m", history=history, test_negatives=test_negatives, recent=recent)
    if type(negatives) is not int or negatives < 0 or type(seed) is not int or seed < 0:
        raise ValueError(f"negatives is {negatives!r} and seed {seed!r}; movielens1m takes whole numbers >= 0.")
    ratings = _movielens.read(folder, any_size=any_size)
    positives = {
        user: len(films) - 1 if recent is None else min(recent, len(films) - 1) for user, films in ratings.films.items()
    }
    train = RatingTable(sum(positives.values()) * (1 + negatives), history)
    test = RatingTable(len(positives) * (1 + test_negatives), history)
    for user, films in ratings.films.items():
        source = np.random.default_rng([seed, user])
        others = np.setdiff1d(ratings.items, films)
        if not len(others):
            raise ValueError(f"user {user} has rated all films of movies.dat; no film is left to draw as a negative.")
        before = sliding_window_view(np.concatenate([np.zeros(history, np.int32), films[:-1]]), history)
        rows = slice(
            len(films) - 1 - positives[user], len(films) - 1
        )  # row i of `before`: the films before the i-th one
        negative_films = source.choice(others, (positives[user], negatives))
        train.add(ratings.about[user], np.concatenate([films[rows, None], negative_films], axis=1), before[rows])
        negative_films = np.unique(source.choice(others, test_negatives))
        test.add(ratings.about[user], np.concatenate([films[-1:], negative_films])[None], before[-1:])
    return _dataset(ratings, train, test, history)


class RatingTable:
    """Rows of whole numbers, filled user by user; made once, as all training samples take 1.1 GB."""

    def __init__(self, most: int, history: int) -> None:
        self._inputs = np.empty((most, len(FIELDS) + history), np.int32)
        self._targets = np.empty(most, np.int64)
        self._sizes: list[int] = []
        self._count = 0

    def add(self, about: np.ndarray, candidates: np.ndarray, before: np.ndarray) -> None:
        """A row for each candidate of a user.

        Args:
            about: Numbers of the user, shape (5,).
            candidates: Films, shape (p, 1 + negatives), the positive first.
            before: History of each positive, shape (p, history).
        """
        rows_per_positive = candidates.shape[1]
        begin, self._count = self._count, self._count + candidates.size
        rows = self._inputs[begin : self._count]
        rows[:, : len(about)] = about
        rows[:, len(about)] = candidates.ravel()
        rows[:, len(about) + 1 :] = np.repeat(before, rows_per_positive, axis=0)
        self._targets[begin : self._count] = np.tile(np.arange(rows_per_positive) == 0, len(candidates))
        self._sizes.append(candidates.size)

    def samples(self) -> Samples:
        """The rows that were added."""
        used = slice(self._count)
        return Samples(torch.from_numpy(self._inputs[used]), torch.from_numpy(self._targets[used]))

    def users(self) -> torch.Tensor:
        """Place of each row's user, shape (n,)."""
        return torch.arange(len(self._sizes)).repeat_interleave(torch.tensor(self._sizes))


def _dataset(ratings: Ratings, first: RatingTable, second: RatingTable, history: int) -> Dataset:
    train, test = first.samples(), second.samples()
    groups = {"user": Groups(tuple(map(str, ratings.films)), first.users(), second.users())}
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
