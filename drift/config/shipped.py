"""Presets and plans of campaigns of fedscape, by name; imports nothing heavy."""

from pathlib import Path

from landscape import plugins

_FOLDERS = (Path(__file__).resolve().parents[1] / "presets", Path(__file__).resolve().parents[2] / "experiments")
"""Folders of presets in an installed package and in a checkout."""


def presets() -> dict[str, Path]:
    """Experiment files of fedscape, by name."""
    return {path.stem: path for folder in _FOLDERS for path in sorted(folder.glob("*.toml"))}


def plans() -> dict[str, Path]:
    """Plans of campaigns of fedscape, by name (`drift.claims.campaign`)."""
    return {path.stem: path for folder in _FOLDERS for path in sorted((folder / "campaigns").glob("*.toml"))}


def experiment_file(source: str | Path) -> Path:
    """The file or the folder of a run of a path or of the name of a preset.

    Raises:
        LookupError: If there is none; the message has the nearest presets.
    """
    path = Path(source)
    if path.is_file() or (path / "run.json").is_file():
        return path
    available = presets()
    if str(source) not in available:
        if path.is_dir():
            raise LookupError(
                f"folder {source} is not a run: it has no run.json. Give the name of a preset (fedscape list "
                "experiments), the path of a TOML file or the folder of a run."
            )
        if path.suffix == ".toml":
            preset = f" The preset of this name is given as {path.stem}." if path.stem in available else ""
            raise LookupError(
                f"there is no file {source}.{preset} Give the path of a TOML file, the name of a preset (fedscape list "
                "experiments) or the folder of a run."
            )
        message = plugins.unknown("experiment", str(source), available)
        raise LookupError(f"{message} Or give the path of a TOML file or the folder of a run.")
    return available[str(source)]
