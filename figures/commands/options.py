"""Options that several verbs share, and the checks of their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import CoercionError, Parameter, convert

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext


def read_integer(kind: Any, tokens: Any) -> Any:
    """A whole number; cyclopts alone reads 2.5 as 2.

    Raises:
        CoercionError: If it has a decimal point, or is not a number.
    """
    if "." in tokens[0].value:
        raise CoercionError(token=tokens[0], target_type=int)
    return convert(kind, tokens)


Integer = Annotated[int, Parameter(converter=read_integer)]
"""The type of every option that takes a whole number."""


def _at_least_one(_: Any, value: int | None) -> None:
    """Refuse a number below 1; a validator for cyclopts.

    Raises:
        ValueError: If it is below 1.
    """
    if value is not None and value < 1:
        raise ValueError("it takes 1 or more.")


Positive = Annotated[Integer, Parameter(validator=_at_least_one)]
"""Whole numbers from 1."""


def _address(_: Any, value: str | None) -> None:
    if value is not None and not re.fullmatch(r"(\w+://)?[^/]+:\d+|inproc://.+", value):
        raise ValueError("it takes an address with a port.")


def _existing_folder(_: Any, value: Path | None) -> None:
    if value is not None and not value.is_dir():
        raise ValueError("there is no such folder.")


def flag(name: str, **more: Any) -> Parameter:
    """An option without a value, off by default; without `help` the docstring of its verb says what it does."""
    return Parameter(name=name, negative="", show_default=lambda _: "off", **more)


OUT = Parameter(name=["--out", "-o"])
"""Where a verb writes; its docstring says what."""

Runs = Annotated[Path, Parameter(help="Folder of the runs; each run is one folder in it.")]
Data = Annotated[
    Path | None,
    Parameter(
        validator=_existing_folder,
        help="Folder of the datasets. By default that of the environment variable FEDSCAPE_DATA; without it fedscape "
        "fetches them from the Hugging Face hub.",
    ),
]
Task = Annotated[
    str | None,
    Parameter(
        metavar="FILE.py:FUNCTION",
        help="Function of your own that returns a landscape.Task (model, loss, samples), to use in place of the task "
        "of the run. By default that of the run, if it has one.",
    ),
]
Json = Annotated[bool, flag("--json", help="Write the results to stdout as JSON, for programs, in place of a table.")]


def several(name: str, metavar: str, **more: Any) -> Parameter:
    """An option that takes one value or more, and may be repeated; `help` as in `flag`."""
    return Parameter(name=name, consume_multiple=(1, None), negative="", metavar=metavar, **more)


Settings = Annotated[
    list[str] | None,
    several(
        "--set",
        "KEY=VALUE",
        help="Change settings of the experiment, one or more: --set rounds=20 local.lr=0.05. By default none.",
    ),
]
Options = Annotated[
    list[str] | None,
    several(
        "--set",
        "OPTION=VALUE",
        help="Options of the analysis or figure, one or more: --set round=-1 points=21. If you name an unknown option, "
        "the message lists the known ones. By default its own values.",
    ),
]
Workers = Annotated[
    Positive,
    Parameter(help="Number of processes that share the work, one core each. The numbers stay the same."),
]


def _size(_: Any, value: str | None) -> None:
    if value is not None:
        from drift.store.memory_budget import parse_size

        parse_size(value)


Memory = Annotated[
    str | None,
    Parameter(
        metavar="SIZE",
        validator=_size,
        help="Memory for the client models of a round, such as 2GB; fedscape reads larger rounds from their files in "
        "blocks. The numbers stay the same. By default that of the environment variable FEDSCAPE_MEMORY, without it "
        "half of the free memory.",
    ),
]
Cluster = Annotated[
    str | None,
    Parameter(
        metavar="ADDRESS",
        validator=_address,
        help="Address of a Dask scheduler, such as tcp://HOST:8786, whose workers do the work in place of --workers. "
        "By default none.",
    ),
]


def run_names(context: CompletionContext) -> list[str]:
    """Names of runs in the folder of --runs, for completion; names that a shell would interpret are left out."""
    from drift.runs.run_names import run_names as names

    runs = context.get("--runs")
    folder = Path("runs") if runs is None or runs.raw is None else Path(runs.raw)
    return [name for name in names(folder) if _TYPED.fullmatch(name)]


def figure_names(context: CompletionContext) -> list[str]:
    """Names of figures, for completion; with --paper names of runs, since every argument is a run then."""
    from figures.gallery import names

    paper = context.get("--paper")
    return run_names(context) if paper is not None and paper.provided else names()


def experiment_names(context: CompletionContext) -> list[str]:
    """Names of presets, for completion."""
    from drift.config.shipped import presets

    return sorted(presets())


def analysis_names(context: CompletionContext) -> list[str]:
    """Names of analyses, for completion."""
    from drift.runs.registry import registered

    return list(registered())


def method_names(context: CompletionContext) -> list[str]:
    """Names of methods, for completion."""
    from landscape.plugins import names

    return names("drift.methods")


_TYPED = re.compile(r"\w[\w.+@%,-]*", re.ASCII)
"""Names without a space, a quote or a control character of a shell or terminal."""

RunName = Annotated[
    str,
    Parameter(
        completer=run_names,
        help="One run: its folder, or its name in --runs, or the beginning of that name (fedscape runs lists them).",
    ),
]
RunNames = Annotated[
    list[str],
    Parameter(
        completer=run_names,
        help="One run or more: folder, name in --runs or beginning of a name; a folder of runs stands for all of them.",
    ),
]
FigureName = Annotated[str, Parameter(completer=figure_names)]
ExperimentName = Annotated[
    str,
    Parameter(completer=experiment_names, help="Name of a preset (fedscape list experiments) or path of a TOML file."),
]
AnalysisName = Annotated[str, Parameter(completer=analysis_names)]


def arguments(texts: Sequence[str] | None, *, example: str = "round=-1") -> dict[str, Any]:
    """Options by name from texts like round=-1 or rounds=[0,5]; values as TOML, else as text.

    Args:
        example: What the error shows.

    Raises:
        ValueError: If a text has no equals sign.
    """
    from landscape.results.parsed_text import toml_value

    options = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"cannot read {text!r}; write KEY=VALUE, as in {example}.")
        options[name.strip()] = toml_value(value)
    return options
