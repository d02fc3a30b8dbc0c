"""Names of the runs in a folder, and search for a run by name; imports nothing heavy."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from landscape import plugins


def run_names(runs: str | Path) -> list[str]:
    """Names of all runs in a folder, sorted; no run is read."""
    return sorted(path.parent.name for path in Path(runs).glob("*/run.json"))


def find(runs: str | Path, text: str) -> Path:
    """Folder of the run of a path, of a name in the folder `runs`, or of the beginning of a unique name.

    The path of a file of `fedscape reproduce` (docs/results/data) is given back as it is.

    Methods with an underscore in their name have a dash in the names of their runs; both are understood.

    Raises:
        LookupError: If there is none, or several; the message lists candidates.
    """
    path = Path(text)
    if (path / "run.json").exists() or (path.suffix == ".json" and path.is_file()):
        return path
    if path.suffix == ".json":
        raise LookupError(f"there is no file {text}.")
    names = run_names(runs)
    start = text.replace("_", "-")
    matches = [text] if text in names else [name for name in names if name.startswith((text, start))]
    if len(matches) == 1:
        return Path(runs) / matches[0]
    if matches:
        raise LookupError(
            f"{text!r} begins the names of {len(matches)} runs: {', '.join(matches)}. Give more of the name."
        )
    if path.is_dir():
        raise LookupError(f"{text} is not a run: it has no run.json. Give the folder of a run, or --runs and a name.")
    if not names:
        raise LookupError(f"no run named {text!r}: {runs} has no runs. Train one, or name the folder by --runs DIR.")
    message = plugins.unknown("run", text, names, listed=f"fedscape runs --runs {runs}")
    raise LookupError(f"{message} For the runs in another folder, give --runs DIR.")


NAMING = ("models", "other", "others")
"""Arguments of analyses that name other runs: by models (`drift.analyses.landscapes.named_models`), paths or names."""


def named_in(runs: str | Path, arguments: Mapping[str, Any]) -> dict[str, Path]:
    """Folders of the other runs that arguments of an analysis name, by the name that is given; those that exist.

    Args:
        runs: Folder of the runs.
        arguments: By name; those of NAMING count.
    """
    names_found = {}
    for name in NAMING:
        value = arguments.get(name) or ()
        for text in [value] if isinstance(value, str) else value:
            for other in filter(None, _of_models(text) if name == "models" else [text]):
                with suppress(LookupError):  # the analysis refuses it in its own words
                    names_found[other] = find(runs, other)
    return names_found


def _of_models(text: str) -> list[str]:
    """Names of the other runs in a model's name such as "0.5 * NAME: round 12 + 0.5 * start"."""
    terms = [term.partition(" * ")[2] for term in text.split(" + ")] if " * " in text else [text]
    return [term.rpartition(": ")[0] for term in terms]
