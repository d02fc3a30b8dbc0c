"""Reader of the three files of MovieLens-1M: ratings with user, film and time."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FIELDS = ("user", "gender", "age", "occupation", "zip", "item")
"""Columns in front of a history."""

FILES = ("ratings.dat", "users.dat", "movies.dat")
FOLDERS = ("movielens1m", "ml-1m")
COUNTS = {"ratings": 1_000_209, "users": 6_040, "films": 3_883}
AGES = (1, 18, 25, 35, 45, 50, 56)


@dataclass(frozen=True)
class Ratings:
    """Content of the files.

    Args:
        films: Films of each user that has rated at least two, sorted by time and then by number, int32.
        about: Numbers of each user: user, gender, age, occupation, zip, all from 1 (0 is padding), int32 (5,).
        items: Numbers of all films, ascending, int32.
    """

    films: dict[int, np.ndarray]
    about: dict[int, np.ndarray]
    items: np.ndarray


def read(folder: Path | None, *, any_size: bool = False) -> Ratings:
    """The ratings in a data folder, else in the folder that FEDSCAPE_DATA names.

    Raises:
        LookupError: If a file is absent.
        ValueError: If a line has another form, or the numbers of lines are not those of MovieLens-1M.
    """
    root = _data_folder(folder)
    ratings = _numbers(root / "ratings.dat", 4)
    users = [line.split("::") for line in _lines(root / "users.dat")]
    items = np.unique([int(line.partition("::")[0]) for line in _lines(root / "movies.dat")]).astype(np.int32)
    lengths = {"ratings": len(ratings), "users": len(users), "films": len(items)}
    if (wrong := [name for name in COUNTS if lengths[name] != COUNTS[name]]) and not any_size:
        raise ValueError(
            f"{root} has {lengths[wrong[0]]} {wrong[0]}, MovieLens-1M has {COUNTS[wrong[0]]}; unpack ml-1m.zip "
            "anew, or set task.dataset_options.any_size=true for an excerpt."
        )
    about = _about(root, users)
    unknown = np.setdiff1d(ratings[:, 0], list(about)), np.setdiff1d(ratings[:, 1], items)
    for what, numbers, file in zip(("user", "film"), unknown, ("users.dat", "movies.dat"), strict=True):
        if len(numbers):
            raise ValueError(f"{root / 'ratings.dat'} has {what} {numbers[0]}, which is not in {file}.")
    order = np.lexsort((ratings[:, 1], ratings[:, 3], ratings[:, 0]))
    users_with_ratings, starts = np.unique(ratings[order, 0], return_index=True)
    films_by_user = np.split(ratings[order, 1].astype(np.int32), starts[1:])
    films = {int(user): rated for user, rated in zip(users_with_ratings, films_by_user, strict=True) if len(rated) > 1}
    if not films:
        raise ValueError(f"no user in {root / 'ratings.dat'} has rated two films; one is the test film.")
    return Ratings(films, about, items)


def _data_folder(folder: Path | None) -> Path:
    if folder is None and (configured := os.environ.get("FEDSCAPE_DATA")):
        folder = Path(configured)
    how = (
        "MovieLens-1M may not be passed on: fetch ml-1m.zip from grouplens.org/datasets/movielens/1m and unpack "
        f"{', '.join(FILES)} into DIR/movielens1m, then give --data DIR or FEDSCAPE_DATA=DIR."
    )
    if folder is None:
        raise LookupError(f"movielens1m needs a data folder and none is given. {how}")
    folder = folder.expanduser()
    root = next((folder / name for name in FOLDERS if (folder / name).is_dir()), folder / FOLDERS[0])
    if absent := [name for name in FILES if not (root / name).is_file()]:
        raise LookupError(f"no {absent[0]} of movielens1m in {root}. {how}")
    return root


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="latin-1").splitlines()


def _numbers(path: Path, columns: int) -> np.ndarray:
    fields = path.read_text(encoding="latin-1").replace("::", " ").split()
    try:
        numbers = np.array(fields, dtype=np.int64)
    except ValueError as reason:
        raise ValueError(f"{path} has values other than whole numbers ({reason}); unpack ml-1m.zip again.") from None
    if numbers.size == 0 or numbers.size % columns:
        raise ValueError(f"{path} has {numbers.size} numbers, not a table of {columns} columns.")
    return numbers.reshape(-1, columns)


def _about(root: Path, users: list[list[str]]) -> dict[int, np.ndarray]:
    """Numbers of every user; zip codes are numbered in ascending order."""
    if wrong := [line for line in users if len(line) != 5]:
        raise ValueError(f"{root / 'users.dat'} has the line {'::'.join(wrong[0])!r}; five fields are expected.")
    zips = {code: number for number, code in enumerate(sorted({line[4] for line in users}), start=1)}
    features = {}
    for user, gender, age, occupation, code in users:
        if gender not in ("F", "M") or not age.isdigit() or int(age) not in AGES or not occupation.isdigit():
            raise ValueError(
                f"{root / 'users.dat'} has user {user} with {gender}, {age}, {occupation}; expected are F or M, an "
                f"age of {', '.join(map(str, AGES))} and an occupation from 0."
            )
        numbers = int(user), 1 + "FM".index(gender), 1 + AGES.index(int(age)), 1 + int(occupation), zips[code]
        features[int(user)] = np.array(numbers, np.int32)
    return features
