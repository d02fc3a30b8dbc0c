"""Files of fedscape in TOML, such as plans and claims, as frozen pydantic models."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from landscape.results.parsed_text import from_toml


class Entry(BaseModel):
    """A table of such a file: an unknown key is an error, and so is a number that is not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Model = TypeVar("Model", bound=Entry)


def read_toml(path: Path, model: type[Model]) -> Model:
    """The content of a TOML file.

    Raises:
        ValueError: With the file, the first wrong key and what is wrong about it, in one line.
    """
    try:
        return model.model_validate(from_toml(path.read_bytes()))
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{path}: {where}: {first['msg'].removeprefix('Value error, ')}") from None
    except ValueError as problem:
        raise ValueError(f"{path} is {problem}.") from None
