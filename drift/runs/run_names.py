"""Names of the runs in a folder, and the run that a text means; nothing heavy is imported."""

from __future__ import annotations

from pathlib import Path

from landscape import plugins


def run_names(runs: str | Path) -> list[str]:
    """Names of all runs in a folder, sorted; none of them is read."""
    return sorted(path.parent.name for path in Path(runs).glob("*/run.json"))


def find(runs: str | Path, text: str) -> Path:
    """Folder of the run that `text` means: a path, a name in the folder `runs`, or the beginning of one name.

    Raises:
        LookupError: If there is none, or several; candidates are named.
    """
    path = Path(text)
    if (path / "run.json").exists():
        return path
    names = run_names(runs)
    near = [text] if text in names else [name for name in names if name.startswith(text)]
    if len(near) == 1:
        return Path(runs) / near[0]
    if near:
        raise LookupError(f"{text!r} begins the names of {len(near)} runs: {', '.join(near)}. Give more of the name.")
    if path.is_dir():
        raise LookupError(f"{text} is no run: it has no run.json. Give the folder of a run, or --runs DIR and a name.")
    if not names:
        raise LookupError(f"no run named {text!r}: {runs} holds no runs. Train one, or name the folder by --runs DIR.")
    told = plugins.unknown("run", text, names, listed=f"fedscape runs --runs {runs}")
    raise LookupError(f"{told} For the runs in another folder, give --runs DIR.")
