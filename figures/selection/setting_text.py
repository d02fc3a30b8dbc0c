"""Settings of runs by dotted key, as `fedscape sweep --grid` names them, and how pictures write them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from drift.runs.run import Run
from figures.looks import look, palette
from figures.selection.groups import settings
from landscape import plugins
from landscape.results.parsed_text import from_toml

WORDS: dict[str, str] = from_toml((Path(__file__).parent / "setting_words.toml").read_bytes())
"""Written names of settings; others appear by their key."""


def value(run: Run, key: str) -> Any:
    """Value of a setting of a run; None where its method or partition has no such option.

    Args:
        key: Such as rounds, local.epochs, clients.concentration or method.start; "method" gives the label of the
            run, "pool" the same with the models in the pool of a client, if any, "base" the label of what IMA averages,
            "server_step" the server's factor of the mean update, which FedLAW calls method.server_step_lr and other
            methods method.server_lr.
    """
    if key == "method":
        return run.label
    if key == "base":
        return base(run.label)
    if key == "pool":
        return f"{run.label}, M = {run.method.pool_size}" if run.method.pool_size else run.label
    if key == "server_step":
        return getattr(run.method, "server_step_lr", getattr(run.method, "server_lr", None))
    value: Any = run.experiment.resolved()
    for name in key.split("."):
        if not isinstance(value, dict):
            return None
        partition = value.get("partition")
        value = value[name] if name in value else partition.get(name) if isinstance(partition, dict) else None
    return value


def keys(over: str | Sequence[str], runs: Sequence[Run] = ()) -> list[str]:
    """Keys of settings from a text, with commas between several, or a list.

    Raises:
        LookupError: If there are runs, and none has such a setting; names the nearest.
    """
    named = [key.strip() for key in over.split(",") if key.strip()] if isinstance(over, str) else list(over)
    known = dict.fromkeys(name for run in runs for name in settings(run)) if named else {}
    for key in named if runs else ():
        inside = any(name == key or name.startswith(f"{key}.") for name in known)
        if not inside and all(value(run, key) is None for run in runs):
            raise LookupError(plugins.unknown("setting of these runs", key, known))
    return named


def resolved_keys(key: str) -> tuple[str, ...]:
    """Names of the resolved settings that a key stands for."""
    several = {"pool": ("method.candidates",), "server_step": ("method.server_step_lr", "method.server_lr")}
    return several.get(key, (key,))


def base(label: str) -> str:
    """Label of the method without IMA: fedavg for ima, fedprox for fedprox+ima, any other as it is."""
    return "fedavg" if label == "ima" else label.removesuffix("+ima")


def value_text(value: Any) -> str:
    """A setting's value: whole numbers exact, others in six digits, plug-ins by name and options, "without" if none."""
    if value is None:
        return "without"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        options = [
            value_text(inner) for name, inner in value.items() if name != "name" and (name, inner) != ("like", None)
        ]
        return f"{value.get('name', '')}({', '.join(options)})" if options else str(value.get("name", ""))
    if isinstance(value, list | tuple):
        return " ".join(map(value_text, value))
    return str(value)


def key_label(key: str) -> str:
    """A key as an axis label."""
    return WORDS.get(key, key.rpartition(".")[2].replace("_", " "))


def row_label(row: str) -> str:
    """A row of a table as figures write it: FedAvg+IMA for ima; "LSS, M = 4" for "lss, M = 4"."""
    return "FedAvg+IMA" if row == "ima" else look.label(row)


def sort_rows(rows: Iterable[str]) -> list[str]:
    """Labels of methods in the order of legends, each followed by the same with IMA."""
    names = set(rows)
    bases = palette.order(map(base, names))
    return sorted(names, key=lambda row: (bases.index(base(row)), row != base(row)))


def differing_words(names: Sequence[str]) -> list[str]:
    """Names made of words and commas, without the words that all have; as they are where one would be empty."""
    words = [name.split(", ") for name in names]
    shared = set(words[0]).intersection(*words[1:]) if len(words) > 1 else set()
    rest = [", ".join(word for word in own_words if word not in shared) for own_words in words]
    return rest if all(rest) else list(names)
